"""Engines on this machine: options, jobs in this process, functions in processes."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from maskwise.engines import EngineOptions, check_engine, map_chunks, run_job
from maskwise.engines.chunks import CHUNK, split_into_chunks
from maskwise.engines.local import PREFETCH
from maskwise.errors import MaskwiseError, MissingDependencyError, UnknownNameError


class DoublingWorker:
    """Doubles numbers and records what it does, in which thread."""

    batch_size = 1

    def __init__(self) -> None:
        self.loaded: list[int] = []
        self.loading_threads: set[int] = set()

    def load(self, item: int) -> int:
        self.loaded.append(item)
        self.loading_threads.add(threading.get_ident())
        return item

    def run(self, loaded: int) -> int:
        return 2 * loaded

    def run_all(self, loaded_items: Iterable[int]) -> Iterator[int]:
        return map(self.run, loaded_items)

    def give_up(self, item: int, crashes: int) -> int:
        raise NotImplementedError

    def is_result_of(self, result: int, item: int) -> bool:
        return result == 2 * item

    def close(self) -> None:
        pass


class DoublingJob:
    """The job of `DoublingWorker`."""

    name = "numbers"

    def key(self, item: int) -> int:
        return item

    def open_worker(self) -> DoublingWorker:
        return DoublingWorker()

    def encode(self, result: int) -> bytes:
        return msgspec.json.encode(result)

    def decode(self, content: bytes) -> int:
        return msgspec.json.decode(content, type=int)


def run(worker: DoublingWorker, items: range) -> Iterator[int]:
    options = EngineOptions()
    return run_job(DoublingJob(), items, options, worker=worker, shards=Path())


def double(items: range) -> list[int]:
    return [2 * item for item in items]


# -- options ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("ray_address", "auto"), ("cpus_per_worker", 2.0), ("gpus_per_worker", 0.0)],
)
def test_options_of_ray_are_refused_locally(name: str, value: object) -> None:
    flag = "--" + name.replace("_", "-")
    with pytest.raises(MaskwiseError, match=f"no option {flag}; use --engine ray"):
        EngineOptions(**{name: value})  # type: ignore[arg-type]


def test_unknown_engine_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="local, ray"):
        EngineOptions(engine="rey")  # type: ignore[arg-type]


def test_options_of_a_config_have_the_names_of_the_flags() -> None:
    content = {"engine": "ray", "workers": 2, "ray_address": "auto"}
    options = msgspec.convert(content, EngineOptions)
    assert options == EngineOptions(engine="ray", workers=2, ray_address="auto")
    assert options.cpus == 1
    with pytest.raises(msgspec.ValidationError, match="actors"):
        msgspec.convert({"actors": 2}, EngineOptions)


def test_several_local_workers_of_a_job_are_refused_early() -> None:
    check_engine(EngineOptions(workers=1))
    with pytest.raises(MaskwiseError, match="one worker, not 2; use --engine ray"):
        check_engine(EngineOptions(workers=2))


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ModuleNotFoundError(name="ray")

    monkeypatch.setattr("maskwise.engines.importlib.import_module", refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install 'maskwise\[ray\]'"):
        check_engine(EngineOptions(engine="ray"))


# -- jobs ------------------------------------------------------------------------------


def test_results_have_the_order_of_the_items() -> None:
    worker = DoublingWorker()
    assert list(run(worker, range(50))) == list(range(0, 100, 2))
    assert worker.loaded == list(range(50))
    assert threading.get_ident() not in worker.loading_threads


def test_no_items_give_no_results() -> None:
    assert list(run(DoublingWorker(), range(0))) == []


def test_few_items_are_loaded_ahead() -> None:
    worker = DoublingWorker()
    results = run(worker, range(1000))
    for _ in range(10):
        next(results)
    assert len(worker.loaded) <= 10 + PREFETCH


def test_abandoned_jobs_stop_loading() -> None:
    worker = DoublingWorker()
    results = run(worker, range(1000))
    next(results)
    results.close()  # type: ignore[attr-defined]
    loaded = len(worker.loaded)
    assert loaded <= 1 + PREFETCH


# -- functions -------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 3 * CHUNK + 1])
def test_mapped_results_have_the_order_of_the_items(
    workers: int | None, count: int
) -> None:
    options = EngineOptions(workers=workers)
    results = list(map_chunks(double, range(count), options))
    assert results == [2 * item for item in range(count)]


def test_chunks_are_consecutive_and_complete() -> None:
    chunks = split_into_chunks(range(CHUNK + 2))
    assert chunks == [range(CHUNK), range(CHUNK, CHUNK + 2)]


def fail(items: range) -> list[int]:
    raise MaskwiseError(f"no result for {items[0]}")


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_a_function_reach_the_caller(workers: int) -> None:
    with pytest.raises(MaskwiseError, match="no result for 0"):
        list(map_chunks(fail, range(40), EngineOptions(workers=workers)))

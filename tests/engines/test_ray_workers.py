"""Jobs on Ray give what the local engine gives, whichever process dies meanwhile.

They are seen through evaluations. One Ray on this machine serves all tests.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from maskwise.engines import EngineOptions, check_engine, map_chunks
from maskwise.errors import MaskwiseError, ModelGoneError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.loaded_model import load_model
from maskwise.models.baselines import baseline
from maskwise.schema import Prediction
from maskwise.store import Log
from tests.harness.batching import BATCHING
from tests.harness.fakes import FAKES, write_dataset
from tests.harness.mortals import MORTALS
from tests.harness.outcome import Outcome, run_model

ray = pytest.importorskip("ray")
cluster_module = pytest.importorskip("maskwise.engines.ray_cluster")
engine = pytest.importorskip("maskwise.engines.ray_workers")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROOT = Path(__file__).parents[2]
FILES = ("predictions.jsonl", "scores.json", "scores.arrow", "metrics.arrow")
CLI = "from maskwise.cli.main import main; main()"
PATIENCE = 600.0
"""Seconds until something that has to happen is given up."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """A Ray for all tests, and its address. It is tried again on a busy machine, and kills nothing for memory."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        for left in (2, 1, 0):
            try:
                options = EngineOptions(engine="ray", workers=2)
                stack.enter_context(cluster_module.connected(options))
                break
            except MaskwiseError:
                ray.shutdown()
                if not left:
                    raise
        yield ray.get_runtime_context().gcs_address


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("truth") / "small", 40)


def run(
    dataset: Path,
    out: Path,
    model: Any,
    *,
    on: str = "ray",
    workers: int = 2,
    **more: Any,
) -> Outcome:
    """Evaluate with workers that share two cores, or locally. more: arguments of `run_model`."""
    engine = EngineOptions()
    if on == "ray":
        engine = EngineOptions(
            engine="ray", workers=workers, cpus_per_worker=2 / workers
        )
    return run_model(
        model,
        dataset,
        out,
        engine=engine,
        **{"protocols": ["strict", "union"], **more},
    )


def replies(folder: Path) -> list[Prediction]:
    return Log(folder / "predictions.jsonl", Prediction).read()


def same(one: Path, other: Path, names: tuple[str, ...] = FILES) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert not (one / "shards").exists()


def wait_until(happened: Callable[[], object]) -> None:
    start = time.monotonic()
    while not happened():
        assert time.monotonic() < start + PATIENCE
        time.sleep(0.02)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# -- the same bytes ----------------------------------------------------------------------------------------------------


def test_batches_are_the_same_as_locally_and_tracebacks_arrive(tmp_path: Path) -> None:
    questions = ("fine", "fine", "raise", "fine")
    dataset = write_dataset(tmp_path / "truth", 20, questions=questions)
    model = f"{BATCHING}:BatchPainter"
    sizes = tmp_path / "sizes"
    options = {"batch_size": 5, "sizes": str(sizes)}
    run(dataset, tmp_path / "ray", model, options=options)
    assert "5" in lines(sizes), "blocks are large enough for a batch"
    run(dataset, tmp_path / "local", model, options=options, on="local")
    same(tmp_path / "ray", tmp_path / "local")
    assert "ValueError: what is this?" in (tmp_path / "ray" / "errors.txt").read_text()


def test_the_same_as_the_local_engine_failures_included(tmp_path: Path) -> None:
    words = ("what is it?", "raise", "what is it?", "memory", "unsure", "few", "text")
    dataset = write_dataset(tmp_path / "truth", 50, questions=words, bad=7)
    calls = tmp_path / "calls"
    done = run(
        dataset,
        tmp_path / "ray",
        f"{FAKES}:Moody",
        workers=4,
        options={"calls": str(calls)},
    )
    asked = [len(call.split("|")) for call in lines(calls)]
    assert asked.count(3) >= 16, "all questions of an image together"
    local = run(
        dataset,
        tmp_path / "local",
        f"{FAKES}:Moody",
        on="local",
        options={"calls": str(calls)},
    )
    same(tmp_path / "ray", tmp_path / "local")
    assert done.failed == local.failed > 20


def test_failed_samples_are_asked_again(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "truth", 30, questions=("fine", "fine", "raise"))
    options = {"mended": str(tmp_path / "mended")}
    assert (
        run(dataset, tmp_path / "run", f"{FAKES}:Moody", options=options).failed == 20
    )
    (tmp_path / "mended").touch()
    assert (
        run(
            dataset,
            tmp_path / "run",
            f"{FAKES}:Moody",
            options=options,
            retry_failed=True,
        ).failed
        == 0
    )
    run(dataset, tmp_path / "local", f"{FAKES}:Moody", on="local", options=options)
    same(tmp_path / "run", tmp_path / "local")


def test_a_baseline_is_made_again_in_every_worker(
    dataset: Path, tmp_path: Path
) -> None:
    loaded = baseline(load_model(f"{FAKES}:Painter"), "shuffled-questions", seed=3)
    run(dataset, tmp_path / "ray", loaded)
    options = {"of": f"{FAKES}:Painter", "seed": 3}
    run(dataset, tmp_path / "local", "shuffled-questions", on="local", options=options)
    same(tmp_path / "ray", tmp_path / "local")


def test_a_model_that_is_gone_stops_the_run(tmp_path: Path) -> None:
    dataset = write_dataset(
        tmp_path / "truth", 12, questions=("fine", "fine", "fine", "fine", "gone")
    )
    options = {"mended": str(tmp_path / "mended")}
    with pytest.raises(
        ModelGoneError, match=r"the server left\. \d+ of 24 predictions are kept"
    ):
        run(dataset, tmp_path / "run", f"{FAKES}:Moody", options=options)
    (tmp_path / "mended").touch()
    run(dataset, tmp_path / "run", f"{FAKES}:Moody", options=options)
    run(dataset, tmp_path / "local", f"{FAKES}:Moody", on="local", options=options)
    same(tmp_path / "run", tmp_path / "local")


def test_workers_with_other_weights_are_refused(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelGoneError, match=rf"has weights \d+, not {os.getpid()}"):
        run(dataset, tmp_path / "run", f"{MORTALS}:Fickle")
    assert replies(tmp_path / "run") == []


# -- workers that die --------------------------------------------------------------------------------------------------


@pytest.fixture
def large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a worker that dies has sent some of a block and not the rest."""
    monkeypatch.setattr(engine, "BLOCKS_PER_WORKER", 1)


@pytest.mark.usefixtures("large_blocks")
def test_what_a_dead_worker_had_in_hand_is_done_by_another(
    dataset: Path, tmp_path: Path
) -> None:
    options = {
        "deaths": str(tmp_path / "deaths"),
        "lives": 1,
        "die": "9.0",
        "leave": "34.1",
    }
    done = run(dataset, tmp_path / "run", f"{MORTALS}:Mortal", options=options)
    assert sorted(lines(tmp_path / "deaths")) == ["34.1", "9.0"]
    assert done.failed == 0
    run(dataset, tmp_path / "local", f"{MORTALS}:Mortal", on="local", options=options)
    same(tmp_path / "run", tmp_path / "local")


@pytest.mark.usefixtures("large_blocks")
def test_a_image_at_which_all_die_fails_alone(dataset: Path, tmp_path: Path) -> None:
    options = {"deaths": str(tmp_path / "deaths"), "lives": 100, "die": "10.1"}
    run(dataset, tmp_path / "run", f"{MORTALS}:Mortal", options=options)
    assert lines(tmp_path / "deaths") == ["10.1"] * engine.MAX_CRASHES
    errors = {reply.sample: reply.error for reply in replies(tmp_path / "run")}
    failed = {errors.pop("p10-0"), errors.pop("p10-1")}
    assert failed == {"the model's process died 3 times at this image"}
    assert set(errors.values()) == {None}


@pytest.mark.usefixtures("large_blocks")
def test_a_worker_killed_by_the_system(tmp_path: Path) -> None:
    """All are slow until it is killed, so that it is killed at work, however late the others start."""
    dataset = write_dataset(tmp_path / "truth", 40, questions=("slow",))
    pids = tmp_path / "pids"
    woken = tmp_path / "woken"
    options = {"pids": str(pids), "woken": str(woken)}

    def kill() -> None:
        try:
            wait_until(lambda: lines(pids))
            os.kill(int(lines(pids)[0]), signal.SIGKILL)
        finally:
            woken.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    run(dataset, tmp_path / "run", f"{MORTALS}:Known", options=options)
    killer.join()
    assert len(set(lines(pids))) >= 2, "another took its place"
    run(dataset, tmp_path / "local", f"{MORTALS}:Known", on="local", options=options)
    same(tmp_path / "run", tmp_path / "local")


# -- a driver that dies ------------------------------------------------------------------------------------------------


def test_a_driver_killed_loses_nothing_that_arrived(
    cluster: str, tmp_path: Path
) -> None:
    """The first image takes long, so all others come before their turn; then the driver is killed."""
    dataset = write_dataset(
        tmp_path / "truth", 40, questions=("slow",) + ("fine",) * 99
    )
    files = {name: tmp_path / name for name in ("woken", "calls", "pids")}
    options = {name: str(path) for name, path in files.items()}
    out = tmp_path / "run"
    model = ["--model", f"{MORTALS}:Known"]
    for name, path in options.items():
        model += ["--model-option", f"{name}={path}"]
    command = [
        sys.executable,
        "-c",
        CLI,
        "eval",
        str(dataset),
        *model,
        "--out",
        str(out),
        "--predict-only",
    ]
    driver = subprocess.Popen(
        [*command, "--engine", "ray", "--ray-address", cluster, "--workers", "2"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    shard = out / "shards" / "predictions" / "000001.jsonl"
    try:
        wait_until(lambda: len(lines(shard)) > 20 or driver.poll() is not None)
        assert driver.poll() is None, driver.stderr and driver.stderr.read()
    finally:
        driver.kill()
        driver.communicate()
    assert replies(out) == []
    kept = len(lines(shard))
    wait_until(
        lambda: not any(Path(f"/proc/{pid}").exists() for pid in lines(files["pids"]))
    )
    files["calls"].unlink()
    files["woken"].touch()
    run(dataset, out, f"{MORTALS}:Known", options=options)
    assert len(lines(files["calls"])) == 40 - kept
    run(dataset, tmp_path / "local", f"{MORTALS}:Known", on="local", options=options)
    same(out, tmp_path / "local")


# -- functions ---------------------------------------------------------------------------------------------------------


def double(items: Sequence[int]) -> list[int]:
    return [2 * item for item in items]


def refuse(items: Sequence[int]) -> list[int]:
    raise MaskwiseError(f"no result for {items[0]}")


@pytest.mark.parametrize("workers", [None, 2])
def test_functions_are_mapped_in_order(workers: int | None) -> None:
    options = EngineOptions(engine="ray", workers=workers)
    assert list(map_chunks(double, range(100), options)) == list(range(0, 200, 2))


def test_an_error_of_a_mapped_function_is_named() -> None:
    options = EngineOptions(engine="ray", workers=2)
    with pytest.raises(MaskwiseError, match="no result for 0"):
        list(map_chunks(refuse, range(40), options))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "maskwise.engines.ray_workers")
    with pytest.raises(MaskwiseError, match=r"pip install 'maskwise\[ray\]'"):
        check_engine(EngineOptions(engine="ray"))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "cannot be reached"),
        ("no.such.host.invalid:6379", "cannot be reached"),
        ("ray://127.0.0.1:10001", "on a node of the cluster"),
        ("somewhere", "expected HOST:PORT or auto"),
    ],
)
def test_an_address_nobody_answers_at_is_refused(
    dataset: Path, tmp_path: Path, address: str, said: str
) -> None:
    with pytest.raises(MaskwiseError, match=said):
        evaluate(
            f"{FAKES}:Painter",
            dataset,
            tmp_path / "run",
            engine=EngineOptions(engine="ray", ray_address=address),
        )


def test_a_worker_that_fits_nowhere_is_refused(dataset: Path, tmp_path: Path) -> None:
    if ray.cluster_resources().get("GPU"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(
        MaskwiseError, match="no capacity for a worker with 1 CPUs and 1 GPUs"
    ):
        evaluate(
            f"{FAKES}:Painter",
            dataset,
            tmp_path / "run",
            engine=EngineOptions(engine="ray", gpus_per_worker=1.0),
        )

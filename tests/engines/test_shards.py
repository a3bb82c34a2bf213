"""Results that arrive before their turn are kept until it comes, whatever is killed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from maskwise.engines.shards import Shards
from maskwise.errors import StoreError
from maskwise.harness.plan import Plan
from maskwise.harness.prediction_job import PredictionJob
from maskwise.harness.worker import Worker, WorkerConfig
from maskwise.store import Dataset
from tests.harness.fakes import FAKES, write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("truth") / "small", 40))


@pytest.fixture(scope="module")
def plan(dataset: Dataset) -> Plan:
    return Plan.from_dataset(dataset)


@pytest.fixture(scope="module")
def worker(dataset: Dataset) -> Worker:
    return Worker(WorkerConfig(dataset.path, f"{FAKES}:Painter"))


@pytest.fixture(scope="module")
def job(worker: Worker) -> PredictionJob:
    return PredictionJob.of(worker)


@pytest.fixture(scope="module")
def results(worker: Worker, job: PredictionJob, plan: Plan) -> dict[int, bytes]:
    """The encoded predictions of every image."""
    encoded = {}
    for planned in plan:
        encoded[planned.image] = job.encode(worker.run(worker.load(planned)))
    return encoded


@pytest.fixture
def recover(job: PredictionJob, worker: Worker) -> Callable[[Path, Plan], Shards]:
    """Shards that continue what an earlier attempt wrote."""
    ray_workers = pytest.importorskip("maskwise.engines.ray_workers")

    def recover_from(folder: Path, plan: Plan) -> Shards:
        shards = Shards(folder)
        ray_workers.recover_shards(shards, job, plan, worker)
        return shards

    return recover_from


def line(key: int, result: bytes) -> bytes:
    """A line as shards write it."""
    return b'{"key":%d,"result":%b}\n' % (key, result)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


Recover = Callable[[Path, Plan], Shards]


def test_predictions_are_the_same_after_being_encoded(
    worker: Worker, job: PredictionJob, plan: Plan
) -> None:
    for planned in plan:
        predictions = worker.run(worker.load(planned))
        assert job.decode(job.encode(predictions)) == predictions


def test_without_early_results_no_folder_is_made(
    tmp_path: Path, plan: Plan, recover: Recover
) -> None:
    shards = recover(tmp_path / "shards", plan)
    assert 0 not in shards
    assert not (tmp_path / "shards").exists()


def test_a_kept_result_is_returned_once(
    tmp_path: Path, results: dict[int, bytes]
) -> None:
    shards = Shards(tmp_path / "shards")
    for key in (7, 3, 5):
        shards.add(key, results[key])
    assert [key in shards for key in (3, 4, 5, 7)] == [True, False, True, True]
    for key in (3, 5, 7):
        assert shards.pop(key) == results[key]
    with pytest.raises(KeyError):
        shards.pop(3)


def test_a_file_is_removed_when_all_its_items_are_done(
    tmp_path: Path, results: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwise.engines.shards.MAX_LINES", 3)
    shards = Shards(tmp_path)
    for key in range(10):
        shards.add(key, results[key])
    assert files(tmp_path) == [f"{number:06}.jsonl" for number in (1, 2, 3, 4)]
    for key in range(8):
        shards.pop(key)
    assert files(tmp_path) == ["000003.jsonl", "000004.jsonl"]
    for key in (8, 9):
        shards.pop(key)
    assert files(tmp_path) == ["000004.jsonl"], "the last one is still being written"


def test_only_complete_results_of_the_plan_are_recovered(
    tmp_path: Path, results: dict[int, bytes], plan: Plan, recover: Recover
) -> None:
    before = Shards(tmp_path)
    for key in (4, 2, 8, 9):
        before.add(key, results[key])
    path = tmp_path / "000001.jsonl"
    damaged_last_line = path.read_bytes()[:-5] + b"\n"
    predictions_of_another_image = line(11, results[12])
    unknown_image = line(999, b"[]")
    no_object = b"[]\n"
    incomplete_line = line(13, results[13])[:-20]
    path.write_bytes(
        damaged_last_line
        + predictions_of_another_image
        + unknown_image
        + no_object
        + incomplete_line
    )
    shards = recover(tmp_path, plan[3:])
    assert [key for key in range(40) if key in shards] == [4, 8]
    shards.add(20, results[20])
    assert files(tmp_path) == ["000001.jsonl", "000002.jsonl"], (
        "never written behind an incomplete line"
    )
    for key in (4, 8, 20):
        assert shards.pop(key) == results[key]
    assert files(tmp_path) == ["000002.jsonl"]
    shards = recover(tmp_path, plan[21:])
    assert not [key for key in range(40) if key in shards]
    assert files(tmp_path) == [], "results that are not needed are removed"


def test_some_of_an_images_questions_are_another_result(
    tmp_path: Path, results: dict[int, bytes], plan: Plan, recover: Recover
) -> None:
    Shards(tmp_path).add(2, results[2])
    first_of_image = int(plan.offsets[2])
    positions = [number for number in range(plan.samples) if number != first_of_image]
    part = plan.only(positions)
    assert len(part[2].rows) == 2
    assert 2 not in recover(tmp_path, part)


def test_a_disk_that_refuses_is_reported(
    tmp_path: Path, results: dict[int, bytes]
) -> None:
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        Shards(tmp_path / "run" / "shards").add(1, results[1])


def test_any_order_with_interruptions_gives_the_order_of_the_plan(
    tmp_path: Path, results: dict[int, bytes], plan: Plan, recover: Recover
) -> None:
    ray_workers = pytest.importorskip("maskwise.engines.ray_workers")
    chance = np.random.default_rng(3)
    arrivals = 0

    def arrive(keys: list[int]) -> Iterator[tuple[int, bytes]]:
        nonlocal arrivals
        for key in chance.permutation(keys).tolist():
            arrivals += 1
            yield key, results[key]

    for trial in range(20):
        done: list[bytes] = []
        arrivals = 0
        while len(done) < len(plan):
            rest = plan[len(done) :]
            kept = recover(tmp_path / str(trial), rest)
            missing = [planned.image for planned in rest if planned.image not in kept]
            arriving = arrive(missing)
            interruption = 1 + int(chance.integers(len(rest)))
            for planned in rest[:interruption]:
                done.append(ray_workers.wait_for(planned.image, arriving, kept))
        assert done == [results[planned.image] for planned in plan]
        assert arrivals == len(plan), "no image was predicted twice"

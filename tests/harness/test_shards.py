"""Answers that come before their turn are kept until it comes, whatever happens meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import StoreError
from maskwise.harness.engines import Worker, WorkerConfig
from maskwise.harness.engines.shards import Shards, decode_line, encode_line
from maskwise.harness.plan import Plan
from maskwise.schema import Prediction
from maskwise.store import Dataset
from tests.harness.fakes import FAKES, write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("truth") / "small", 40))


@pytest.fixture(scope="module")
def plan(dataset: Dataset) -> Plan:
    return Plan.from_dataset(dataset)


@pytest.fixture(scope="module")
def answers(dataset: Dataset, plan: Plan) -> dict[int, list[Prediction]]:
    worker = Worker(WorkerConfig(dataset.path, f"{FAKES}:Painter"))
    return {work.image: worker.predict(worker.load(work)) for work in plan}


def recalled(folder: Path, plan: Plan, dataset: Dataset) -> Shards:
    shards = Shards(folder)
    shards.recover(plan, dataset.samples.id)
    return shards


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_an_answer_is_the_same_after_being_a_line(
    answers: dict[int, list[Prediction]],
) -> None:
    for image, answered in answers.items():
        assert decode_line(encode_line(image, answered)) == answered


def test_nothing_early_leaves_nothing(
    tmp_path: Path, plan: Plan, dataset: Dataset
) -> None:
    shards = recalled(tmp_path / "shards", plan, dataset)
    assert 0 not in shards
    assert not (tmp_path / "shards").exists()


def test_what_is_kept_is_given_back_once(
    tmp_path: Path, answers: dict[int, list[Prediction]]
) -> None:
    shards = Shards(tmp_path / "shards")
    for image in (7, 3, 5):
        shards.add(image, encode_line(image, answers[image]))
    assert [image in shards for image in (3, 4, 5, 7)] == [True, False, True, True]
    assert [shards.pop(image) for image in (3, 5, 7)] == [
        answers[3],
        answers[5],
        answers[7],
    ]
    with pytest.raises(KeyError):
        shards.pop(3)


def test_files_go_when_all_in_them_had_their_turn(
    tmp_path: Path,
    answers: dict[int, list[Prediction]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("maskwise.harness.engines.shards.MAX_LINES", 3)
    shards = Shards(tmp_path)
    for image in range(10):
        shards.add(image, encode_line(image, answers[image]))
    assert files(tmp_path) == [f"{number:06}.jsonl" for number in (1, 2, 3, 4)]
    for image in range(8):
        shards.pop(image)
    assert files(tmp_path) == ["000003.jsonl", "000004.jsonl"]
    for image in (8, 9):
        shards.pop(image)
    assert files(tmp_path) == ["000004.jsonl"], "the last one is still being written"


def test_only_whole_lines_of_the_plan_are_taken_over(
    tmp_path: Path, answers: dict[int, list[Prediction]], plan: Plan, dataset: Dataset
) -> None:
    before = Shards(tmp_path)
    for image in (4, 2, 8, 9):
        before.add(image, encode_line(image, answers[image]))
    path = tmp_path / "000001.jsonl"
    strange = encode_line(11, answers[12]) + b'{"image": 999, "predictions": []}\n[]\n'
    path.write_bytes(
        path.read_bytes()[:-5] + b"\n" + strange + encode_line(13, answers[13])[:-20]
    )
    shards = recalled(tmp_path, plan[3:], dataset)
    assert [image for image in range(40) if image in shards] == [4, 8]
    shards.add(20, encode_line(20, answers[20]))
    assert files(tmp_path) == ["000001.jsonl", "000002.jsonl"], (
        "never written behind a torn line"
    )
    assert [shards.pop(image) for image in (4, 8, 20)] == [
        answers[4],
        answers[8],
        answers[20],
    ]
    assert files(tmp_path) == ["000002.jsonl"]
    assert not [
        image for image in range(40) if image in recalled(tmp_path, plan[21:], dataset)
    ]
    assert files(tmp_path) == [], "what nobody needs any more goes"


def test_a_part_of_a_images_questions_is_another_answer(
    tmp_path: Path, answers: dict[int, list[Prediction]], plan: Plan, dataset: Dataset
) -> None:
    Shards(tmp_path).add(2, encode_line(2, answers[2]))
    some = plan.only(
        [
            position
            for position in range(plan.samples)
            if position != int(plan.offsets[2])
        ]
    )
    assert len(some[2].rows) == 2
    assert 2 not in recalled(tmp_path, some, dataset)


def test_a_disk_that_refuses_is_reported(
    tmp_path: Path, answers: dict[int, list[Prediction]]
) -> None:
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        Shards(tmp_path / "run" / "shards").add(1, encode_line(1, answers[1]))


def test_any_order_cut_anywhere_gives_the_order_of_the_plan(
    tmp_path: Path, answers: dict[int, list[Prediction]], plan: Plan, dataset: Dataset
) -> None:
    ray = pytest.importorskip("maskwise.harness.engines.ray")
    chance = np.random.default_rng(3)
    asked = 0

    def arrive(todo: list[int]) -> Iterator[tuple[int, bytes]]:
        nonlocal asked
        for image in chance.permutation(todo).tolist():
            asked += 1
            yield image, encode_line(image, answers[image])

    for trial in range(20):
        done: list[list[Prediction]] = []
        asked = 0
        while len(done) < len(plan):
            rest = plan[len(done) :]
            kept = recalled(tmp_path / str(trial), rest, dataset)
            arriving = arrive([work.image for work in rest if work.image not in kept])
            for work in rest[: 1 + int(chance.integers(len(rest)))]:
                done.append(ray.wait_for(work, arriving, kept))
        assert done == [answers[work.image] for work in plan]
        assert asked == len(plan), "nothing was asked twice"

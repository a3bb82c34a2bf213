"""Batches across images: full, in order, with isolated errors, and without effect on the result."""

from pathlib import Path

import pytest

import maskwise as mw
from maskwise.harness.predictor import find_batch_size
from tests.harness.batching import BATCHING, BatchPainter, MiscountingPainter
from tests.harness.fakes import Painter, write_dataset

QUESTIONS = ("fine", "fine", "raise", "fine", "fine")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 images with 24 questions, one image unreadable, some questions that fail."""
    return write_dataset(
        tmp_path_factory.mktemp("batches") / "truth", 12, questions=QUESTIONS, bad=4
    )


@pytest.fixture(scope="module")
def expected(data: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return predict(data, tmp_path_factory.mktemp("one") / "run", 1)


def predict(data: Path, out: Path, batch_size: int, **more: object) -> bytes:
    """The predictions.jsonl of a run."""
    options = {"batch_size": batch_size, **more}
    with pytest.warns(UserWarning, match="questions failed"):
        mw.evaluate(
            f"{BATCHING}:BatchPainter", data, out, options=options, protocols="strict"
        )
    return (out / "predictions.jsonl").read_bytes()


@pytest.mark.parametrize("batch_size", [2, 3, 7, 100])
def test_any_batch_size_gives_the_same_bytes(
    data: Path, tmp_path: Path, expected: bytes, batch_size: int
) -> None:
    assert predict(data, tmp_path / "run", batch_size) == expected


def test_batches_give_what_single_images_give(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "truth", 12)
    batched = mw.evaluate(BatchPainter(), data, protocols="strict")
    single = mw.evaluate(Painter(), data, protocols="strict")
    assert batched.predictions == single.predictions


def test_batches_are_filled_across_images(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "truth", 12)
    sizes = tmp_path / "sizes"
    mw.evaluate(BatchPainter(batch_size=5, sizes=str(sizes)), data, protocols="strict")
    assert sizes.read_text().split() == ["5", "5", "5", "5", "4"]


@pytest.mark.parametrize("kept", [1, 9, 16])
def test_a_resumed_run_ends_with_the_same_bytes(
    data: Path, tmp_path: Path, expected: bytes, kept: int
) -> None:
    out = tmp_path / "run"
    predict(data, out, 4)
    lines = expected.splitlines(keepends=True)
    (out / "predictions.jsonl").write_bytes(b"".join(lines[:kept]))
    assert predict(data, out, 4) == expected


def test_only_the_questions_of_a_batch_that_fail_alone_have_failed(
    expected: bytes,
) -> None:
    assert expected.count(b"ValueError: what is this?") == 5
    assert expected.count(b'"error"') == 5 + 2, "and the two of the unreadable image"


def test_a_batch_with_too_few_predictions_is_predicted_one_by_one(
    tmp_path: Path,
) -> None:
    data = write_dataset(tmp_path / "truth", 6)
    run = mw.evaluate(MiscountingPainter(), data, protocols="strict")
    assert run.predictions == mw.evaluate(Painter(), data).predictions


def test_a_time_limit_holds_for_the_whole_batch(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "truth", 6)
    model = f"{BATCHING}:BatchPainter"
    run = mw.evaluate(model, data, timeout=1000, protocols="strict")
    assert run.predictions == mw.evaluate(Painter(), data).predictions


def test_the_batch_size_is_checked() -> None:
    assert find_batch_size(Painter()) is None
    assert find_batch_size(BatchPainter(batch_size=3)) == 3
    with pytest.raises(mw.ModelError, match="batch_size is 0; expected a number of q"):
        find_batch_size(BatchPainter(batch_size=0))

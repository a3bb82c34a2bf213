"""A dataset that another program changes while it is evaluated: the run stops, says so, and can be continued."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PIL import Image

from maskwise.datasets import load_dataset
from maskwise.errors import StoreError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.score import score
from maskwise.runs import load_run
from maskwise.schema import Prediction
from tests.harness.fakes import Painter, write_dataset

IMAGES = 8
CHANGED_AT = 4


def replace(data: Path, other: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(other, data)


def overwrite(data: Path, other: Path) -> None:
    for path in other.iterdir():
        with open(data / path.name, "r+b") as file:
            file.write(path.read_bytes())
            file.truncate()


def truncate(data: Path, _other: Path) -> None:
    for path in data.glob("*.arrow"):
        os.truncate(path, 100)


def edit_a_question(data: Path, _other: Path) -> None:
    content = (data / "samples.arrow").read_bytes()
    with open(data / "samples.arrow", "r+b") as file:
        file.write(content.replace(b"what is it? 7.0", b"what was it?7.0"))


def remove(data: Path, _other: Path) -> None:
    shutil.rmtree(data)


class Meddler(Painter):
    """Does something to the dataset at its fourth image."""

    def __init__(self, action: Callable[[], None] | None) -> None:
        super().__init__()
        self.action = action
        self.images = 0

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        self.images += 1
        if self.images == CHANGED_AT and self.action is not None:
            self.action()
        return super().predict(image, questions)


@pytest.mark.parametrize(
    "change", [replace, overwrite, truncate, edit_a_question, remove]
)
def test_a_changed_dataset_stops_the_run_which_continues_once_it_is_restored(
    change: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    data = write_dataset(tmp_path / "data", IMAGES)
    other = write_dataset(tmp_path / "other", IMAGES, questions=("where is it?",))
    kept = shutil.copytree(data, tmp_path / "kept")
    evaluate(Meddler(None), data, tmp_path / "straight", protocols=["union"])
    meddler = Meddler(lambda: change(data, other))
    with pytest.raises(StoreError, match=r"changed while it was used.*restore it"):
        evaluate(meddler, data, tmp_path / "run", protocols=["union"])
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(kept, data)
    run = evaluate(Meddler(None), data, tmp_path / "run", protocols=["union"])
    assert run.summary is not None
    assert run.summary.resumed > 0
    for name in ("predictions.jsonl", "scores.json"):
        straight = (tmp_path / "straight" / name).read_bytes()
        assert (tmp_path / "run" / name).read_bytes() == straight


def test_a_copied_or_touched_dataset_is_the_same(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", IMAGES)

    def touch() -> None:
        for path in data.iterdir():
            shutil.copy(path, tmp_path / "copy")
            os.replace(tmp_path / "copy", path)

    evaluate(Meddler(touch), data, tmp_path / "run", protocols=["union"])
    assert load_run(tmp_path / "run").info.state == "scored"


def test_scores_of_a_dataset_that_changed_meanwhile_are_refused(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", IMAGES)
    opened = load_dataset(data)
    predictions = [Prediction(sample=sample.id, no_target=True) for sample in opened]
    edit_a_question(data, data)
    with pytest.raises(StoreError, match="changed while it was used"):
        score(predictions, opened, protocols="union")

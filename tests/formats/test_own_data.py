"""docs/guides/own_data.md: its Python example runs, and its CSV example is read as described."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.store import Dataset
from tests.cli.commands import fail, run

DOCUMENT = (Path(__file__).parents[2] / "docs/guides/own_data.md").read_text(
    encoding="utf-8"
)


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```", DOCUMENT, re.S | re.M)
    return str(found)


def lay_out(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "masks").mkdir()
    Image.new("RGB", (6, 4), "red").save(folder / "photos/street.png")
    plane = np.zeros((4, 6), np.uint8)
    plane[1:3, 2:5] = 255
    Image.fromarray(plane).save(folder / "masks/car.png")
    (folder / "questions.csv").write_text(block("csv"))
    (folder / "M.yaml").write_text(block("yaml"))


def test_the_python_example_prints_what_is_below_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("python")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == block("text")


def read_records(folder: Path) -> tuple[object, ...]:
    return (
        "read",
        "records",
        folder / "questions.csv",
        "--mapping",
        folder / "M.yaml",
        "--images",
        folder / "photos",
        "--out",
        folder / "mine",
    )


def test_the_csv_example_is_read(tmp_path: Path) -> None:
    lay_out(tmp_path)
    run(*read_records(tmp_path))
    dataset = Dataset.open(tmp_path / "mine")
    car, boat = dataset
    assert [target.visible and target.visible.area for target in car.targets] == [6]
    assert boat.targets == ()
    assert "R2SM" not in str(dataset.manifest.about)
    assert dataset.manifest.about["format"] == "records"
    assert (dataset.manifest.about["file"], dataset.manifest.about["mapping"]) == (
        "questions.csv",
        "M.yaml",
    )


def test_reading_nothing_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path)
    Image.new("L", (6, 4), 7).save(tmp_path / "masks/car.png")
    (tmp_path / "questions.csv").write_text(
        "image,question,mask\nstreet.png,Where is the car?,masks/car.png\n"
    )
    error = fail(capsys, monkeypatch, *read_records(tmp_path))
    assert "no annotation could be used: record does not fit the mapping (1)" in error
    assert not (tmp_path / "mine").exists()

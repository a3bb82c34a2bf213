"""maskwise_worker.py: a model in an older Python answers by one file of the standard library."""

import ast
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from sys import stdlib_module_names
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ModelError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.subprocess_model import SubprocessModel
from maskwise.integrations import maskwise_worker
from maskwise.integrations.maskwise_worker import to_prediction, to_rle
from maskwise.masks import Mask
from maskwise.schema import Answer, Sample
from tests.cli.commands import run
from tests.harness.fakes import write_dataset

SOURCE = Path(maskwise_worker.__file__)
OLD = ("3.8", "3.9", "3.10")

SCRIPT = """
import os, sys
from maskwise_worker import serve

def brightest(image, questions):
    print("a library prints")
    os.write(1, b"and a C library\\n")
    limit = max(image.rgb[::3])
    mask = bytes(int(value == limit) for value in image.rgb[::3])
    rows = [list(mask[row * image.width : (row + 1) * image.width]) for row in range(image.height)]
    replies = {
        "bytes": [mask],
        "rows": [rows],
        "none": None,
        "dict": {
            "answer": "the cup",
            "regions": [{"amodal": rows, "score": 0.5, "name": "cup"}],
            "mask_type": "amodal",
        },
    }
    return [replies[question.split()[0]] for question in questions]

def forced(image, questions, answers):
    return [{"answer": answer["text"].upper()} for answer in answers]

print("before serving")
serve(brightest, predict_teacher_forced=forced, raw_images=True)
"""


def old_python() -> str | None:
    """A Python older than the one that maskwise needs, oldest first; None if there is none."""
    folders = sorted(Path.home().glob(".pyenv/versions/*/bin"))
    path = os.pathsep.join([os.environ["PATH"], *map(str, folders)])
    for version in OLD:
        # Places of pyenv that do not run come before those that do.
        for folder in path.split(os.pathsep):
            program = shutil.which(f"python{version}", path=folder)
            if program is None:
                continue
            done = subprocess.run([program, "-c", ""], capture_output=True, check=False)
            if done.returncode == 0:
                return program
    return None


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    run("worker", "--out", folder / "maskwise_worker.py")
    path = folder / "model.py"
    path.write_text(SCRIPT)
    return path


def pixels() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 255, (13, 17, 3), np.uint8)


def check_answers(model: SubprocessModel) -> None:
    rgb = pixels()
    image = Image.fromarray(rgb)
    expected = Mask.from_dense(rgb[:, :, 0] == rgb[:, :, 0].max())
    # The first request holds a PNG, the second raw pixels.
    for _ in range(2):
        replies = model.predict(image, ["bytes", "rows", "none", "dict"])
        assert replies[0].regions[0].visible == expected
        assert replies[1].regions[0].visible == expected
        assert replies[2].no_target
        assert replies[3].regions[0].amodal == expected
        assert replies[3].regions[0].score == 0.5
        assert str(replies[3].answer) == "the cup"
    sample = Sample(id="s", image_id="i", question="?", answer=Answer(text="the mug"))
    assert str(model.predict_teacher_forced(image, [sample])[0].answer) == "THE MUG"
    with pytest.raises(ModelError, match="KeyError: 'unknown'") as caught:
        model.predict(image, ["unknown"])
    text = "".join(traceback.format_exception(caught.value))
    assert "in brightest" in text, "the traceback of the model"
    assert model.predict(image, ["none"])[0].no_target, "it goes on after an error"


def test_a_model_without_any_package_answers(script: Path, tmp_path: Path) -> None:
    model = SubprocessModel(
        shlex.join([sys.executable, "-S", "-E", str(script)]), log=tmp_path / "log"
    )
    try:
        check_answers(model)
    finally:
        model.close()
    log = (tmp_path / "log").read_text()
    assert log.startswith("before serving")
    assert log.count("a library prints") == log.count("and a C library") == 4


def test_a_model_in_an_old_python_answers(script: Path, tmp_path: Path) -> None:
    program = old_python()
    if program is None:
        pytest.skip(f"no Python {', '.join(OLD)} is installed")
    model = SubprocessModel(shlex.join([program, str(script)]), log=tmp_path / "log")
    try:
        check_answers(model)
    finally:
        model.close()


def test_the_file_is_valid_in_python_3_8_and_imports_the_standard_library() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    others = {name.split(".")[0] for name in imported} - stdlib_module_names
    assert others == {"PIL"}, "Pillow is used where it is installed"


def test_the_command_prints_the_file() -> None:
    assert run("worker").stdout == SOURCE.read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_every_form_of_a_mask_gives_the_same_rle(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = (int(random.integers(1, 40)), int(random.integers(1, 40)))
    dense = random.random(size) < random.random()
    expected = {"size": list(size), "counts": Mask.from_dense(dense).counts}
    forms = [
        dense,
        dense.astype(np.uint8) * 255,
        np.asfortranarray(dense),
        dense.tolist(),
        dense.tobytes(),
        Image.fromarray(dense.astype(np.uint8)),
        expected,
        {"size": size, "counts": expected["counts"].encode()},
    ]
    for form in forms:
        assert to_rle(form, size) == expected


def test_tensors_of_torch_are_masks() -> None:
    torch = pytest.importorskip("torch")
    dense = np.eye(5, 7, dtype=bool)
    rle = to_rle(torch.from_numpy(dense), (5, 7))
    assert rle["counts"] == Mask.from_dense(dense).counts
    reply = {"regions": [{"visible": dense, "score": torch.tensor(0.25)}]}
    assert json.dumps(to_prediction(reply, (5, 7)))


def test_uncompressed_counts_are_compressed() -> None:
    rle = {"size": [2, 3], "counts": [1, 2, 3]}
    dense = np.array([[0, 1, 0], [1, 0, 0]], bool)
    assert to_rle(rle, (2, 3))["counts"] == Mask.from_dense(dense).counts


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((2, 2)), "threshold"),
        ([[0.5, 1.0], [0.0, 1.0]], "threshold"),
        (np.zeros((3, 2), bool), "the image is"),
        ([[1, 0], [1]], "the image is"),
        (b"\x00", "1 bytes"),
        ({"size": [4, 4], "counts": "0"}, "the image is"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_rle(mask, (2, 2))


def test_an_empty_list_means_no_target() -> None:
    assert to_prediction([], (2, 2)) == {"no_target": True}


@pytest.mark.parametrize("kind", range(5))
def test_every_filter_of_png_is_undone(kind: int) -> None:
    """Rows that are filtered by hand come back as they were."""
    rng = np.random.default_rng(kind)
    above = bytes(rng.integers(0, 256, 30, np.uint8))
    row = bytes(rng.integers(0, 256, 30, np.uint8))
    filtered = bytearray()
    for place, value in enumerate(row):
        left = row[place - 3] if place >= 3 else 0
        corner = above[place - 3] if place >= 3 else 0
        up = above[place]
        nearest = min(
            (left, up, corner), key=lambda item: abs(left + up - corner - item)
        )
        expected = [0, left, up, (left + up) // 2, nearest][kind]
        filtered.append((value - expected) % 256)
    assert maskwise_worker._unfilter(kind, bytes(filtered), above) == row


def test_a_png_decodes_without_pillow() -> None:
    steps = np.add.outer(np.arange(40), np.arange(50))[:, :, None] + [0, 60, 120]
    image = Image.fromarray(steps.astype(np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    decoded = maskwise_worker._decode_png(buffer.getvalue())
    assert (decoded.width, decoded.height) == image.size
    assert decoded.rgb == image.tobytes()


def test_a_run_with_the_worker_fails_nowhere(script: Path, tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", images=2, questions=("none", "rows"))
    command = shlex.join([sys.executable, "-S", "-E", str(script)])
    run_of_model = evaluate(f"command: {command}", data, protocols="strict")
    assert run_of_model["strict"].counts.failed == 0

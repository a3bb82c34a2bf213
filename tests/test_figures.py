"""The images of the documents are those that `make figures-docs` makes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SOURCES = {IMAGES / "kitchen.jpg"}
"""Photographs from which images are made."""


def shown_images() -> set[Path]:
    """The images that documents show or link to."""
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {
        (path.parent / link).resolve()
        for path in documents
        for link in re.findall(
            r"\]\(([^)\s]+\.(?:png|jpg))\)", path.read_text(encoding="utf-8")
        )
        if "://" not in link
    }


def test_every_image_is_shown_and_every_shown_image_exists() -> None:
    stored = {path for path in IMAGES.rglob("*") if path.suffix in (".png", ".jpg")}
    assert stored - SOURCES == shown_images()


def test_every_image_is_made_by_the_command() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in [*(ROOT / "docs").glob("*.py"), ROOT / "bench/photo_examples.py"]
    )
    for path in shown_images():
        parts = path.stem.rsplit("-", 1)
        assert parts[0] in text, f"make figures-docs does not make {path.name}"


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_one_command_makes_the_images(tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    command = [sys.executable, "-m", "docs.figures", "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--only", "report", "photo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "report: made",
        "photo: left as it is; it needs --photographs FOLDER",
    ]
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.png")]
    assert made == [Path("web/report-desktop.png")]
    with (
        Image.open(tmp_path / made[0]) as image,
        Image.open(IMAGES / made[0]) as stored,
    ):
        assert image.size == stored.size

"""docs/guides/web.md tells the truth: its example runs, and its images exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.fake import Whole
from tests.server.test_ask import png
from tests.server.test_server import serving

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "web.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def test_the_example_asks_two_questions_about_one_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
    (tmp_path / "kitchen.png").write_bytes(png())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with serving(Whole()) as address:
        exec(program.replace("http://localhost:8000", address), names)
    assert capsys.readouterr().out.splitlines() == [
        "What could I drink from? False",
        "Show it whole, hidden part included. True",
    ]


def test_the_images_exist() -> None:
    images = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)
    assert len(images) >= 8
    assert [image for image in images if not (DOCUMENT.parent / image).is_file()] == []

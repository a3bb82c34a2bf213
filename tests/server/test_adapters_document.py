"""The guides about own models, here and elsewhere, tell the truth: their examples run."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.harness.subprocess_model import SubprocessModel
from maskwise.harness.wire_format import decode_capabilities
from maskwise.schema import Prediction
from tests.server.fake import Whole
from tests.server.test_server import serving

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
TEXT = "\n".join(
    (GUIDES / name).read_text(encoding="utf-8")
    for name in ("adapters.md", "model_exchange.md")
)
PYTHON = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
IMAGE = Image.new("RGB", (4, 3))


def block(word: str) -> str:
    [found] = [text for text in PYTHON if word in text]
    return found


def test_the_class_is_a_model() -> None:
    names: dict[str, Any] = {}
    exec(block("class Mine"), names)

    class Filled(names["Mine"]):  # type: ignore[misc]
        def encode(self, image: Image.Image) -> tuple[int, int]:
            return image.height, image.width

        def decode(self, features: tuple[int, int], question: str) -> list[Any]:
            return [np.ones(features, np.bool_)] if question == "all" else []

    whole, nothing = Filled().predict(IMAGE, ["all", "none"])
    assert whole.regions[0].visible.area == 12
    assert nothing == Prediction(sample="", no_target=True)


def test_the_loop_is_a_command(tmp_path: Path) -> None:
    script = block("for line in sys.stdin").replace(
        "[...]", '[{"no_target": True} for _ in request["questions"]]'
    )
    (tmp_path / "loop.py").write_text(script)
    model = SubprocessModel(f"{sys.executable} {tmp_path / 'loop.py'}")
    assert (
        model.predict(IMAGE, ["a", "b"]) == [Prediction(sample="", no_target=True)] * 2
    )
    model.close()


def test_the_client_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    IMAGE.save(tmp_path / "kitchen.png")
    monkeypatch.chdir(tmp_path)
    with serving(Whole()) as address:
        exec(block("urllib.request").replace("http://localhost:8000", address), {})
    assert capsys.readouterr().out == "{'text': 'What could I drink from?'}\n"


def test_requests_and_replies_are_json() -> None:
    for text in re.findall(r"^```json\n(.*?)^```", TEXT, re.S | re.M):
        for record in re.split(r"\n(?=\{)", text.strip()):
            assert (
                "id" in json.loads(record)
                or decode_capabilities(record.encode()) is not None
            )

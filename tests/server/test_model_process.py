"""The model runs in a process that is restarted when it hangs or dies."""

import base64
import io
import resource
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from maskwise.errors import MaskwiseError, ModelError
from maskwise.harness.http_model import HttpModel
from maskwise.server.model_process import ModelProcess
from tests.server.fake import Whole
from tests.server.test_server import IMAGE, call, request, serving

SPEC = "tests.server.fake:Whole"


class Bounded(Whole):
    """A model whose process may have no more than 1 GB of address space beyond what it has."""

    def __init__(self) -> None:
        super().__init__()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def upload(data: bytes) -> dict[str, Any]:
    return {
        "id": "q",
        "image": {"png": base64.b64encode(data).decode()},
        "questions": ["what?"],
    }


def png_header(width: int, height: int) -> bytes:
    """A PNG of this size whose pixels are missing."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = b"IDAT" + zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in (chunk, pixels)
    )


@pytest.fixture(scope="module")
def bounded() -> Iterator[str]:
    model = ModelProcess(f"{__name__}:Bounded", {}, max_pixels=50_000_000)
    with serving(model) as address:
        yield address


def test_a_model_that_hangs_is_restarted(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    model = ModelProcess(SPEC, {"pids": str(pids)}, max_pixels=1000, timeout=0.5)
    with serving(model) as address:
        status, said = call(address, "POST", "/v1/predict", request("hang"))
        assert (status, said["id"]) == (504, "q")
        assert "within 0.5 seconds per question" in said["error"]
        with pytest.raises(
            ModelError,
            match=r"the model reports: the model did not answer within 0\.5 seconds",
        ):
            HttpModel(address).predict(IMAGE, ["hang"])
        model.timeout = 300
        status, said = call(address, "POST", "/v1/predict", request("a"))
        assert (status, said["predictions"][0]["answer"]["text"]) == (200, "a")
    used = pids.read_text().split()
    assert len(set(used)) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in used)


def test_a_model_whose_process_ends_is_restarted() -> None:
    with serving(ModelProcess(SPEC, {}, max_pixels=1000)) as address:
        status, said = call(address, "POST", "/v1/predict", request("die"))
        assert (status, said["error"].partition(";")[0]) == (
            500,
            "the model's process ended and was restarted",
        )
        assert call(address, "POST", "/v1/predict", request("a"))[0] == 200
        assert call(address, "POST", "/v1/predict", request("exit"))[0] == 500
        assert call(address, "POST", "/v1/predict", request("a"))[0] == 200


def test_a_model_that_cannot_be_loaded_is_an_error_at_the_start() -> None:
    with pytest.raises(MaskwiseError, match="unknown model 'nothing'"):
        ModelProcess("nothing", {}, max_pixels=1000)
    with pytest.raises(MaskwiseError, match="needs the ground truth"):
        ModelProcess("oracle", {}, max_pixels=1000)


def test_a_long_narrow_png_is_rejected(bounded: str) -> None:
    status, said = call(
        bounded, "POST", "/v1/predict", upload(png_header(1, 50_000_000))
    )
    assert status == 422
    assert "50000000 pixels" in said["error"]


def test_jpeg_2000_is_rejected(bounded: str) -> None:
    buffer = io.BytesIO()
    Image.new("L", (6000, 6000)).save(buffer, "JPEG2000")
    assert len(buffer.getvalue()) < 20_000
    status, said = call(bounded, "POST", "/v1/predict", upload(buffer.getvalue()))
    assert status == 422
    assert "cannot be read" in said["error"]
    assert call(bounded, "POST", "/v1/predict", request("a"))[0] == 200

"""Uploads that browsers do not show are converted once, in a bounded child process."""

import asyncio
import http.client
import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.images import open_image
from maskwise.server import browser_copies
from maskwise.server.browser_copies import BrowserCopies, BrowserCopy
from maskwise.server.responses import RequestRejectedError
from tests.server.fake import Whole
from tests.server.test_ask import upload
from tests.server.test_server import call, serving

MEGAPIXELS_50 = (7900, 6300)


def tiff(width: int = 8, height: int = 6, seed: int = 0, **options: Any) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "TIFF", **options)
    return buffer.getvalue()


class CountedChildren:
    """Counts the processes that are started, in place of subprocess.Popen."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.count += 1
        return subprocess.Popen(*arguments, **named)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> CountedChildren:
    counted = CountedChildren()
    fake = type(
        "Module",
        (),
        {
            "Popen": counted,
            "PIPE": subprocess.PIPE,
            "DEVNULL": subprocess.DEVNULL,
            "TimeoutExpired": subprocess.TimeoutExpired,
        },
    )
    monkeypatch.setattr(browser_copies, "subprocess", fake)
    return counted


def find_all(copies: BrowserCopies, images: list[bytes]) -> list[Any]:
    """Results of concurrent requests; the same bytes have the same id."""

    async def run() -> list[Any]:
        requests = [copies.find(str(hash(data)), data) for data in images]
        return await asyncio.gather(*requests, return_exceptions=True)

    return asyncio.run(run())


def test_concurrent_requests_share_one_conversion(children: CountedChildren) -> None:
    data = tiff()
    copies = BrowserCopies(1000)
    results = find_all(copies, [data] * 10)
    assert all(copy is results[0] for copy in results)
    copy = results[0]
    assert isinstance(copy, BrowserCopy)
    content = b"".join(copy.chunks())
    assert (copy.content_type, len(content)) == ("image/png", copy.bytes)
    assert Image.open(io.BytesIO(content)).tobytes() == open_image(data).tobytes()
    find_all(copies, [data])
    assert children.count == 1


def test_a_damaged_image_is_rejected_and_tried_once(children: CountedChildren) -> None:
    damaged = tiff(compression="tiff_lzw")[:100]
    copies = BrowserCopies(1000)
    for _ in range(2):
        (error,) = find_all(copies, [damaged])
        assert isinstance(error, RequestRejectedError)
        assert (error.status, "cannot be read" in str(error)) == (422, True)
    assert children.count == 1


@pytest.mark.parametrize(
    "limits", [{"memory": 2**24}, {"seconds": 0}], ids=["memory", "time"]
)
def test_a_conversion_has_bounds(limits: dict[str, int]) -> None:
    copies = BrowserCopies(10**8, **limits)
    (error,) = find_all(copies, [tiff(3000, 3000)])
    assert isinstance(error, RequestRejectedError)
    assert (error.status, "cannot be" in str(error)) == (422, True), error


def test_images_over_the_limit_get_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_copies, "MAX_CONVERSIONS", 1)
    results = find_all(BrowserCopies(1000), [tiff(), tiff(seed=1)])
    assert isinstance(results[0], BrowserCopy)
    assert isinstance(results[1], RequestRejectedError)
    assert (results[1].status, results[1].headers) == (503, {"Retry-After": "1"})


def test_closing_ends_a_conversion() -> None:
    copies = BrowserCopies(10**8)
    data = tiff(6000, 6000)
    closer = threading.Timer(0.3, copies.close)
    closer.start()
    started = time.monotonic()
    (error,) = find_all(copies, [data])
    assert isinstance(error, RequestRejectedError)
    assert time.monotonic() - started < 2


def test_damaged_tiff_files_print_nothing() -> None:
    """libtiff and Pillow print what they find; 200 damaged files reach all their messages."""
    program = """
import io, random, sys
from tests.server.test_browser_copies import tiff
from maskwise.errors import ImageError
from maskwise.images import open_image

data = tiff(60, 60, compression="tiff_lzw")
for seed in range(200):
    chance = random.Random(seed)
    damaged = bytearray(data)
    for _ in range(6):
        damaged[chance.randrange(len(data) - 250, len(data))] = chance.randrange(256)
    try:
        open_image(bytes(damaged))
    except ImageError:
        pass
"""
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def read_image(address: str, id: str) -> tuple[int, int]:
    """Status and length of an image, which is not kept."""
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    connection.request("GET", f"/v1/images/{id}")
    response = connection.getresponse()
    length = 0
    while part := response.read(2**20):
        length += len(part)
    connection.close()
    return response.status, length


def test_an_upload_is_sent_to_many_clients_at_once() -> None:
    with serving(Whole()) as address:
        id = upload(address, tiff(1200, 1000))
        answers: list[tuple[int, int]] = []
        threads = [
            threading.Thread(target=lambda: answers.append(read_image(address, id)))
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    assert len(answers) == 12
    assert {status for status, _ in answers} == {200}
    assert len({length for _, length in answers}) == 1


@pytest.mark.load
def test_many_requests_of_a_large_tiff_take_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maskwise.cli.main", "serve", "--port", "0"]
    environment = {**os.environ, "MASKWISE_TOKEN": "secret"}
    server = subprocess.Popen(
        [*command, "--model", "tests.server.fake:Whole"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert server.stderr is not None
        address = server.stderr.readline().partition(" at ")[2].split()[0]
        # A body has at most 64 MB, so that the image must compress.
        gradient = np.arange(MEGAPIXELS_50[0], dtype=np.uint32) // 31
        rows = np.arange(MEGAPIXELS_50[1], dtype=np.uint32)[:, None] // 25
        pixels = np.stack([gradient + 0 * rows, 0 * gradient + rows, gradient ^ rows])
        buffer = io.BytesIO()
        image = Image.fromarray(np.moveaxis(pixels, 0, 2).astype(np.uint8))
        image.save(buffer, "TIFF", compression="tiff_lzw")
        headers = {"Authorization": "Bearer secret"}
        status, stored = call(
            address,
            "POST",
            "/v1/images",
            buffer.getvalue(),
            **headers,
            Content_Type="application/octet-stream",
        )
        assert status == 200, stored
        answers: list[int] = []

        def read() -> None:
            connection = http.client.HTTPConnection(
                address.removeprefix("http://"), timeout=300
            )
            connection.request("GET", f"/v1/images/{stored['id']}", headers=headers)
            response = connection.getresponse()
            while response.read(2**20):
                pass
            answers.append(response.status)
            connection.close()

        started = time.monotonic()
        threads = [threading.Thread(target=read) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        seconds = time.monotonic() - started
        lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM"))
        megabytes = int(peak.split()[1]) / 1024
        print(f"24 requests: {seconds:.1f} s, peak of the server {megabytes:.0f} MB")
        assert answers == [200] * 24
        assert megabytes <= 400
    finally:
        server.kill()
        server.wait(60)
        assert server.stderr is not None
        server.stderr.close()

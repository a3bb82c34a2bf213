"""Copies of uploaded images for browsers, where these do not show the upload itself (TIFF).

A child process converts an image, with a deadline and a limit of memory, once for all requests. The copy is a file
without a name: it takes no memory of the server, and ends with it.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import IO

from maskwise.server.browser_images import content_type
from maskwise.server.convert_image import INVALID_IMAGE
from maskwise.server.limits import RETRY_SECONDS
from maskwise.server.responses import RequestRejectedError

CONVERSION_SECONDS = 30
"""The largest image (50 megapixels, LZW) takes 3 to 4 seconds."""

CONVERSION_BYTES = 2**30
"""Memory of a conversion. 50 megapixels of floating point, the worst case, take 0.7 GB."""

MAX_CONVERSIONS = 8
"""Images that wait for their conversion; further ones are rejected with 503. One is converted at a time."""

MAX_COPIES = 64
MAX_TOTAL_BYTES = 2**29
"""Limits of the copies; the least recently used ones are dropped."""

MAX_MESSAGE_BYTES = 2000
"""Bytes of what the child says about an invalid image."""

CHUNK_BYTES = 2**18
"""Bytes of a response that are read at once."""


class BrowserCopy:
    """A converted image in a file that is closed with the last reader."""

    def __init__(self, file: IO[bytes], content_type: str) -> None:
        self.content_type = content_type
        self.bytes = os.fstat(file.fileno()).st_size
        self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece. Several readers do not disturb each other."""
        for start in range(0, self.bytes, CHUNK_BYTES):
            yield os.pread(self._descriptor, CHUNK_BYTES, start)


class BrowserCopies:
    """Copies by the id of the image. max_pixels: of an image that is converted."""

    def __init__(
        self,
        max_pixels: int,
        *,
        seconds: int = CONVERSION_SECONDS,
        memory: int = CONVERSION_BYTES,
    ) -> None:
        self._arguments = [str(max_pixels), str(seconds), str(memory)]
        self._seconds = seconds
        # A copy, or why there is none: a failed conversion is not tried again.
        self._outcomes: OrderedDict[str, BrowserCopy | str] = OrderedDict()
        self._conversions: dict[str, asyncio.Task[BrowserCopy | str]] = {}
        self._turn = asyncio.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    async def find(self, id: str, data: bytes) -> BrowserCopy:
        """The copy of an image, made from its bytes if there is none yet.

        RequestRejectedError: 422 where the image cannot be converted, 503 where too many images wait.
        """
        outcome = self._outcomes.get(id)
        if outcome is None:
            # Requests that come meanwhile wait for the same conversion; one that leaves does not end it.
            outcome = await asyncio.shield(self._conversion(id, data))
        else:
            self._outcomes.move_to_end(id)
        if isinstance(outcome, str):
            raise RequestRejectedError(422, outcome)
        return outcome

    def close(self) -> None:
        """End the conversion that runs, and begin no other."""
        self._closed = True
        child = self._child
        if child is not None:
            child.kill()

    def _conversion(self, id: str, data: bytes) -> asyncio.Task[BrowserCopy | str]:
        task = self._conversions.get(id)
        if task is None:
            if len(self._conversions) >= MAX_CONVERSIONS:
                headers = {"Retry-After": str(RETRY_SECONDS)}
                raise RequestRejectedError(
                    503, "too many images wait to be converted", headers
                )
            task = asyncio.create_task(self._convert(id, data))
            self._conversions[id] = task
        return task

    async def _convert(self, id: str, data: bytes) -> BrowserCopy | str:
        try:
            async with self._turn:
                outcome = await asyncio.to_thread(self._run_child, data)
            self._outcomes[id] = outcome
            self._drop_oldest()
        finally:
            del self._conversions[id]
        return outcome

    def _run_child(self, data: bytes) -> BrowserCopy | str:
        """Convert an image in a child process; a text says why that failed."""
        if self._closed:
            return "the server is ending"
        command = [sys.executable, "-m", "maskwise.server.convert_image"]
        with (
            tempfile.TemporaryFile() as file,
            subprocess.Popen(
                [*command, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.DEVNULL,
            ) as child,
        ):
            self._child = child
            try:
                child.communicate(data, self._seconds)
            except subprocess.TimeoutExpired:
                return f"the image cannot be converted within {self._seconds} seconds"
            finally:
                child.kill()
                self._child = None
            start = os.pread(file.fileno(), MAX_MESSAGE_BYTES, 0)
            if child.returncode == INVALID_IMAGE:
                return start.decode(errors="replace")
            kind = content_type(start)
            if child.returncode != 0 or kind is None:
                # Out of memory or of CPU time, or the disk is full.
                return f"the image cannot be converted (exit code {child.returncode})"
            return BrowserCopy(file, kind)

    def _drop_oldest(self) -> None:
        # The last one stays, however large it is: it is about to be sent.
        while len(self._outcomes) > 1 and self._is_full():
            self._outcomes.popitem(last=False)

    def _is_full(self) -> bool:
        copies = self._outcomes.values()
        total = sum(copy.bytes for copy in copies if not isinstance(copy, str))
        return len(self._outcomes) > MAX_COPIES or total > MAX_TOTAL_BYTES


def split_chunks(data: bytes) -> Iterator[bytes]:
    """Bytes in memory, piece by piece: a response that is passed on whole is copied for every client."""
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]

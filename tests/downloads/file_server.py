"""A local HTTP server of files that can misbehave, for tests of downloads."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Serves `server.content`, unless the script has a turn for this request."""

    server: "FileServer"

    def do_GET(self) -> None:
        self.server.requests.append(dict(self.headers))
        if self.server.script:
            self.server.script.pop(0)(self)
        else:
            self.serve()

    def serve(self, *, cut: int | None = None) -> None:
        """Answer as a correct server; `cut`: break off after this many bytes of the body."""
        server = self.server
        content = server.content
        first = self._first()
        if first is not None and first >= len(content):
            self.reply(416, b"", **{"Content-Range": f"bytes */{len(content)}"})
            return
        body = content if first is None else content[first:]
        headers = {"Content-Length": str(len(body)), **server.validators}
        if first is not None:
            headers["Content-Range"] = (
                f"bytes {first}-{len(content) - 1}/{len(content)}"
            )
        self.reply(
            200 if first is None else 206,
            body if cut is None else body[:cut],
            **headers,
        )

    def _first(self) -> int | None:
        """The first byte asked for, or None for the whole file."""
        asked = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if not self.server.ranges or asked is None:
            return None
        if condition is not None and condition not in self.server.validators.values():
            return None
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class FileServer(ThreadingHTTPServer):
    """`script`: what to do with the next requests, in order. `ranges`: whether a part of the file can be asked for."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.ranges = True
        self.validators = {"ETag": '"1"'}
        self.script: list[Any] = []
        self.requests: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file.bin"


@contextlib.contextmanager
def serving(content: bytes, *script: Any) -> Iterator[FileServer]:
    """A server of one file; `script`: what to do with the first requests."""
    server = FileServer(content)
    server.script = list(script)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

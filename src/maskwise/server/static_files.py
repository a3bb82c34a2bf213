"""The pages and their scripts and styles, kept in memory: a request names one of them or none, so no path can escape.

Every file has an ETag and is revalidated, so that pages are never older than the server.
"""

import functools
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from maskwise.server.responses import RequestRejectedError

FOLDER = Path(str(files("maskwise.server") / "static"))
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

ASK_PAGES = {"/": "ask.html", "/browse": "browse.html"}
REVIEW_PAGES = {
    "/": "review.html",
    "/review": "review.html",
    "/review/owner": "owner.html",
    "/review-worker.js": "js/review_worker.js",
}
"""Files of the paths of `maskwise serve` and of `maskwise review`. A service worker acts below its own folder only."""


class StaticFile(NamedTuple):
    """A file with its content type and ETag."""

    content: bytes
    media_type: str
    etag: str


@functools.cache
def read_static_files() -> dict[str, StaticFile]:
    """All files by their path below the folder."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[path.relative_to(FOLDER).as_posix()] = StaticFile(
                content, TYPES[path.suffix], etag
            )
    return found


def page_router(pages: Mapping[str, str]) -> APIRouter:
    """`/static/...` and the pages. pages: file of each path, ASK_PAGES or REVIEW_PAGES."""
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{name:path}")
    async def static(request: Request, name: str) -> Response:
        return _respond(request, name)

    def add_page(path: str, file: str) -> None:
        @router.get(path)
        async def page(request: Request) -> Response:
            return _respond(request, file)

    for path, file in pages.items():
        add_page(path, file)
    return router


def _respond(request: Request, name: str) -> Response:
    file = read_static_files().get(name)
    if file is None:
        raise RequestRejectedError(404, "Not Found: see /docs")
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    known = [
        tag.strip().removeprefix("W/")
        for tag in request.headers.get("if-none-match", "").split(",")
    ]
    if file.etag in known:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)

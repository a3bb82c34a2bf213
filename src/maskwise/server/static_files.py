"""The pages and their scripts and styles, kept in memory: a request names one of them or none, so no path can escape.

Every file has an ETag and is revalidated, so that pages are never older than the server.
"""

import functools
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from litestar import Request, Response, Router, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from maskwise.server.responses import RequestRejectedError

FOLDER = Path(str(files("maskwise.server") / "static"))
# The framework adds the charset to texts.
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

ASK_PAGES = {"/": "ask.html", "/browse": "browse.html"}
REVIEW_PAGES = {
    "/": "review.html",
    "/review": "review.html",
    "/review/judge": "judge.html",
    "/review/owner": "owner.html",
    "/review-worker.js": "js/review_worker.js",
}
"""Files of the paths of `maskwise serve` and of `maskwise review`. A service worker acts below its own folder only."""


@functools.cache
def read_static_files() -> dict[str, tuple[bytes, str, str]]:
    """Content, content type and ETag of all files, by their path below the folder."""
    static_files = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            name = path.relative_to(FOLDER).as_posix()
            static_files[name] = (content, TYPES[path.suffix], etag)
    return static_files


@get("/static/{name:path}", sync_to_thread=False)
def read_static(
    request: Request[Any, Any, Any], name: FromPath[str]
) -> Response[bytes]:
    """A script, style or icon."""
    # A parameter that may contain slashes begins with the one before it.
    return _respond(request, name.removeprefix("/"))


def page_router(pages: Mapping[str, str]) -> Router:
    """`/static/...` and the pages. pages: file of each path, ASK_PAGES or REVIEW_PAGES."""
    handlers = [_page_route(path, file) for path, file in pages.items()]
    return Router("/", route_handlers=[read_static, *handlers], include_in_schema=False)


def _page_route(path: str, file: str) -> HTTPRouteHandler:
    @get(path, sync_to_thread=False)
    def read_page(request: Request[Any, Any, Any]) -> Response[bytes]:
        return _respond(request, file)

    return read_page


def _respond(request: Request[Any, Any, Any], name: str) -> Response[bytes]:
    file = read_static_files().get(name)
    if file is None:
        raise RequestRejectedError(404, "Not Found: see /docs")
    content, media_type, etag = file
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    # A proxy may mark an ETag as weak; the content is the same.
    known = [
        tag.strip().removeprefix("W/")
        for tag in request.headers.get("if-none-match", "").split(",")
    ]
    if etag in known:
        return Response(b"", status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)

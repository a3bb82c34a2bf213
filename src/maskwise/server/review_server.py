"""`maskwise review`, put together: the review of a dataset, its routes and pages, and a listening server."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from fastapi import FastAPI

from maskwise.errors import DownloadError
from maskwise.models.photo.click_refiner import load_click_refiner
from maskwise.review.refine import Refiner
from maskwise.review.review import Review
from maskwise.server.app import make_app
from maskwise.server.http_server import bind_port, open_server
from maskwise.server.review_messages import review_schemas
from maskwise.server.review_routes import ReviewService, review_router
from maskwise.server.static_files import REVIEW_PAGES, page_router


def make_review_app(service: ReviewService) -> FastAPI:
    """The application."""
    app = make_app([review_router(service), page_router(REVIEW_PAGES)])
    document = app.openapi

    def with_schemas() -> dict[str, Any]:
        found = document()
        found["components"]["schemas"].update(review_schemas())
        return found

    app.openapi = with_schemas  # type: ignore[method-assign]
    return app


def load_refiner() -> Refiner | None:
    """MobileSAM, if its weights are installed."""
    try:
        return load_click_refiner()
    except DownloadError:
        return None


def serve_review(
    review: Review,
    host: str,
    port: int,
    *,
    begin: Callable[[], None],
    ready: Callable[[str], None],
    refiner: Refiner | None = None,
    allowed_hosts: Iterable[str] = (),
) -> None:
    """Serve until interrupted. Every route asks for a token, on every host.

    begin: creates the review; called when the port is taken, so that a start that fails changes nothing. ready: called
    with the address.
    """
    with contextlib.closing(bind_port(host, port)) as bound:
        begin()
        service = ReviewService(review, refiner)
        try:
            app = make_review_app(service)
            server = open_server(
                app,
                host,
                port,
                has_token=True,
                allowed_hosts=allowed_hosts,
                bound=bound,
            )
            ready(server.address)
            server.run()
        finally:
            service.close()

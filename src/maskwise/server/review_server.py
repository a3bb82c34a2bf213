"""`maskwise review`, put together: the review of a dataset, its routes and pages, and a listening server."""

import contextlib
from collections.abc import Callable, Iterable

from maskwise.errors import DownloadError
from maskwise.models.photo.click_refiner import load_click_refiner
from maskwise.review.refine import Refiner
from maskwise.review.review import Review
from maskwise.server.app import AsgiApp, make_app
from maskwise.server.http_server import bind_port, open_server
from maskwise.server.review_access import ReviewAccess
from maskwise.server.review_routes import review_router
from maskwise.server.static_files import REVIEW_PAGES, page_router


def make_review_app(review: Review, refiner: Refiner | None = None) -> AsgiApp:
    """The application. refiner: None where no promptable model is installed."""
    access = ReviewAccess(review)
    routers = [review_router(review, access, refiner), page_router(REVIEW_PAGES)]
    return make_app(routers, access=access)


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
        try:
            server = open_server(
                make_review_app(review, refiner),
                host,
                port,
                has_token=True,
                allowed_hosts=allowed_hosts,
                bound=bound,
            )
            ready(server.address)
            server.run()
        finally:
            review.database.close()

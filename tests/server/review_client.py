"""A review server in a thread, and a client that speaks to it as the page does."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec

from maskwise.review.refine import Refiner
from maskwise.review.review import Review
from maskwise.server.http_server import open_server
from maskwise.server.review_routes import PREFIX
from maskwise.server.review_server import make_review_app


@contextlib.contextmanager
def serving_review(
    review: Review, refiner: Refiner | None = None, *, port: int = 0
) -> Iterator[str]:
    """The address of a review server that runs in a thread. port: 0 for a free one."""
    app = make_review_app(review, refiner)
    server = open_server(app, "127.0.0.1", port, has_token=True)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.address
    finally:
        server.server.should_exit = True
        thread.join(300)
        review.database.close()
        assert not thread.is_alive()


class Client:
    """Requests of one browser or program. token: sent as a bearer token; None to sign in with a cookie."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.host = address.removeprefix("http://")
        self.headers = {"Content-Type": "application/json"}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def sign_in(self, token: str) -> dict[str, Any]:
        """Exchange a token for a cookie, as the page does."""
        status, headers, body = self.send("POST", "/session", {"token": token})
        assert status == 200, body
        self.headers["Cookie"] = headers["set-cookie"].partition(";")[0]
        session: dict[str, Any] = json.loads(body)
        self.headers["X-CSRF-Token"] = session["csrf"]
        return session

    def send(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one request."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        try:
            connection.request(method, PREFIX + path, data, self.headers | headers)
            response = connection.getresponse()
            return (
                response.status,
                {k.lower(): v for k, v in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()

    def call(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and decoded body."""
        status, _, found = self.send(method, path, body, **headers)
        return status, json.loads(found) if found else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded body of a request that succeeds."""
        status, found = self.call(method, path, body)
        assert status in (200, 204), (status, found)
        return found

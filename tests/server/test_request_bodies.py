"""Bodies of requests: types are taken strictly, limits hold for every route, and memory is bounded."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from maskwise.review.database import ReviewDatabase
from maskwise.review.records import MAX_BODY_BYTES
from maskwise.review.review import Review
from maskwise.server.limits import JSON_BYTES, RequestLimits
from maskwise.server.requests import LargeBodies
from maskwise.server.responses import RequestRejectedError
from tests.review.datasets import box, write_samples
from tests.server.fake import Whole
from tests.server.review_client import Client, serving_review
from tests.server.test_ask import png, send, upload
from tests.server.test_server import call, request, serving


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Review:
    folder = tmp_path_factory.mktemp("review")
    review = Review(
        write_samples(folder / "data", 8), ReviewDatabase(folder / "review.sqlite")
    )
    review.create()
    return review


@pytest.fixture(scope="module")
def client(review: Review) -> Iterator[Client]:
    token = review.add_reviewer("ada")
    with serving_review(review) as address:
        yield Client(address, token)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/queue", {"count": "3"}),
        ("/queue", {"count": 3.5}),
        ("/queue", {"count": True}),
        ("/queue", {"count": 0}),
        ("/queue", {"count": 17}),
        ("/queue", [3]),
        ("/queue", None),
        ("/leases", {"renew": ["1"]}),
        ("/leases", {"renew": [1] * 65}),
        ("/undo", {"id": "not a uuid"}),
        ("/repair", {"visible": box(0, 0, 1, 1)}),
        ("/refine", {"item": 0, "points": []}),
        ("/refine", {"item": 0, "points": [{"x": 1, "y": 1, "z": 1}]}),
        ("/decisions", {"id": str(uuid4()), "item": "0", "verdict": "accept"}),
    ],
)
def test_fields_of_the_review_are_taken_strictly(
    client: Client, path: str, body: Any
) -> None:
    data = b"null" if body is None else body
    status, answer = client.call("POST", path, data)
    assert (status, list(answer)) == (422, ["error"])
    assert answer["error"].startswith("invalid request: ")


def test_an_empty_body_is_named(client: Client) -> None:
    assert client.call("POST", "/queue", b"") == (
        400,
        {"error": "invalid request: the body is empty"},
    )


@pytest.mark.parametrize("limit", ["0", "501", "x", "1.5", "-1", ""])
def test_parameters_of_an_address_are_checked_and_named(
    client: Client, limit: str
) -> None:
    status, answer = client.call("GET", f"/history?limit={limit}")
    assert status == 422
    assert "query limit: " in answer["error"]


@pytest.mark.parametrize("item", ["x", "-1", "1.5", str(2**31)])
def test_numbers_in_an_address_are_checked_and_named(client: Client, item: str) -> None:
    for method, path in (("GET", "/items/{}"), ("DELETE", "/items/{}/draft")):
        status, answer = client.call(method, path.format(item))
        assert (status, "path item: " in answer["error"]) == (422, True), answer


def test_a_token_is_checked_before_the_body_is_read(client: Client) -> None:
    """A body that never comes is not waited for, if the request may not be made at all."""
    connection = http.client.HTTPConnection(client.host, timeout=20)
    connection.putrequest("POST", "/review/api/decisions")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(MAX_BODY_BYTES))
    connection.endheaders()
    assert connection.getresponse().status == 401
    connection.close()


def test_every_route_has_a_limit_of_its_own() -> None:
    with serving(Whole(), limits=RequestLimits(body_bytes=2**21)) as address:
        question = {"image": "x", "question": "q" * JSON_BYTES}
        status, answer = send(address, "POST", "/v1/ask", question)
        assert (status, answer["error"]) == (
            413,
            f"the body is larger than {JSON_BYTES} bytes",
        )
        large = png(700, 700)
        assert len(large) > JSON_BYTES
        assert upload(address, large)
        status, _ = call(address, "POST", "/v1/predict", b" " * (2**21 + 1))
        assert status == 413


def test_a_client_that_leaves_in_the_middle_of_its_body_harms_nobody() -> None:
    with serving(Whole()) as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://"))
        connection.putrequest("POST", "/v1/predict")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "1000")
        connection.endheaders(b'{"id": "q"')
        connection.close()
        assert call(address, "POST", "/v1/predict", request("a"))[0] == 200


class Messages:
    """A request whose body arrives in parts."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    async def receive(self) -> dict[str, Any]:
        part = self.parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self.parts)}


def run_through(bodies: LargeBodies, requests: list[tuple[str, Messages]]) -> list[Any]:
    """The results of requests at once. requests: client and body."""

    async def run() -> list[Any]:
        calls = [
            bodies({"client": (client, 1)}, messages.receive, None)
            for client, messages in requests
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(run())


async def read_all(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads the whole body and takes a moment."""
    while (await receive())["more_body"]:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)


def rejections(results: list[Any]) -> list[str]:
    errors = [result for result in results if result is not None]
    for error in errors:
        assert isinstance(error, RequestRejectedError)
        assert (error.status, error.headers) == (503, {"Retry-After": "1"})
    return [str(error) for error in errors]


def test_requests_with_complete_bodies_are_limited() -> None:
    bodies = LargeBodies(read_all, memory=1000, limit=2)
    requests = [(f"client {number}", Messages(b"a", b"b")) for number in range(6)]
    assert (
        rejections(run_through(bodies, requests))
        == ["too many requests are waiting"] * 4
    )
    # The places are free again.
    assert run_through(bodies, [("a", Messages(b"a"))]) == [None]


def test_bytes_of_bodies_are_limited_for_each_client_and_for_all() -> None:
    bodies = LargeBodies(read_all, memory=100)
    part = b"." * 30
    same = [("a", Messages(part)), ("a", Messages(part)), ("b", Messages(part))]
    message = "too many bytes are being uploaded; try again"
    assert rejections(run_through(bodies, same)) == [message]
    different = [(name, Messages(part)) for name in "abcd"]
    assert rejections(run_through(bodies, different)) == [message]
    assert run_through(bodies, [("a", Messages(b"." * 50))]) == [None]


def test_memory_and_places_are_free_again_after_a_failure() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise RuntimeError("failed")

    bodies = LargeBodies(app, memory=20, limit=1)
    for _ in range(3):
        (result,) = run_through(bodies, [("a", Messages(b"." * 10))])
        assert isinstance(result, RuntimeError)


def begin_upload(address: str, path: str, kind: str) -> http.client.HTTPConnection:
    """A request that announces a body of a megabyte and sends ten bytes of it."""
    token = call(address, "GET", "/v1/session")[1]["token"]
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", kind)
    connection.putheader("Authorization", f"Bearer {token}")
    connection.putheader("Content-Length", str(10**6))
    connection.endheaders(b"." * 10)
    return connection


def test_slow_bodies_do_not_keep_others_out_and_are_ended() -> None:
    limits = RequestLimits(body_grace_seconds=1.0)
    with serving(Whole(), limits=limits) as address:
        slow = [
            begin_upload(address, "/v1/images", "application/octet-stream")
            for _ in range(20)
        ]
        slow += [
            begin_upload(address, "/v1/predict", "application/json") for _ in range(20)
        ]
        started = time.monotonic()
        assert upload(address, png())
        assert call(address, "POST", "/v1/predict", request("a"))[0] == 200
        assert time.monotonic() - started < 0.9, "the slow ones are not waited for"
        for connection in slow:
            response = connection.getresponse()
            error = json.loads(response.read())["error"]
            assert (response.status, "too slowly" in error) == (408, True)
            connection.close()


def test_a_failure_of_the_server_is_logged_and_not_sent(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    review = Review(
        write_samples(tmp_path / "data", 4), ReviewDatabase(tmp_path / "review.sqlite")
    )
    review.create()
    token = review.add_reviewer("ada")

    def fail(*_arguments: Any, **_named: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(review, "history", fail)
    with serving_review(review) as address:
        status, headers, body = Client(address, token).send("GET", "/history")
    assert status == 500
    assert "secret" not in body.decode()
    assert json.loads(body)["error"]
    assert "secret detail" in caplog.text
    assert headers["x-content-type-options"] == "nosniff"


def test_many_uploads_at_once_are_all_stored() -> None:
    with serving(Whole()) as address:
        names: list[str] = []
        threads = [
            threading.Thread(
                target=lambda seed=seed: names.append(upload(address, png(seed=seed)))
            )
            for seed in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(names)) == 20

"""The client of a server, against servers that are away, busy, wrong, endless or slow."""

import contextlib
import errno
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from maskwise.errors import ModelError, ModelGoneError
from maskwise.harness import http_model
from maskwise.harness.http_model import HttpModel
from maskwise.harness.registry import make_predictor
from maskwise.harness.wire_format import decode_response, response_to_predictions
from maskwise.schema import Prediction

IMAGE = Image.new("RGB", (3, 2), "red")
HEALTH = {"status": "ok", "model": "m", "weights_hash": "w"}
Turn = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Takes one turn of the script for every question; healthy otherwise."""

    server: "Server"

    def do_GET(self) -> None:
        self.reply(200, HEALTH)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(json.loads(body))
        self.server.script.pop(0)(self)

    def reply(self, status: int, content: Any, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Turn] = []
        self.bodies: list[Any] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(http_model, "FIRST_PAUSE", 0.001)
    with Server() as running:
        thread = threading.Thread(
            target=running.serve_forever, kwargs={"poll_interval": 0.01}
        )
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def say(status: int, content: Any, **headers: str) -> Turn:
    return lambda handler: handler.reply(status, content, **headers)


def answer(handler: Handler) -> None:
    handler.reply(
        200,
        {"id": handler.server.bodies[-1]["id"], "predictions": [{"no_target": True}]},
    )


def answer_with_none(handler: Handler) -> None:
    handler.reply(200, {"id": handler.server.bodies[-1]["id"], "predictions": []})


def hang_up(handler: Handler) -> None:
    handler.connection.close()


def drip(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def flood(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 2**20)


@pytest.mark.parametrize(
    "trouble",
    [
        say(503, {"error": "busy"}, Retry_After="0"),
        say(429, {"error": "slow down"}),
        say(502, b"<html>bad gateway</html>"),
        say(500, b"Internal Server Error"),
        say(200, b'{"id": "1", "pre', Content_Length="100"),
        hang_up,
    ],
)
def test_passing_trouble_is_got_over(server: Server, trouble: Turn) -> None:
    server.script = [trouble, trouble, answer]
    assert HttpModel(server.address).predict(IMAGE, ["a"]) == [
        Prediction(sample="", no_target=True)
    ]
    assert len(server.bodies) == 3


def test_lasting_trouble_stops_the_run(server: Server) -> None:
    server.script = [say(503, {"error": "busy"})] * 4
    with pytest.raises(
        ModelGoneError, match=r"given up after 4 attempts: status 503, busy"
    ):
        HttpModel(server.address, tries=4).predict(IMAGE, ["a"])


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        (
            say(500, {"id": "1", "error": "out of memory"}),
            "the model reports: out of memory",
        ),
        (say(422, {"error": "too many questions"}), "status 422: too many questions"),
        (say(302, b"", Location="http://elsewhere"), "status 302"),
        (say(200, b"<html>hello</html>"), "the response is invalid"),
        (say(200, {"id": "7", "predictions": []}), "responded to another request"),
        (answer_with_none, "0 predictions for 1 questions"),
        (flood, "longer than 67108864 bytes"),
        (drip, "did not respond within 0.5 seconds"),
    ],
)
def test_a_wrong_reply_fails_its_request_alone(
    server: Server, turn: Turn, message: str
) -> None:
    server.script = [turn, answer]
    client = HttpModel(server.address, timeout=0.5 if turn is drip else 60)
    with pytest.raises(ModelError) as caught:
        client.predict(IMAGE, ["a"])
    assert message in str(caught.value)
    assert not isinstance(caught.value, ModelGoneError)
    client.timeout = 60
    assert len(client.predict(IMAGE, ["a"])) == 1


def test_a_line_that_dies_where_any_time_may_pass(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = HttpModel(server.address, timeout=None, tries=2)

    def die(*arguments: Any, **more: Any) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr(client, "_exchange", die)
    with pytest.raises(ModelGoneError, match=r"given up after 2 attempts: .*timed out"):
        client.predict(IMAGE, ["a"])


@pytest.mark.parametrize(
    ("status", "message"), [(401, "MASKWISE_TOKEN"), (404, "maskwise serve")]
)
def test_what_every_request_will_meet_stops_the_run(
    server: Server, status: int, message: str
) -> None:
    server.script = [say(status, {"error": "no"})]
    with pytest.raises(ModelGoneError, match=message):
        HttpModel(server.address).predict(IMAGE, ["a"])


def test_nobody_there(server: Server) -> None:
    free = Server()
    free.server_close()
    with pytest.raises(ModelGoneError, match=r"given up after 2 attempts: .*refused"):
        make_predictor(free.address, tries=2)


@pytest.mark.parametrize(
    "address",
    [
        "http://",
        "http://a:b",
        "http://user:secret@host",
        "http://host?x=1",
        "https://[::1",
    ],
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ModelError) as caught:
        make_predictor(address)
    assert "secret" not in str(caught.value)


@given(
    st.binary(max_size=200)
    | st.text(max_size=80).map(lambda text: ('{"id": "1", "error": ' + text).encode())
)
def test_no_bytes_are_more_than_a_model_error(text: bytes) -> None:
    with contextlib.suppress(ModelError):
        decode_response(text)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["regions", "answer", "text", "visible", "size", "counts"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3))
def test_predictions_of_any_form_are_judged_one_by_one(said: list[Any]) -> None:
    reply = decode_response(json.dumps({"id": "1", "predictions": said}).encode())
    found = response_to_predictions(reply, len(said), (8, 8))
    assert len(found) == len(said)
    for one, raw in zip(found, said):
        assert one.error is not None or isinstance(raw, dict)


def drip_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-Slow: 1\r\n")
        time.sleep(0.05)


def drip_status(handler: Handler) -> None:
    for _ in range(10_000):
        handler.wfile.write(b"H")
        time.sleep(0.05)


def continue_for_ever(handler: Handler) -> None:
    while True:
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def wait_silently(handler: Handler) -> None:
    time.sleep(3600)


@pytest.mark.parametrize(
    "turn", [drip_headers, drip_status, continue_for_ever, wait_silently, drip]
)
def test_the_timeout_holds_for_the_whole_exchange(server: Server, turn: Turn) -> None:
    server.script = [turn, answer]
    client = HttpModel(server.address, timeout=0.3)
    with pytest.raises(ModelError, match=r"did not respond within 0\.3 seconds"):
        client.predict(IMAGE, ["a"])
    assert client.predict(IMAGE, ["a"]) == [Prediction(sample="", no_target=True)], (
        "the next one is fine"
    )

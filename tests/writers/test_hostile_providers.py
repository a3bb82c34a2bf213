"""Endpoints that redirect, flood or lie, and ledgers that are damaged, locked or on a full disk."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from maskwise.errors import StoreError
from maskwise.writers import (
    Completion,
    CompletionRequest,
    Ledger,
    SendLimits,
    complete,
    guarded_http,
    open_client,
)
from maskwise.writers.client import WriterError
from maskwise.writers.cost import ModelPrice
from maskwise.writers.request import parse_output, read_count

PRICE = ModelPrice(input=1.0, output=10.0, batch=0.5)
REQUEST = CompletionRequest(prompt_version="1", system="", text="hello", schema={})
ANSWER = Completion(status="ok", output={"a": 1}, input_tokens=10, output_tokens=3)

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def endpoint(answer: Answer) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server; its address, and the headers of all requests that reached it."""
    received: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            received.append({name.lower(): text for name, text in self.headers.items()})
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with contextlib.suppress(ConnectionError):
                answer(self)

        do_GET = do_POST

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def send_json(handler: BaseHTTPRequestHandler, body: Any, **headers: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def ask(name: str, address: str, monkeypatch: pytest.MonkeyPatch) -> Completion:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-key")
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    base_url = address if name == "anthropic" else f"{address}/v1"
    client = open_client(name, model="m", base_url=base_url, max_retries=0)
    with contextlib.closing(client):
        return client.complete(REQUEST)


NAMES = pytest.mark.parametrize("name", ["anthropic", "openai"])


@NAMES
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_keys_do_not_follow_a_redirect(
    name: str, status: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(lambda handler: send_json(handler, {})) as (elsewhere, stolen):
        target = f"{elsewhere}/x" if scheme == "http" else "file:///etc/passwd"

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Location", target)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with (
            endpoint(redirect) as (address, _),
            pytest.raises(WriterError, match="redirects to"),
        ):
            ask(name, address, monkeypatch)
    assert stolen == []


@NAMES
def test_a_flood_is_cut_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_http, "REPLY_BYTES", 100_000)
    sent = 0

    def flood(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        for _ in range(10_000):
            handler.wfile.write(b" " * 100_000)
            sent += 100_000

    with (
        endpoint(flood) as (address, _),
        pytest.raises(WriterError, match="more than 100000 bytes"),
    ):
        ask(name, address, monkeypatch)
    assert sent < 50_000_000, "a gigabyte was offered"


@NAMES
def test_a_compressed_reply_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bomb(handler: BaseHTTPRequestHandler) -> None:
        send_json(handler, b"\x1f\x8b", Content_Encoding="gzip")

    with (
        endpoint(bomb) as (address, received),
        pytest.raises(WriterError, match="compressed"),
    ):
        ask(name, address, monkeypatch)
    assert received[0]["accept-encoding"] == "identity"


@NAMES
@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        "text",
        5,
        {"choices": []},
        {"choices": None, "content": None},
        {"choices": [{}], "content": [{}]},
        {"choices": [{"message": None}], "content": [None]},
        {"choices": [{"message": {"content": 5}}], "content": [{"type": "text"}]},
        {"choices": [{"message": {"content": "["}}], "usage": {"prompt_tokens": -9}},
        b"no json",
        b"",
        b'"\\ud800"',
        b"[" * 100_000,
    ],
)
def test_any_reply_is_a_completion_or_an_error(
    name: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(lambda handler: send_json(handler, body)) as (address, _):
        try:
            completion = ask(name, address, monkeypatch)
        except WriterError:
            return
    assert completion.status in ("invalid", "failed")
    assert completion.output is None
    assert completion.input_tokens >= 0


def test_reported_tokens_cannot_lower_the_cost() -> None:
    values = [5, -5, None, "7", 1.5, True, 10**30]
    assert [read_count(value) for value in values] == [5, 0, 0, 0, 0, 0, 10**9]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "\ud800", "{1}" * 99_000, "null"]
)
def test_any_text_of_a_reply_is_parsed_or_invalid(text: str) -> None:
    assert parse_output(text, input_tokens=1, output_tokens=1).status == "invalid"


def test_answers_that_follow_two_failures_are_recorded(tmp_path: Path) -> None:
    """Eight requests in flight; two fail at once, the others are answered, and paid for, a little later."""

    all_in_flight = threading.Barrier(8)

    class Half:
        provider = "p"
        model = "m"
        has_batches = False

        def close(self) -> None:
            pass

        def complete(self, request: CompletionRequest) -> Completion:
            all_in_flight.wait()
            if request.text in "02":
                raise WriterError("broken")
            threading.Event().wait(0.1)
            return ANSWER

    requests = [
        CompletionRequest(prompt_version="1", system="", text=str(number), schema={})
        for number in range(8)
    ]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        limits = SendLimits(concurrency=8)
        with pytest.raises(WriterError, match="broken"):
            list(complete(requests, Half(), ledger, price=PRICE, limits=limits))  # type: ignore[arg-type]
        statuses, _, _, _ = ledger.totals
        assert statuses == {"failed": 2, "ok": 6}


# -- ledgers


def test_a_damaged_ledger_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        requests = {f"key {number}": REQUEST for number in range(200)}
        ledger.record_sent(requests, provider="p", model="m")
        ledger.record_answered((key, ANSWER, 0.1) for key in requests)
    data = bytearray(path.read_bytes())
    data[2 * 4096 : 3 * 4096] = b"\xa5" * 4096
    for content in (bytes(data), b"no database" * 500):
        path.write_bytes(content)
        with pytest.raises(StoreError, match=r"ledger\.sqlite is damaged"):
            Ledger(path)
        assert path.read_bytes() == content


def test_no_size_in_a_damaged_schema_is_believed(tmp_path: Path) -> None:
    """Eight bytes of the first page at a time become the largest number; SQLite reserved that much memory."""
    path = tmp_path / "ledger.sqlite"
    with Ledger(path):
        pass
    data = path.read_bytes()
    largest = (2**63 - 1).to_bytes(8, "little")
    first = data.find(b"CREATE TABLE")
    while first >= 0:
        for at in range(first - 40, first):
            path.write_bytes(data[:at] + largest + data[at + 8 :])
            with contextlib.suppress(StoreError), Ledger(path):
                pass
        first = data.find(b"CREATE TABLE", first + 1)


def test_a_damaged_answer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.record_sent({"a": REQUEST}, provider="p", model="m")
        ledger.record_answered([("a", ANSWER, 0.1)])
    for text in ("[]", "{", None):
        connection = sqlite3.connect(path)
        connection.execute("UPDATE calls SET completion = ?", (text,))
        connection.commit()
        connection.close()
        with (
            Ledger(path) as ledger,
            pytest.raises(StoreError, match="the answer to request a is damaged"),
        ):
            ledger.completion("a")


def test_a_locked_ledger_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger._database.execute("PRAGMA busy_timeout = 10")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="database is locked"):
            ledger.record_sent({"a": REQUEST}, provider="p", model="m")
        other.execute("ROLLBACK")
        other.close()
        ledger.record_sent({"a": REQUEST}, provider="p", model="m")


def test_a_full_disk_keeps_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.record_sent({"a": REQUEST}, provider="p", model="m")
        ledger.record_answered([("a", ANSWER, 0.1)])
        # SQLite's own limit of pages fails as a full disk does.
        ledger._database.execute("PRAGMA max_page_count = 1")
        many = {f"key {number}": REQUEST for number in range(2000)}
        with pytest.raises(StoreError, match="full"):
            ledger.record_sent(many, provider="p", model="m")
        assert ledger.completion("a") == ANSWER
    with Ledger(path) as ledger:
        assert ledger.completion("a") == ANSWER


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"ledger\.sqlite"):
        Ledger(tmp_path / "file" / "ledger.sqlite")

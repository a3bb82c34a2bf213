"""Connections that send nothing, too little or too much do not keep other clients from being answered."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from maskwise.server.connections import ConnectionLimits
from tests.server.fake import Whole
from tests.server.test_server import call, request, serving


@contextmanager
def connected(address: str, data: bytes = b"") -> Iterator[socket.socket]:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.sendall(data)
        yield connection


def receive_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


def parse(response: bytes) -> tuple[int, bytes, dict[str, str]]:
    head, _, body = response.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.lower(), json.loads(body)


def test_requests_are_answered_while_many_connections_are_silent() -> None:
    with serving(Whole()) as address, ExitStack() as silent:
        for _ in range(150):
            silent.enter_context(connected(address))
        assert call(address, "GET", "/healthz")[0] == 200
        assert call(address, "POST", "/v1/predict", request("a"))[0] == 200


def test_a_connection_over_the_limit_replaces_the_one_that_is_idle_longest() -> None:
    with (
        serving(
            Whole(), connections=ConnectionLimits(per_client=3, fresh_seconds=0)
        ) as address,
        ExitStack() as open_ones,
    ):
        first, second, _ = [
            open_ones.enter_context(connected(address)) for _ in range(3)
        ]
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
        assert call(address, "GET", "/healthz")[0] == 200
        assert receive_all(second) == b""


def test_over_the_total_limit_the_client_with_most_connections_loses_one() -> None:
    with (
        serving(
            Whole(), connections=ConnectionLimits(total=2, fresh_seconds=0)
        ) as address,
        ExitStack() as open_ones,
    ):
        first, _ = [open_ones.enter_context(connected(address)) for _ in range(2)]
        assert call(address, "GET", "/healthz")[0] == 200
        assert receive_all(first) == b""


def test_a_silent_connection_is_closed() -> None:
    limits = ConnectionLimits(header_seconds=0.1)
    with (
        serving(Whole(), connections=limits) as address,
        connected(address) as connection,
    ):
        assert receive_all(connection) == b""


def test_incomplete_headers_time_out() -> None:
    with serving(Whole(), connections=ConnectionLimits(header_seconds=0.1)) as address:
        with connected(address, b"GET /healthz HTTP/1.1\r\nHost: local") as connection:
            status, _, said = parse(receive_all(connection))
        assert (status, said) == (
            408,
            {"error": "no complete headers within 0.1 seconds"},
        )


def test_the_header_timeout_applies_to_later_requests_of_a_connection() -> None:
    limits = ConnectionLimits(header_seconds=0.3)
    with (
        serving(Whole(), connections=limits) as address,
        connected(address) as connection,
    ):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /healthz HTT")
        assert parse(receive_all(connection))[0] == 408


def test_where_every_connection_is_being_answered_a_new_one_gets_503() -> None:
    model = Whole()
    with serving(model, connections=ConnectionLimits(per_client=1)) as address:
        first: list[int] = []
        busy = threading.Thread(
            target=lambda: first.append(
                call(address, "POST", "/v1/predict", request("wait"))[0]
            )
        )
        busy.start()
        assert model.started.wait(300)
        with connected(
            address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ) as connection:
            status, head, said = parse(receive_all(connection))
        assert (status, said) == (503, {"error": "too many connections; try again"})
        assert b"retry-after: 1" in head
        assert b"content-type: application/json" in head
        model.go_on.set()
        busy.join(300)
        assert first == [200]
        assert call(address, "GET", "/healthz")[0] == 200


def test_a_connection_whose_request_is_on_its_way_is_not_replaced() -> None:
    limits = ConnectionLimits(per_client=2, fresh_seconds=60)
    question = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with (
        serving(Whole(), connections=limits) as address,
        connected(address) as first,
        connected(address) as second,
    ):
        with connected(address, question) as third:
            status, head, _ = parse(receive_all(third))
        assert (status, b"retry-after: 1" in head) == (503, True)
        for connection in (first, second):
            connection.sendall(question)
            assert parse(receive_all(connection))[0] == 200


def test_of_many_concurrent_requests_none_gets_a_broken_connection() -> None:
    limits = ConnectionLimits(per_client=20)
    answers = []

    def ask(address: str) -> None:
        answers.append(call(address, "POST", "/v1/predict", request("a"))[0])

    with serving(Whole(), connections=limits) as address:
        threads = [threading.Thread(target=ask, args=(address,)) for _ in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    assert len(answers) == 60
    assert set(answers) <= {200, 503}
    assert 200 in answers


def test_a_client_that_reads_no_response_is_disconnected() -> None:
    def ask_without_reading(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")

    limits = ConnectionLimits(write_seconds=0.1)
    with (
        serving(Whole(), connections=limits) as address,
        connected(address) as connection,
        pytest.raises(ConnectionError),
    ):
        ask_without_reading(connection)


def test_what_is_not_http_gets_400_as_json() -> None:
    with (
        serving(Whole()) as address,
        connected(address, b"\x16\x03\x01 hello\r\n\r\n") as connection,
    ):
        status, head, said = parse(receive_all(connection))
    assert (status, set(said)) == (400, {"error"})
    assert b"application/json" in head


def test_endless_headers_are_rejected() -> None:
    with serving(Whole()) as address:
        data = b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000
        with connected(address, data) as connection:
            assert parse(receive_all(connection))[0] in (400, 431)

"""Every reply becomes a result or a recorded reason: the real SDK clients against a server that answers badly."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from maskwise.writers import (
    Completion,
    CompletionRequest,
    Ledger,
    SendLimits,
    Thinking,
    complete,
    open_client,
)
from maskwise.writers.client import BusyError, LostReplyError, WriterError
from maskwise.writers.complete import FAILED_IN_A_ROW, BudgetError, run_within
from maskwise.writers.cost import ModelPrice, estimate, worst_cost
from maskwise.writers.request import parse_output
from tests.writers.providers import (
    Provider,
    anthropic_message,
    openai_completion,
    serve_provider,
)
from tests.writers.test_hostile_providers import Answer, endpoint, send_json

PRICE = ModelPrice(input=1.0, output=10.0, batch=0.5)
SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
}
GOOD = '{"question": "Where?"}'
NAMES = pytest.mark.parametrize("name", ["anthropic", "openai"])


def request(text: str = "Scene 0", **fields: Any) -> CompletionRequest:
    return CompletionRequest(
        prompt_version="1",
        system="Write.",
        text=text,
        schema=SCHEMA,
        max_tokens=100,
        **fields,
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


@contextlib.contextmanager
def opened(name: str, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    base_url = address if name == "anthropic" else f"{address}/v1"
    client = open_client(name, model="m", base_url=base_url)
    with contextlib.closing(client):
        yield client


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serve_provider() as provider:
        yield provider


def reply_with(text: str, handler: BaseHTTPRequestHandler) -> None:
    """A well-formed reply of either API with a text."""
    is_anthropic = handler.path.endswith("/messages")
    make = anthropic_message if is_anthropic else openai_completion
    send_json(handler, make({"text": text}))


# -- salvage


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\nI hope this helps!",
        f"Sure! Here is the object you asked for: {GOOD} Let me know.",
        f"<think>A set {{braces}}, maybe {{'a': 1}}?</think>\n{GOOD}",
        f'The user wants {{"question": "..."}}...</think>{GOOD}',
        f'For example {{"a": 1}}. The answer is\n{GOOD}',
        f"\ufeff{GOOD}",
    ],
)
def test_the_object_of_a_reply_is_found(text: str) -> None:
    completion = parse_output(text, input_tokens=1, output_tokens=2)
    assert completion.output == {"question": "Where?"}
    assert (completion.input_tokens, completion.output_tokens) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        '{"question": "Whe',
        "{'question': 'Where?'}",
        '{"question": NaN}',
        '{"question": "\\ud800"}',
        f"<think>Perhaps {GOOD}",
        '["question"]',
    ],
)
def test_a_reply_without_an_object_is_invalid_and_quoted(text: str) -> None:
    completion = parse_output(text, input_tokens=1, output_tokens=2)
    assert completion.status == "invalid"
    assert (text or "nothing")[:10] in str(completion.reason)


def test_an_inner_object_of_a_broken_reply_is_not_the_answer(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.replies = [{"text": '{"question": [{"phrase": "a"}, {"phr'}] * 2
    with opened("openai", provider.url, monkeypatch) as client:
        [completion] = complete([request()], client, ledger, price=PRICE)
    assert completion.status == "invalid"
    assert "lacks the fields question" in str(completion.reason)


# -- twelve kinds of broken replies, through client, ledger and repair

HTML = b"<html><body>502 Bad Gateway</body></html>"
DRIP = 0.3
"""Seconds of the time limit in the test of a reply that comes byte by byte."""


def send_html(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", str(len(HTML)))
    handler.end_headers()
    handler.wfile.write(HTML)


def send_status(status: int, message: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps({"error": {"type": "api_error", "message": message}}).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Retry-After", "0")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """The reply is announced and breaks off."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id":')
    handler.close_connection = True


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Headers, byte by byte, for longer than the limit: every read of the connection is fast enough."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(30):
        time.sleep(DRIP / 10)
        handler.wfile.write(b"z")


BROKEN: dict[str, tuple[Answer, str, str]] = {
    "no choices": (
        lambda handler: send_json(handler, {"choices": [], "content": None}),
        "invalid",
        "no message",
    ),
    "null choices": (
        lambda handler: send_json(handler, {"choices": None, "content": None}),
        "invalid",
        "no message",
    ),
    "html": (send_html, "", ""),
    "empty body": (lambda handler: send_json(handler, b""), "", ""),
    "prose": (lambda handler: reply_with("I cannot.", handler), "invalid", "I cannot."),
    "cut json": (lambda handler: reply_with(GOOD[:-4], handler), "invalid", "Whe"),
    "other fields": (
        lambda handler: reply_with('{"q": 1}', handler),
        "invalid",
        "lacks the fields question",
    ),
    "no text": (lambda handler: reply_with("", handler), "invalid", "nothing"),
    "bad request": (send_status(400, "image too large"), "failed", "image too large"),
    "payload too large": (send_status(413, "too many bytes"), "failed", "too many"),
    "server error": (send_status(500, "out of memory"), "failed", "out of memory"),
    "hang up": (hang_up, "failed", ""),
    "drip": (drip, "failed", "no complete reply within"),
    "flood": (
        lambda handler: send_json(handler, b" " * 200_000),
        "failed",
        "more than 100000 bytes",
    ),
}


@NAMES
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_reply_is_a_reason_and_the_next_request_goes_on(
    name: str, kind: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three requests is always answered badly; the others are not."""
    monkeypatch.setattr("maskwise.writers.guarded_http.REPLY_BYTES", 100_000)
    break_reply, status, reason = BROKEN[kind]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        is_broken = b"Scene 0" in getattr(handler, "body", b"")
        break_reply(handler) if is_broken else reply_with(GOOD, handler)

    limits = SendLimits(
        concurrency=1, max_retries=2, timeout=DRIP if kind == "drip" else 20.0
    )
    requests = [request(f"Scene {number}") for number in range(3)]
    with (
        endpoint(answer) as (address, _),
        opened(name, address, monkeypatch) as client,
    ):
        first, *others = complete(requests, client, ledger, price=PRICE, limits=limits)
    assert [completion.output for completion in others] == [{"question": "Where?"}] * 2
    assert first.output is None
    assert first.status in ("invalid", "failed")
    assert first.status == status or not status
    assert reason in str(first.reason)
    statuses, _, _, _ = ledger.totals
    assert statuses["ok"] == 2
    assert statuses[first.status] >= 1


# -- repair


@NAMES
def test_an_unusable_reply_is_asked_for_once_more_with_the_error(
    name: str, provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.replies = [{"text": "Happy to help: {'question'"}, {"text": GOOD}]
    with opened(name, provider.url, monkeypatch) as client:
        for _ in range(2):
            [completion] = complete([request()], client, ledger, price=PRICE)
            assert completion.output == {"question": "Where?"}
    assert len(provider.calls) == 2, "the repeated run takes both from the ledger"
    assert "Happy to help" in json.dumps(provider.calls[1])
    assert ledger.totals[0] == {"invalid": 1, "ok": 1}
    assert ledger.cost == pytest.approx(2 * (100 + 20 * 10) / 1e6), "both are paid"


def test_a_reply_that_is_cut_off_is_asked_for_with_more_room(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.replies = [{"stop": "length"}, {"text": GOOD}]
    thinking = Thinking(tokens=2000, effort="low")
    with opened("openai", provider.url, monkeypatch) as client:
        [completion] = complete(
            [request(thinking=thinking)], client, ledger, price=PRICE
        )
    assert completion.status == "ok"
    limits = [call["max_completion_tokens"] for call in provider.calls]
    assert limits == [2100, 4200]


def test_a_refusal_is_not_asked_for_again(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.replies = [{"stop": "refusal"}]
    with opened("anthropic", provider.url, monkeypatch) as client:
        [completion] = complete([request()], client, ledger, price=PRICE)
    assert completion.status == "refused"
    assert len(provider.calls) == 1


def test_retry_failed_asks_again_what_brought_nothing(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request(f"Scene {number}") for number in range(3)]

    def write(given: dict[str, Any]) -> dict[str, Any]:
        bad = "Scene 1" in json.dumps(given) and len(provider.calls) < 5
        return {"text": "no" if bad else GOOD}

    provider.write = write
    with opened("openai", provider.url, monkeypatch) as client:

        def run(**limits: Any) -> list[str]:
            chosen = SendLimits(concurrency=1, **limits)
            completions = complete(requests, client, ledger, price=PRICE, limits=chosen)
            return [completion.status for completion in completions]

        assert run() == ["ok", "invalid", "ok"]
        assert run() == ["ok", "invalid", "ok"]
        assert len(provider.calls) == 4
        assert run(retry_failed=True) == ["ok", "ok", "ok"]
        assert len(provider.calls) == 5
    assert ledger.cost == pytest.approx(5 * 300 / 1e6), "earlier attempts stay paid"


def test_what_the_provider_did_not_take_is_sent_by_the_next_run(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.replies = [{"status": 400, "text": "image too large"}]
    with opened("openai", provider.url, monkeypatch) as client:
        [completion] = complete([request()], client, ledger, price=PRICE)
        assert completion.status == "failed"
        assert ledger.spending == (0.0, 0.0), "nothing was paid"
        [completion] = complete([request()], client, ledger, price=PRICE)
        assert completion.status == "ok"


# -- structured output and other parameters


@NAMES
@pytest.mark.parametrize("concurrency", [1, 8])
def test_without_structured_output_the_schema_is_in_the_text(
    name: str,
    concurrency: int,
    provider: Provider,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    field = "output_config" if name == "anthropic" else "response_format"

    def write(given: dict[str, Any]) -> dict[str, Any]:
        if field in given:
            return {"status": 400, "text": f"{field}: not supported by this model"}
        return {"text": f"```json\n{GOOD}\n```"}

    provider.write = write
    requests = [request(f"Scene {number}") for number in range(8)]
    limits = SendLimits(concurrency=concurrency)
    with opened(name, provider.url, monkeypatch) as client:
        completions = list(
            complete(requests, client, ledger, price=PRICE, limits=limits)
        )
    assert [completion.status for completion in completions] == ["ok"] * 8
    asked = [call for call in provider.calls if field not in call]
    assert len(asked) == 8
    assert all('\\"required\\":[\\"question\\"]' in json.dumps(call) for call in asked)
    assert len(provider.calls) - len(asked) <= concurrency


def test_an_older_server_gets_the_older_name_of_the_token_limit(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.replies = [
        {"status": 400, "text": "Unsupported parameter: 'max_completion_tokens'"}
    ]
    with opened("openai", provider.url, monkeypatch) as client:
        assert client.complete(request()).status == "ok"
    assert [call.get("max_tokens") for call in provider.calls] == [None, 100]


def test_reasoning_models_get_effort_and_room_to_think(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = request(thinking=Thinking(tokens=3000))
    effort = request(thinking=Thinking(tokens=3000, effort="high"))
    with opened("openai", provider.url, monkeypatch) as client:
        client.complete(effort)
    [call] = provider.calls
    assert (call["reasoning_effort"], call["max_completion_tokens"]) == ("high", 3100)
    provider.calls.clear()
    provider.replies = [
        {},
        {"status": 400, "text": '"thinking.type.enabled" is not supported'},
    ]
    with opened("anthropic", provider.url, monkeypatch) as client:
        for one in (effort, budget, budget):
            assert client.complete(one).status == "ok"
    forms = [call["thinking"] for call in provider.calls]
    assert forms == [
        {"type": "adaptive"},
        {"type": "enabled", "budget_tokens": 3000},
        {"type": "adaptive"},
        {"type": "adaptive"},
    ]
    assert {call["max_tokens"] for call in provider.calls} == {3100}
    assert provider.calls[0]["output_config"]["effort"] == "high"


def test_thinking_is_counted_and_part_of_the_key_only_if_set() -> None:
    plain = request()
    thinking = request(thinking=Thinking(tokens=3000))
    # The key of a ledger that was written before there was a setting for thinking.
    old = b'["m",{"prompt_version":"1","system":"Write.","text":"Scene 0","schema":'
    assert msgspec.json.encode(["m", plain], order="deterministic").startswith(old)
    assert b"thinking" not in msgspec.json.encode(plain)
    assert plain.key("m") != thinking.key("m")
    expected = estimate([thinking] * 2, PRICE, output_tokens=50, batch=False)
    assert (expected.output_tokens, expected.thinking_tokens) == (6100, 6000)
    extra = worst_cost(thinking, PRICE, batch=False) - worst_cost(
        plain, PRICE, batch=False
    )
    assert extra == pytest.approx(3000 * 10 / 1e6)


# -- time, failures in a row, money


def test_work_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(LostReplyError, match="within 0 s"):
        run_within(0.02, lambda: threading.Event().wait(10.0))
    with pytest.raises(TimeoutError, match="its own"):
        run_within(5.0, lambda: raise_error(TimeoutError("its own")))
    assert run_within(5.0, lambda: 3) == 3


def raise_error(error: Exception) -> None:
    raise error


class Scripted:
    """A client without a network: what a function makes of the number of a call and its request."""

    provider = "p"
    model = "m"
    has_batches = False

    def __init__(self, answer: Callable[[int, CompletionRequest], Any]) -> None:
        self.answer = answer
        self.calls = 0
        self.lock = threading.Lock()

    def close(self) -> None:
        pass

    def complete(self, request: CompletionRequest) -> Completion:
        with self.lock:
            self.calls += 1
            number = self.calls
        answer = self.answer(number, request)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


OK = Completion(
    status="ok", output={"question": "Where?"}, input_tokens=5, output_tokens=60
)


def run(client: Scripted, ledger: Ledger, count: int, **limits: Any) -> list[Any]:
    requests = [request(f"Scene {number}") for number in range(count)]
    chosen = SendLimits(**limits)
    return list(complete(requests, client, ledger, price=PRICE, limits=chosen))  # type: ignore[arg-type]


def test_many_failures_in_a_row_stop_the_run(ledger: Ledger) -> None:
    client = Scripted(lambda number, request: BusyError("overloaded"))
    with pytest.raises(WriterError, match=r"20 requests in a row failed.*overloaded"):
        run(client, ledger, 100, concurrency=1, max_retries=0)
    assert client.calls == FAILED_IN_A_ROW
    assert ledger.spending == (0.0, 0.0)


def test_an_overloaded_provider_stops_the_run_after_the_retries(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Scripted(
        lambda number, request: BusyError("slow down", wait=0.0, general=True)
    )
    with pytest.raises(BusyError, match="slow down"):
        run(client, ledger, 5, concurrency=1, max_retries=2)
    assert client.calls == 3


def test_failures_here_and_there_do_not_stop_the_run(ledger: Ledger) -> None:
    client = Scripted(
        lambda number, request: BusyError("busy") if number % 3 == 0 else OK
    )
    completions = run(client, ledger, 100, concurrency=1, max_retries=0)
    assert [one.status for one in completions].count("failed") == 33


def test_a_lost_reply_counts_as_the_most_it_may_cost(ledger: Ledger) -> None:
    """It is asked for once more: of five calls, the first and the two for the second request are lost."""
    client = Scripted(
        lambda number, request: LostReplyError("cut") if number in (1, 3, 4) else OK
    )
    completions = run(client, ledger, 3, concurrency=1)
    assert [one.status for one in completions] == ["ok", "failed", "ok"]
    spent, reserved = ledger.spending
    assert spent == pytest.approx(2 * (5 + 60 * 10) / 1e6)
    assert reserved == pytest.approx(3 * worst_cost(request(), PRICE, batch=False))
    assert ledger.unanswered == (3, reserved)


def test_a_reply_without_tokens_counts_as_the_most_it_may_cost(ledger: Ledger) -> None:
    silent = Completion(status="ok", output={"question": "Where?"})
    run(Scripted(lambda number, request: silent), ledger, 1)
    assert ledger.cost == pytest.approx(worst_cost(request(), PRICE, batch=False))


@pytest.mark.parametrize("concurrency", [1, 7, 32])
def test_the_budget_holds_under_concurrency_and_is_used_up(
    concurrency: int, ledger: Ledger
) -> None:
    """The sum over all calls that reached the client is what is paid, whatever the ledger says."""
    client = Scripted(lambda number, request: OK)
    each = (5 + 60 * 10) / 1e6
    most = worst_cost(request("Scene 00"), PRICE, batch=False)
    budget = 40.5 * each
    with pytest.raises(BudgetError, match=r"is spent and the next requests"):
        run(client, ledger, 100, concurrency=concurrency, budget=budget)
    paid = client.calls * each
    assert paid <= budget
    assert budget - paid <= most, "what is left is less than one request may cost"
    assert ledger.spending == (pytest.approx(paid), 0.0)


def test_the_message_about_the_budget_counts_lost_answers(ledger: Ledger) -> None:
    client = Scripted(lambda number, request: LostReplyError("cut"))
    most = worst_cost(request(), PRICE, batch=False)
    with pytest.raises(BudgetError) as caught:
        run(client, ledger, 10, concurrency=2, budget=3.5 * most)
    assert "$0.0000 is spent, up to $" in str(caught.value)
    assert "for requests whose answers were not received" in str(caught.value)
    assert client.calls == 3


def test_two_builds_share_a_ledger_and_its_budget(tmp_path: Path) -> None:
    """Two connections, as of two processes; each sends requests of its own."""
    path = tmp_path / "shared.sqlite"
    each = (5 + 60 * 10) / 1e6
    budget = 20.5 * each
    client = Scripted(lambda number, request: OK)

    def build(name: str) -> None:
        requests = [request(f"{name} {number}") for number in range(50)]
        limits = SendLimits(concurrency=4, budget=budget)
        with Ledger(path) as ledger, pytest.raises(BudgetError):
            list(complete(requests, client, ledger, price=PRICE, limits=limits))  # type: ignore[arg-type]

    threads = [threading.Thread(target=build, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 10 * each < client.calls * each <= budget
    with Ledger(path) as ledger:
        assert ledger.cost == pytest.approx(client.calls * each)


def test_sending_starts_while_later_requests_are_made(ledger: Ledger) -> None:
    answered = threading.Event()

    def answer(number: int, request: CompletionRequest) -> Completion:
        answered.set()
        return OK

    def make_requests() -> Iterator[CompletionRequest]:
        yield request("Scene 0")
        assert answered.wait(10.0), (
            "the first request is sent before the second is made"
        )
        yield request("Scene 1")

    client: Any = Scripted(answer)
    completions = list(complete(make_requests(), client, ledger, price=PRICE))
    assert [one.status for one in completions] == ["ok", "ok"]


def test_equal_requests_in_flight_are_sent_once(ledger: Ledger) -> None:
    def answer(number: int, request: CompletionRequest) -> Completion:
        threading.Event().wait(0.05)
        return OK

    client: Any = Scripted(answer)
    completions = list(complete([request()] * 20, client, ledger, price=PRICE))
    assert len(completions) == 20
    assert client.calls == 1

"""The real SDK clients against a local server: every kind of answer, errors, batches, kills, budgets."""

import contextlib
import io
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.writers import (
    Client,
    CompletionRequest,
    Ledger,
    SendLimits,
    complete,
    estimate,
    load_prices,
    open_client,
)
from maskwise.writers.client import WriterError
from maskwise.writers.complete import BudgetError
from maskwise.writers.cost import ModelPrice, image_tokens
from tests.writers.killed_run import IN_FLIGHT, REQUESTS, run_writer
from tests.writers.providers import Provider, remove_keys, serve_provider

SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
}
PRICE = ModelPrice(input=1.0, output=10.0, batch=0.5)
FAST = SendLimits(poll_seconds=0.0)
BATCHES = SendLimits(poll_seconds=0.0, batch_size=3)


def request(number: int = 0, image: bytes | None = None) -> CompletionRequest:
    return CompletionRequest(
        prompt_version="1",
        system="Write.",
        text=f"Scene {number}",
        schema=SCHEMA,
        image=image,
        max_tokens=100,
    )


def png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (75, 100)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with serve_provider() as provider:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        yield provider


@pytest.fixture(params=["anthropic", "openai"])
def client(request: pytest.FixtureRequest, provider: Provider) -> Iterator[Client]:
    with contextlib.closing(
        open_client(request.param, model="test", max_retries=2)
    ) as client:
        yield client


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


def test_a_request_carries_texts_image_and_schema(
    client: Client, provider: Provider
) -> None:
    completion = client.complete(request(image=png()))
    assert completion.output == {"question": "Where?"}
    assert (completion.input_tokens, completion.output_tokens) == (100, 20)
    sent = str(provider.calls[0])
    for part in ("Write.", "Scene 0", "image/png", "json_schema", "'question'"):
        assert part in sent


@pytest.mark.parametrize("status", [429, 500, 503])
def test_transient_errors_are_retried(
    client: Client, provider: Provider, ledger: Ledger, status: int
) -> None:
    provider.replies = [{"status": status, "headers": {"retry-after": "0"}}] * 2
    [completion] = complete([request()], client, ledger, price=PRICE)
    assert completion.status == "ok"
    assert len(provider.calls) == 3


def test_a_wrong_key_stops_the_run(client: Client, provider: Provider) -> None:
    provider.replies = [{"status": 401, "text": "invalid key"}]
    with pytest.raises(WriterError, match="invalid key"):
        client.complete(request())


def test_a_rejected_request_fails_alone(client: Client, provider: Provider) -> None:
    provider.replies = [{"status": 400, "text": "image too large"}]
    completion = client.complete(request())
    assert completion.status == "failed"
    assert "image too large" in str(completion.reason)


def test_text_that_is_not_json_is_invalid(client: Client, provider: Provider) -> None:
    provider.replies = [{"text": "Sure! Here is a question"}]
    completion = client.complete(request())
    assert completion.status == "invalid"
    assert "Sure! Here is a question" in str(completion.reason)


def test_refusals_and_truncation_are_told_apart(provider: Provider) -> None:
    provider.replies = [{"stop": "refusal"}, {"stop": "max_tokens"}]
    with contextlib.closing(open_client("anthropic", model="test")) as claude:
        assert [claude.complete(request()).status for _ in range(2)] == [
            "refused",
            "truncated",
        ]
    provider.replies = [
        {"refusal": "I cannot"},
        {"stop": "content_filter"},
        {"stop": "length"},
    ]
    with contextlib.closing(open_client("openai", model="test")) as gpt:
        assert [gpt.complete(request()).status for _ in range(3)] == [
            "refused",
            "refused",
            "truncated",
        ]


@pytest.mark.parametrize("limits", [FAST, BATCHES], ids=["calls", "batches"])
def test_completions_come_in_order_and_are_never_paid_twice(
    client: Client, provider: Provider, ledger: Ledger, limits: SendLimits
) -> None:
    requests = [request(number) for number in range(7)]
    first = list(complete(requests, client, ledger, price=PRICE, limits=limits))
    assert [one.status for one in first] == ["ok"] * 7
    spent = ledger.cost
    asked = len(provider.calls) + len(provider.batches)
    again = list(
        complete([*requests, request(0)], client, ledger, price=PRICE, limits=limits)
    )
    assert again == [*first, first[0]]
    assert (ledger.cost, len(provider.calls) + len(provider.batches)) == (spent, asked)


def test_cost_follows_tokens_prices_and_batches(
    client: Client, provider: Provider, ledger: Ledger
) -> None:
    list(complete([request(1)], client, ledger, price=PRICE, limits=FAST))
    assert ledger.cost == pytest.approx((100 * 1 + 20 * 10) / 1e6)
    list(complete([request(2)], client, ledger, price=PRICE, limits=BATCHES))
    assert ledger.cost == pytest.approx(1.5 * (100 * 1 + 20 * 10) / 1e6)


@pytest.mark.parametrize("limits", [FAST, BATCHES], ids=["calls", "batches"])
def test_the_budget_is_never_exceeded(
    client: Client, provider: Provider, ledger: Ledger, limits: SendLimits
) -> None:
    requests = [request(number) for number in range(50)]
    tight = SendLimits(
        budget=0.01, poll_seconds=0.0, concurrency=2, batch_size=limits.batch_size
    )
    with pytest.raises(BudgetError, match=r"budget of \$0.01"):
        list(complete(requests, client, ledger, price=PRICE, limits=tight))
    assert 0 < ledger.cost + len(provider.batches) <= 0.01 + len(provider.batches)
    done = list(complete(requests, client, ledger, price=PRICE, limits=limits))
    assert len(done) == 50


def test_a_running_batch_is_waited_for_not_sent_again(
    client: Client, provider: Provider, ledger: Ledger
) -> None:
    requests = [request(number) for number in range(3)]
    keys = {one.key(client.model): one for one in requests}
    ledger.record_sent(
        keys, provider=client.provider, model=client.model, batch="label"
    )
    ledger.record_batch("label", client.submit(keys, "label"))
    provider.polls_until_done = 3
    assert [
        one.status
        for one in complete(requests, client, ledger, price=PRICE, limits=BATCHES)
    ] == ["ok"] * 3
    assert len(provider.batches) == 1


def test_a_batch_whose_id_was_never_recorded_is_found_again(
    client: Client, provider: Provider, ledger: Ledger
) -> None:
    requests = [request(number) for number in range(3)]
    keys = {one.key(client.model): one for one in requests}
    ledger.record_sent(
        keys, provider=client.provider, model=client.model, batch="label"
    )
    client.submit(keys, "label")
    list(complete(requests, client, ledger, price=PRICE, limits=BATCHES))
    assert len(provider.batches) == 1


def test_a_batch_that_never_reached_the_provider_is_sent(
    client: Client, provider: Provider, ledger: Ledger
) -> None:
    requests = [request(number) for number in range(3)]
    keys = {one.key(client.model): one for one in requests}
    ledger.record_sent(
        keys, provider=client.provider, model=client.model, batch="label"
    )
    assert (
        len(list(complete(requests, client, ledger, price=PRICE, limits=BATCHES))) == 3
    )
    assert len(provider.batches) == 1


def test_requests_that_expired_are_submitted_again(
    client: Client, provider: Provider, ledger: Ledger
) -> None:
    requests = [request(number) for number in range(3)]
    provider.expire = {requests[1].key(client.model)}
    provider.on_batch = lambda: (
        provider.expire.clear() if len(provider.batches) == 2 else None
    )
    done = list(complete(requests, client, ledger, price=PRICE, limits=BATCHES))
    assert [one.status for one in done] == ["ok"] * 3
    assert [len(batch["requests"]) for batch in provider.batches.values()] == [3, 1]


@pytest.mark.parametrize("name", ["anthropic", "openai"])
@pytest.mark.parametrize("kill_at", [1, 2, 3, 4, 5, 6, 8, 11])
def test_a_killed_run_submits_no_batch_twice(
    provider: Provider, tmp_path: Path, name: str, kill_at: int
) -> None:
    path = tmp_path / "ledger.sqlite"
    assert run_writer(path, name, batch_size=3, kill_at=kill_at) == -signal.SIGKILL
    assert run_writer(path, name, batch_size=3) == 0
    sizes = [len(entry["requests"]) for entry in provider.batches.values()]
    assert sum(sizes) == REQUESTS
    with Ledger(path) as ledger:
        assert ledger.cost == pytest.approx(REQUESTS * 120 / 1e6)
        assert ledger.unanswered == (0, 0.0)


@pytest.mark.parametrize("name", ["anthropic", "openai"])
@pytest.mark.parametrize("kill_at", [1, 2, 3, 5, 7, 9, 11, 13, 16, 20, 24, 28, 31])
def test_the_bill_of_a_killed_run_is_known(
    provider: Provider, tmp_path: Path, name: str, kill_at: int
) -> None:
    """Killed with four requests in flight: each one is in the ledger, answered or reserved, and none was sent twice
    after its answer was recorded.
    """
    path = tmp_path / "ledger.sqlite"
    each = 120 / 1e6
    assert run_writer(path, name, batch_size=0, kill_at=kill_at) == -signal.SIGKILL
    with Ledger(path) as ledger:
        answered = round(ledger.cost / each)
        before = ledger.unanswered[0]
    assert before <= IN_FLIGHT
    assert answered <= len(provider.calls) <= answered + before
    assert run_writer(path, name, batch_size=0) == 0
    with Ledger(path) as ledger:
        assert ledger.cost == pytest.approx(REQUESTS * each)
        lost, lost_cost = ledger.unanswered
    assert lost == before, "a request without an answer stays on the bill"
    assert len(provider.calls) <= REQUESTS + lost
    paid = len(provider.calls) * each
    assert paid <= REQUESTS * each + lost_cost


def test_an_estimate_counts_text_and_image_tokens() -> None:
    found = estimate([request(image=png())] * 10, PRICE, output_tokens=50, batch=False)
    text = len("Write.") + len("Scene 0") + 91
    assert found.calls == 10
    assert found.input_tokens == pytest.approx(
        10 * (text / 4 + 75 * 100 / 750), rel=0.1
    )
    assert found.output_tokens == 500
    assert found.cost == pytest.approx((found.input_tokens + 5000) / 1e6)


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("claude-sonnet-5", (1000, 750), 1000),
        ("gpt-4.1", (1024, 1024), 85 + 4 * 170),
        ("gpt-4.1", (2048, 4096), 85 + 6 * 170),
        ("gpt-4.1-mini", (1024, 1024), 1.62 * 1024),
        ("gpt-5-mini", (4096, 4096), 1.62 * 1536),
    ],
)
def test_image_tokens_follow_the_rules_of_the_providers(
    model: str, size: tuple[int, int], tokens: float
) -> None:
    """The examples that the providers give in their documents."""
    assert image_tokens(*size, load_prices().find(model)) == pytest.approx(tokens)


def test_prices_are_data_with_a_date(tmp_path: Path) -> None:
    prices = load_prices()
    assert prices.as_of.startswith("2026")
    assert prices.find("claude-opus-4-5-20251101").output == 25.0
    assert prices.find("gpt-4o-mini-2024-07-18").input == 0.15
    with pytest.raises(MaskwiseError, match="no price is known for model 'llama'"):
        prices.find("llama")
    own = tmp_path / "prices.yaml"
    own.write_text(
        "as_of: today\nsource: me\nmodels:\n  llama: {input: 0, output: 0}\n"
    )
    assert load_prices(own).find("llama-4").input == 0


def test_unknown_writers_list_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="anthropic, grammar, openai"):
        open_client("gemini", model="x")


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("anthropic", "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
        ("openai", "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_said_before_a_request(
    name: str, variables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_keys(tmp_path, monkeypatch)
    with pytest.raises(WriterError, match=f"set the environment variable {variables}$"):
        open_client(name, model="x")
    open_client(name, model="x", needs_key=False).close()


def test_an_endpoint_of_ones_own_and_a_token_need_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_keys(tmp_path, monkeypatch)
    open_client("openai", model="x", base_url="http://localhost:8000/v1").close()
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    open_client("anthropic", model="x").close()


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_an_endpoint_that_cannot_be_reached_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", "test")
    client = open_client(
        name, model="x", base_url="http://localhost:1/v1", max_retries=0
    )
    with (
        contextlib.closing(client),
        pytest.raises(WriterError, match=r"http://localhost:1/v1.*Connection error"),
    ):
        client.complete(request())

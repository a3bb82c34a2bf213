"""Language models on the command line: the options that say which one and how, and its client with its price."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.errors import MaskwiseError, UnknownNameError

if TYPE_CHECKING:
    from maskwise.writers import Client
    from maskwise.writers.cost import ModelPrice
    from maskwise.writers.request import Thinking

BATCH_SIZE = 500
"""Requests per batch, so that a batch with its images stays below the limits of the providers."""

THINKING_TOKENS = 4000
"""Of a model that is told an effort and has no number in the list of prices: as many as those that have one."""

BaseUrl = Annotated[
    str | None,
    typer.Option(help="Address of an endpoint (vLLM, llama.cpp, Ollama)."),
]
Budget = Annotated[
    float | None,
    typer.Option(min=0, help="Stop before this many US dollars are exceeded."),
]
PriceList = Annotated[
    Path | None, typer.Option(help="Prices of models (YAML) instead of ours.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print calls, tokens and cost; send nothing."),
]
Batch = Annotated[
    bool, typer.Option("--batch", help="Use the batch API: cheaper, within a day.")
]
Concurrency = Annotated[
    int, typer.Option(min=1, help="Requests at a time, without --batch.")
]
Timeout = Annotated[
    float,
    typer.Option(min=1, help="Seconds until a request is given up, with its retries."),
]
EffortOption = Annotated[
    str | None,
    typer.Option(
        "--effort",
        help="How hard a reasoning model thinks: minimal, low, medium or high.",
    ),
]
ThinkingTokens = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Tokens that a reasoning model may think before it answers.",
        show_default="as in the list of prices",
    ),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="File of recorded calls, which builds may share.",
        show_default="OUT.ledger.sqlite",
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Ask again where a recorded reply was of no use."
    ),
]


def choose_thinking(
    effort: str | None, tokens: int | None, price: "ModelPrice"
) -> "Thinking | None":
    """What a reasoning model may spend before it answers; None for a model that does not think."""
    from maskwise.writers.request import EFFORTS, Thinking

    chosen = next((name for name in EFFORTS if name == effort), None)
    if effort is not None and chosen is None:
        raise UnknownNameError("effort", effort, EFFORTS)
    allowed = price.thinking if tokens is None else tokens
    if chosen is not None and tokens is None:
        allowed = allowed or THINKING_TOKENS
    return Thinking(tokens=allowed, effort=chosen) if allowed else None


def open_priced_client(
    provider: str,
    model: str,
    base_url: str | None,
    *,
    prices: Path | None,
    budget: float | None,
    needs_key: bool,
) -> "tuple[Client, ModelPrice | None]":
    """The client of a model and its price; None for an endpoint of the user's own without a known price."""
    from maskwise.registry import WRITERS
    from maskwise.writers import load_prices, open_client

    client = open_client(provider, model=model, base_url=base_url, needs_key=needs_key)
    try:
        return client, load_prices(prices).find(model)
    except MaskwiseError:
        # An endpoint or a client of the user's own costs nothing that we know of.
        is_own = base_url is not None or provider not in WRITERS.built_in
        if not is_own or budget is not None or prices is not None:
            raise
        return client, None

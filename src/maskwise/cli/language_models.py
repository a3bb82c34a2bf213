"""Language models on the command line: the options that say which one and how, and its client with its price."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.errors import MaskwiseError

if TYPE_CHECKING:
    from maskwise.writers import Client
    from maskwise.writers.cost import ModelPrice

BATCH_SIZE = 500
"""Requests per batch, so that a batch with its images stays below the limits of the providers."""

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

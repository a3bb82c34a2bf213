"""Language models that write questions and answers: one request, one JSON object, nothing paid for twice.

    client = open_client("anthropic", model="claude-sonnet-5")        # or "openai", base_url="http://localhost:8000/v1"
    with Ledger("build/ledger.sqlite") as ledger:
        for completion in complete(requests, client, ledger, price=price, limits=SendLimits(budget=5.0)):
            completion.output if completion.status == "ok" else completion.reason

Every request is recorded in the ledger before it is sent and its completion as soon as it arrives. A repeated run takes
what is recorded and sends only the rest, and waits for batches that are still running instead of sending them again.
"""

from maskwise.writers.client import Client, open_client
from maskwise.writers.complete import Sender, SendLimits, complete
from maskwise.writers.cost import CostEstimate, Prices, estimate, load_prices
from maskwise.writers.ledger import Ledger
from maskwise.writers.request import Completion, CompletionRequest, Thinking

__all__ = [
    "Client",
    "Completion",
    "CompletionRequest",
    "CostEstimate",
    "Ledger",
    "Prices",
    "SendLimits",
    "Sender",
    "Thinking",
    "complete",
    "estimate",
    "load_prices",
    "open_client",
]

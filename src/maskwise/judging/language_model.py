"""A language model as judge: requests through the ledger, in chunks, and what a run would cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from maskwise.judging.case import AnswerCase
from maskwise.judging.prompt import TYPICAL_TOKENS, verdict_request
from maskwise.runs.judgments import Unjudged, Verdict
from maskwise.writers.client import Client
from maskwise.writers.complete import SendLimits, complete
from maskwise.writers.cost import CostEstimate, ModelPrice, estimate
from maskwise.writers.ledger import Ledger
from maskwise.writers.request import Completion, CompletionRequest

CHUNK = 200
"""Requests that are in memory at once, each with an image of about 100 kB."""

MAX_REASON = 500
"""Characters of a reason that are kept."""

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True)
class JudgeModel:
    """A language model, its price (None: unknown, as of an endpoint of the user's own), and how it is asked.

    with_image: False for models that read text only. done: called with the number of answers just judged.
    """

    client: Client
    price: ModelPrice | None
    limits: SendLimits = field(default_factory=SendLimits)
    with_image: bool = True
    done: Callable[[int], None] = lambda count: None

    @property
    def name(self) -> str:
        """How the command line names it: provider/model."""
        return f"{self.client.provider}/{self.client.model}"


class ModelVerdict(msgspec.Struct, frozen=True):
    """What a model has to return."""

    reason: str
    correct: bool
    grounded: bool
    complete: bool
    hallucinated: bool


@dataclass
class Usage:
    """What the completions of one judgment used, those of the ledger included."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, completion: Completion) -> None:
        """Count a completion."""
        self.calls += 1
        self.input_tokens += completion.input_tokens
        self.output_tokens += completion.output_tokens

    def cost(self, price: ModelPrice | None) -> float | None:
        """US dollars; None where no price is known."""
        if price is None:
            return None
        dollars = self.input_tokens * price.input + self.output_tokens * price.output
        return dollars / 1e6


def ask_model(
    cases: Sequence[AnswerCase], model: JudgeModel, ledger: Path, usage: Usage
) -> Iterator[Verdict | Unjudged]:
    """The verdict on every case, in order; an answer that the model did not judge says why."""
    with Ledger(ledger) as opened:
        for first in range(0, len(cases), CHUNK):
            chunk = cases[first : first + CHUNK]
            requests = [
                verdict_request(case, with_image=model.with_image) for case in chunk
            ]
            completions = send(requests, model, opened)
            for case, completion in zip(chunk, completions):
                usage.add(completion)
                yield _to_verdict(case.sample.id, completion)


def send(
    requests: Sequence[CompletionRequest], model: JudgeModel, ledger: Ledger
) -> Iterator[Completion]:
    """The completion of every request, in order."""
    free = ModelPrice(input=0.0, output=0.0)
    return complete(
        requests,
        model.client,
        ledger,
        price=model.price or free,
        limits=model.limits,
        done=model.done,
    )


def _to_verdict(sample: str, completion: Completion) -> Verdict | Unjudged:
    """A completion as a verdict."""
    result = read_output(completion, ModelVerdict)
    if isinstance(result, str):
        return Unjudged(sample=sample, reason=result)
    return Verdict(
        sample=sample,
        correct=result.correct,
        grounded=result.grounded,
        complete=result.complete,
        hallucinated=result.hallucinated,
        reason=result.reason[:MAX_REASON],
        origin="model",
    )


def read_output(completion: Completion, kind: type[T]) -> T | str:
    """The object that a model returned, or why there is none."""
    if completion.output is None:
        return f"{completion.status}: {completion.reason or 'no reason given'}"[
            :MAX_REASON
        ]
    try:
        return msgspec.convert(completion.output, kind)
    except msgspec.ValidationError as error:
        return f"invalid: the reply does not fit the schema: {error}"[:MAX_REASON]


def estimate_requests(
    requests: Iterator[CompletionRequest], model: JudgeModel
) -> CostEstimate:
    """What requests would cost."""
    price = model.price or ModelPrice(input=0.0, output=0.0)
    batch = bool(model.limits.batch_size) and model.client.has_batches
    return estimate(requests, price, output_tokens=TYPICAL_TOKENS, batch=batch)

"""A language model as judge: requests through the ledger, what they cost, and what comes back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from maskwise.errors import MaskwiseError
from maskwise.judging.case import AnswerCase
from maskwise.judging.prompt import TYPICAL_TOKENS, verdict_request
from maskwise.runs.judgments import Unjudged, Verdict
from maskwise.writers.client import Client
from maskwise.writers.complete import SendLimits, complete
from maskwise.writers.cost import CostEstimate, ModelPrice, estimate, token_cost
from maskwise.writers.ledger import Ledger
from maskwise.writers.request import Completion, CompletionRequest, Thinking

FREE = ModelPrice(input=0.0, output=0.0)
"""What an endpoint of the user's own is taken to cost."""

MAX_REASON = 500
"""Characters of a reason that are kept."""

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True)
class JudgeModel:
    """A language model, its price (None: unknown, as of an endpoint of the user's own), and how it is asked.

    with_image: False for models that read text only. thinking: what a reasoning model may spend on a request. begin:
    called with the number of requests before the first; done: with 1 for every reply, recorded ones included.
    """

    client: Client
    price: ModelPrice | None
    limits: SendLimits = field(default_factory=SendLimits)
    with_image: bool = True
    thinking: Thinking | None = None
    begin: Callable[[int], None] = lambda count: None
    done: Callable[[int], None] = lambda count: None

    @property
    def name(self) -> str:
        """How the command line names it: provider/model."""
        return f"{self.client.provider}/{self.client.model}"

    @property
    def uses_batches(self) -> bool:
        """Whether requests go as batches, which cost less."""
        return bool(self.limits.batch_size) and self.client.has_batches

    def prepare(
        self, requests: Iterable[CompletionRequest]
    ) -> Iterator[CompletionRequest]:
        """The requests with what the model may spend on thinking."""
        for request in requests:
            if self.thinking is None:
                yield request
            else:
                yield msgspec.structs.replace(request, thinking=self.thinking)


class ModelVerdict(msgspec.Struct, frozen=True):
    """What a model has to return."""

    reason: str
    correct: bool
    grounded: bool
    complete: bool
    hallucinated: bool


@dataclass
class Usage:
    """What the replies of one judgment used, those of the ledger included. cost: US dollars."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def add(self, completion: Completion, model: JudgeModel) -> None:
        """Count a reply."""
        self.calls += 1
        self.input_tokens += completion.input_tokens
        self.output_tokens += completion.output_tokens
        price = model.price or FREE
        self.cost += token_cost(completion, price, batch=model.uses_batches)


def ask_model(
    cases: Sequence[AnswerCase], model: JudgeModel, ledger: Path, usage: Usage
) -> Iterator[Verdict | Unjudged]:
    """The verdict on every case; an answer that the model did not judge says why. Images that cannot be opened last."""
    model.begin(len(cases))
    asked: list[str] = []
    failures: list[Unjudged] = []

    def make_requests() -> Iterator[CompletionRequest]:
        for case in cases:
            request = try_request(case, model)
            if isinstance(request, Unjudged):
                failures.append(request)
            else:
                asked.append(case.sample.id)
                yield request

    # Requests are made ahead of their replies, so `asked` is long enough.
    for number, completion in enumerate(send(make_requests(), model, ledger, usage)):
        yield _to_verdict(asked[number], completion)
    yield from failures


def try_request(case: AnswerCase, model: JudgeModel) -> CompletionRequest | Unjudged:
    """The request about an answer, or why there is none: its image cannot be opened."""
    try:
        return verdict_request(case, with_image=model.with_image)
    except MaskwiseError as error:
        return broken_image(case, error)


def broken_image(case: AnswerCase, error: MaskwiseError) -> Unjudged:
    """An answer that cannot be judged because of its image."""
    reason = f"image {case.sample.image_id!r}: {error}"
    return Unjudged(sample=case.sample.id, reason=reason)


def send(
    requests: Iterable[CompletionRequest],
    model: JudgeModel,
    ledger: Path,
    usage: Usage,
) -> Iterator[Completion]:
    """The completion of every request, in order. Requests are made a few at a time: their images take memory."""
    with Ledger(ledger) as opened:
        completions = complete(
            model.prepare(requests),
            model.client,
            opened,
            price=model.price or FREE,
            limits=model.limits,
            done=model.done,
        )
        for completion in completions:
            usage.add(completion, model)
            yield completion


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
    requests: Iterable[CompletionRequest], model: JudgeModel
) -> CostEstimate:
    """What requests would cost."""
    return estimate(
        model.prepare(requests),
        model.price or FREE,
        output_tokens=TYPICAL_TOKENS,
        batch=model.uses_batches,
    )

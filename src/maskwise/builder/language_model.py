"""A language model as the writer of a recipe: requests, completions, and what a build would cost."""

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from maskwise.builder.build_summary import FailureReason, WriterFailure, WriterUsage
from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.facts import ImageFacts
from maskwise.builder.filters import blind_request
from maskwise.builder.filters.blind_check import TYPICAL_TOKENS
from maskwise.builder.prompt import MarkedRegions, expected_tokens, make_request
from maskwise.builder.recipe import Recipe, output_to_drafts
from maskwise.builder.source_images import SourceFolder
from maskwise.builder.verifier import ANSWER_TOKENS, verify_request
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import ImageError
from maskwise.store import Dataset
from maskwise.writers.client import Client
from maskwise.writers.complete import Sender, SendLimits
from maskwise.writers.cost import CostEstimate, ModelPrice, estimate
from maskwise.writers.ledger import Ledger
from maskwise.writers.request import Completion, CompletionRequest, Thinking

SAMPLED = 200
"""A cost is estimated from this many images, spread evenly over the source."""

MAX_FAILURES = 20
"""Failed requests that are listed as examples."""

KIND_LENGTH = 60
"""Characters that reasons of one kind share: what follows quotes the reply."""

TYPICAL_QUESTION = "What in this scene would help a person who wants to sit down for a while and then to read?"


Done = Callable[[int, float], None]
"""Called with the number of images that were just written about, and what the build has cost so far."""


@dataclass(frozen=True)
class LanguageModel:
    """A model, its price and the limits of sending.

    check_blind: ask it every reasoning question without the image. thinking: what a reasoning model may spend on each
    request. ledger: where calls are recorded; None for a file beside the output. price_date: of the list of prices.
    """

    client: Client
    price: ModelPrice
    limits: SendLimits = field(default_factory=SendLimits)
    check_blind: bool = True
    thinking: Thinking | None = None
    ledger: Path | None = None
    price_date: str = ""

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self.client.provider}/{self.client.model}"

    def prepare(self, request: CompletionRequest) -> CompletionRequest:
        """The request with what the model may spend on thinking."""
        if self.thinking is None:
            return request
        return msgspec.structs.replace(request, thinking=self.thinking)


class ModelSession:
    """A language model at work on one build.

    done: called for every image that is written about. problems: samples that did not fit the schema.
    """

    def __init__(self, model: LanguageModel, sender: Sender, done: Done) -> None:
        self.model = model
        self.sender = sender
        self.ledger: Ledger = sender.ledger
        self.done = done
        self.failures: list[WriterFailure] = []
        self.problems: list[str] = []

    def ask(self, requests: Iterable[CompletionRequest]) -> Iterator[Completion]:
        """The completion of every request, in order. Sending starts while later requests are made."""
        return self.sender.complete(map(self.model.prepare, requests))

    def write_drafts(
        self,
        recipe: Recipe,
        dataset: Dataset,
        rows: Sequence[int],
        *,
        engine: EngineOptions,
    ) -> Iterator[list[Draft]]:
        """The drafts of every image row that can be asked about, in order. Requests are made by the engine."""
        make = partial(make_requests, SourceFolder.of(dataset), recipe)
        asked: deque[int] = deque()

        def made_requests() -> Iterator[CompletionRequest]:
            for row, made in zip(rows, map_chunks(make, rows, engine)):
                if isinstance(made, CompletionRequest):
                    asked.append(row)
                    yield made
                    continue
                if made is not None:
                    self.failures.append(made)
                self.done(1, self.ledger.cost)

        for completion in self.ask(made_requests()):
            image = SourceImage.of(dataset, asked.popleft())
            self.done(1, self.ledger.cost)
            yield self._read(recipe, image, completion)

    @property
    def usage(self) -> WriterUsage:
        """What all runs of the ledger used, and why requests of this run brought nothing."""
        statuses, input_tokens, output_tokens, cost = self.ledger.totals
        unanswered, unanswered_cost = self.ledger.unanswered
        return WriterUsage(
            writer=self.model.client.provider,
            model=self.model.client.model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost=cost,
            unanswered=unanswered,
            unanswered_cost=unanswered_cost,
            statuses=statuses,
            malformed=len(self.problems),
            failures=tuple(self.failures[:MAX_FAILURES]),
            reasons=count_reasons(self.failures),
        )

    def _read(
        self, recipe: Recipe, image: SourceImage, completion: Completion
    ) -> list[Draft]:
        """The drafts of a completion; a failed one brings none and is listed."""
        if completion.output is None:
            reason = completion.reason or "no reason given"
            self.failures.append(
                WriterFailure(
                    image_id=image.info.id, status=completion.status, reason=reason
                )
            )
            return []
        facts = ImageFacts(image)
        drafts, problems = output_to_drafts(completion.output, facts, recipe)
        self.problems.extend(problems)
        return drafts


def count_reasons(failures: Iterable[WriterFailure]) -> tuple[FailureReason, ...]:
    """Why requests brought nothing, most frequent first, each with an example.

    Reasons that differ in numbers only, such as a position in a text, are one.
    """
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], WriterFailure] = {}
    for failure in failures:
        key = (failure.status, re.sub(r"\d+", "#", failure.reason)[:KIND_LENGTH])
        counts[key] += 1
        examples.setdefault(key, failure)
    return tuple(
        FailureReason(count=count, example=examples[key])
        for key, count in counts.most_common()
    )


def make_requests(
    source: SourceFolder, recipe: Recipe, rows: Sequence[int]
) -> list[CompletionRequest | WriterFailure | None]:
    """The requests about some images of a dataset folder; a failure for one that cannot be opened, None for one without
    a region to ask about.
    """
    dataset = source.open()
    made: list[CompletionRequest | WriterFailure | None] = []
    for row in rows:
        image = SourceImage.of(dataset, row)
        try:
            made.append(make_request(ImageFacts(image), recipe))
        except ImageError as error:
            made.append(
                WriterFailure(
                    image_id=image.info.id, status="failed", reason=str(error)
                )
            )
    return made


def estimate_build(
    recipe: Recipe,
    dataset: Dataset,
    rows: Sequence[int],
    *,
    model: LanguageModel | None,
    verifier: LanguageModel | None = None,
) -> CostEstimate:
    """What a whole build would send and cost; what a ledger already holds is not subtracted."""
    step = max(1, math.ceil(len(rows) / SAMPLED))
    sampled = rows[::step]
    made = make_requests(SourceFolder.of(dataset), recipe, sampled)
    requests = [request for request in made if isinstance(request, CompletionRequest)]
    parts: list[CostEstimate] = []
    if model is not None:
        parts.append(_estimate(model, requests, expected_tokens(recipe)))
    if model is not None and model.check_blind:
        # Every reasoning question that is written is asked once more.
        questions = len(requests) * recipe.per_image * recipe.reasoning_share
        draft = Draft(
            image_id="",
            question=TYPICAL_QUESTION,
            answer="",
            targets=(),
            mask_type="both",
            kind="reasoning",
        )
        blind = [blind_request(draft)] * round(questions)
        parts.append(_estimate(model, blind, TYPICAL_TOKENS))
    if verifier is not None:
        checks = [_to_check(request, recipe) for request in requests]
        parts.append(_estimate(verifier, checks, ANSWER_TOKENS * recipe.per_image))
    scale = len(rows) / max(1, len(sampled))
    return CostEstimate(
        calls=round(scale * sum(part.calls for part in parts)),
        input_tokens=round(scale * sum(part.input_tokens for part in parts)),
        output_tokens=round(scale * sum(part.output_tokens for part in parts)),
        thinking_tokens=round(scale * sum(part.thinking_tokens for part in parts)),
        cost=scale * sum(part.cost for part in parts),
    )


def _estimate(
    model: LanguageModel, requests: Sequence[CompletionRequest], output_tokens: int
) -> CostEstimate:
    return estimate(
        map(model.prepare, requests),
        model.price,
        output_tokens=output_tokens,
        batch=bool(model.limits.batch_size) and model.client.has_batches,
    )


def _to_check(request: CompletionRequest, recipe: Recipe) -> CompletionRequest:
    """About the request that verifies what is written for a request."""
    regions = MarkedRegions(request.image or b"", (), {})
    check = verify_request([TYPICAL_QUESTION] * recipe.per_image, regions)
    # The list of regions is in both texts.
    return msgspec.structs.replace(check, text=request.text + check.text)


def ledger_path(out: Path, model: LanguageModel | None = None) -> Path:
    """Where the ledger of a build is: beside its output, so that it outlives it, unless the model names another."""
    if model is not None and model.ledger is not None:
        return model.ledger
    return out.with_name(f"{out.name}.ledger.sqlite")

"""A language model as the writer of a recipe: requests, completions, and what a build would cost."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from maskwise.builder.build_summary import WriterFailure, WriterUsage
from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.facts import ImageFacts
from maskwise.builder.filters import blind_request
from maskwise.builder.filters.blind_check import TYPICAL_TOKENS
from maskwise.builder.prompt import expected_tokens, make_request
from maskwise.builder.recipe import Recipe, output_to_drafts
from maskwise.builder.source_images import SourceFolder
from maskwise.engines import EngineOptions, map_chunks
from maskwise.store import Dataset
from maskwise.writers.client import Client
from maskwise.writers.complete import SendLimits, complete
from maskwise.writers.cost import CostEstimate, ModelPrice, estimate
from maskwise.writers.ledger import Ledger
from maskwise.writers.request import Completion, CompletionRequest

CHUNK = 1000
"""Images whose requests are in memory at once, with their encoded images."""

SAMPLED = 200
"""A cost is estimated from this many images, spread evenly over the source."""

MAX_FAILURES = 20
"""Failed requests that are listed as examples."""

TYPICAL_QUESTION = "What in this scene would help a person who wants to sit down for a while and then to read?"


@dataclass(frozen=True)
class LanguageModel:
    """A model, its price and the limits of sending. check_blind: ask it every reasoning question without the image."""

    client: Client
    price: ModelPrice
    limits: SendLimits = field(default_factory=SendLimits)
    check_blind: bool = True


class ModelSession:
    """A language model at work on one build.

    done: called with the number of images just answered. problems: samples that did not fit the schema.
    """

    def __init__(
        self, model: LanguageModel, ledger: Ledger, done: Callable[[int], None]
    ) -> None:
        self.model = model
        self.ledger = ledger
        self.done = done
        self.failures: list[WriterFailure] = []
        self.problems: list[str] = []

    def ask(self, requests: Sequence[CompletionRequest]) -> Iterator[Completion]:
        """The completion of every request, in order."""
        model = self.model
        return complete(
            requests, model.client, self.ledger, price=model.price, limits=model.limits
        )

    def write_drafts(
        self,
        recipe: Recipe,
        dataset: Dataset,
        rows: Sequence[int],
        *,
        engine: EngineOptions,
    ) -> Iterator[list[Draft]]:
        """The drafts of every image row, in order. Requests are made by the engine and sent from here."""
        make = partial(make_requests, SourceFolder.of(dataset), recipe)
        for first in range(0, len(rows), CHUNK):
            chunk = rows[first : first + CHUNK]
            requests: dict[int, CompletionRequest] = {}
            for row, request in zip(chunk, map_chunks(make, chunk, engine)):
                if request is not None:
                    requests[row] = request
            completions = self.ask(list(requests.values()))
            completion_of_row = dict(zip(requests, completions))
            self.done(len(chunk))
            for row in chunk:
                image = SourceImage.of(dataset, row)
                yield self._read(recipe, image, completion_of_row.get(row))

    @property
    def usage(self) -> WriterUsage:
        """What all runs of the ledger used."""
        statuses, input_tokens, output_tokens, cost = self.ledger.totals
        return WriterUsage(
            writer=self.model.client.provider,
            model=self.model.client.model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost=cost,
            statuses=statuses,
            malformed=len(self.problems),
            failures=tuple(self.failures[:MAX_FAILURES]),
        )

    def _read(
        self, recipe: Recipe, image: SourceImage, completion: Completion | None
    ) -> list[Draft]:
        """The drafts of a completion; a failed one brings none and is listed."""
        if completion is None:
            return []
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


def make_requests(
    source: SourceFolder, recipe: Recipe, rows: Sequence[int]
) -> list[CompletionRequest | None]:
    """The requests about some images of a dataset folder; None for an image without a region to ask about."""
    dataset = source.open()
    return [
        make_request(ImageFacts(SourceImage.of(dataset, row)), recipe) for row in rows
    ]


def estimate_build(
    recipe: Recipe, dataset: Dataset, rows: Sequence[int], *, model: LanguageModel
) -> CostEstimate:
    """What a whole build would send and cost; what a ledger already holds is not subtracted."""
    step = max(1, math.ceil(len(rows) / SAMPLED))
    sampled = rows[::step]
    requests = make_requests(SourceFolder.of(dataset), recipe, sampled)
    batch = bool(model.limits.batch_size) and model.client.has_batches
    parts = [
        estimate(
            filter(None, requests),
            model.price,
            output_tokens=expected_tokens(recipe),
            batch=batch,
        )
    ]
    if model.check_blind:
        sent_images = len(requests) - requests.count(None)
        # Every reasoning question that is written is asked once more.
        questions = sent_images * recipe.per_image * recipe.reasoning_share
        draft = Draft(
            image_id="",
            question=TYPICAL_QUESTION,
            answer="",
            targets=(),
            mask_type="both",
            kind="reasoning",
        )
        parts.append(
            estimate(
                [blind_request(draft)] * round(questions),
                model.price,
                output_tokens=TYPICAL_TOKENS,
                batch=batch,
            )
        )
    scale = len(rows) / max(1, len(sampled))
    return CostEstimate(
        calls=round(scale * sum(part.calls for part in parts)),
        input_tokens=round(scale * sum(part.input_tokens for part in parts)),
        output_tokens=round(scale * sum(part.output_tokens for part in parts)),
        cost=scale * sum(part.cost for part in parts),
    )


def ledger_path(out: Path) -> Path:
    """Where the ledger of a build is: beside its output, so that it outlives it."""
    return out.with_name(f"{out.name}.ledger.sqlite")

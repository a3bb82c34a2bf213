"""Runs to judge, and people with a known taste."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from sqlalchemy import select

from maskwise.harness.score import score
from maskwise.review import tables
from maskwise.review.database import ReviewDatabase
from maskwise.review.judged_runs import open_judged_runs
from maskwise.review.judgments import JudgmentOptions
from maskwise.review.queue import Reviewer
from maskwise.review.records import Mode, NewDecision
from maskwise.review.review import Review
from maskwise.schema import Answer, PredictedRegion, Prediction
from maskwise.store import Dataset
from tests.review.datasets import box

SHIFTS = {"good": 0, "fair": 1, "poor": 3}
"""Runs of most tests."""


def write_runs(
    folder: Path, dataset: Dataset, shifts: Mapping[str, int] = SHIFTS
) -> list[Path]:
    """Scored runs on the cups. shifts: pixels by which each misses, by its name."""
    paths = []
    for name, shift in shifts.items():
        predictions = [
            Prediction(
                sample=sample.id,
                answer=Answer(text=f"It is the <b>cup</b> of {sample.id}."),
                mask_type="both",
                regions=(
                    PredictedRegion(
                        name="cup",
                        visible=box(2 + shift, 2, 4, 4),
                        amodal=box(2 + shift, 2, 4, 6),
                    ),
                ),
            )
            for sample in dataset
        ]
        score(predictions, dataset, folder / name, protocols=["strict"], progress=False)
        paths.append(folder / name)
    return paths


def open_judgments(
    paths: Sequence[Path], database: str | Path, mode: Mode = "compare", **options: Any
) -> Review:
    """A review of the predictions of runs, begun."""
    runs = open_judged_runs(paths, mode)
    review = Review(runs.dataset, ReviewDatabase(database), runs=runs)
    _opened.append(review)
    review.create(judgments=JudgmentOptions(**options))
    return review


_opened: list[Review] = []


def close_judgments() -> None:
    """Close the databases of all that `open_judgments` opened."""
    while _opened:
        _opened.pop().database.close()


def judge(item: int, verdict: str, **fields: Any) -> NewDecision:
    id = UUID(int=random.getrandbits(128), version=4)
    values = {"id": id, "item": item, "verdict": verdict} | fields
    return msgspec.convert(values, NewDecision)


def shown_runs(review: Review, item: int) -> tuple[int, int | None]:
    """The runs of an item: what only the owner can know."""
    with review.database.read() as connection:
        row = connection.execute(
            select(tables.items).where(tables.items.c.item == item)
        ).one()
    return row.left, row.right


class Rater:
    """Prefers the run on the left with the probability of Bradley and Terry. strengths: of the runs."""

    def __init__(
        self, review: Review, reviewer: Reviewer, strengths: Sequence[float], seed: int
    ) -> None:
        self.review = review
        self.reviewer = reviewer
        self.strengths = strengths
        self.chance = np.random.default_rng(seed)

    def work(self) -> int:
        """Judge all that is left; returns how many items that were."""
        count = 0
        items = self.review.queue(self.reviewer, 1)
        while items:
            decision = judge(items[0].item, self._prefer(items[0].item), next=1)
            items = self.review.decide(self.reviewer, decision).items
            count += 1
        return count

    def _prefer(self, item: int) -> str:
        left, right = shown_runs(self.review, item)
        assert right is not None
        difference = self.strengths[left] - self.strengths[right]
        return (
            "left" if self.chance.random() < 1 / (1 + np.exp(-difference)) else "right"
        )

"""Write people's judgments of predictions as JSON lines, one per run, question and reviewer.

`maskwise judge calibrate` reads them to measure a judge of answers. Control items and undone judgments are left out.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from maskwise.errors import StoreError
from maskwise.review.judged_runs import JudgedRuns
from maskwise.review.judgments import Judgment
from maskwise.review.review import Review
from maskwise.runs.judgments import PeopleVerdict
from maskwise.store.atomic import atomic_write

YES_FROM = 4
NO_TO = 2
"""A rating of 4 or 5 says yes, of 1 or 2 no; 3 says neither."""

OF_THE_FIRST = {"left": "this", "right": "other", "tie": "tie", "bad": "bad"}
OF_THE_SECOND = {"left": "other", "right": "this", "tie": "tie", "bad": "bad"}
"""`better` of a comparison for the run on the left and on the right side."""


class PersonVerdict(PeopleVerdict, frozen=True, kw_only=True, omit_defaults=True):
    """A verdict with what it follows from. A criterion that was not asked for, or answered by neither yes nor no, is
    absent. other, better: of a comparison with another run.
    """

    ratings: dict[str, int] = msgspec.field(default_factory=dict)
    other: str | None = None
    better: str | None = None
    criteria: list[str] = msgspec.field(default_factory=list)
    seconds: float | None = None


def export_verdicts(review: Review, path: str | os.PathLike[str]) -> int:
    """Write all judgments of a review; returns how many lines."""
    runs = review.runs
    if runs is None:
        raise StoreError("this is the review of a dataset; verdicts are about runs")
    lines = [
        msgspec.json.encode(verdict)
        for judgment in review.judgments()
        for verdict in _verdicts(runs, judgment)
    ]
    with atomic_write(path) as file:
        for line in lines:
            file.write(line + b"\n")
    return len(lines)


def _verdicts(runs: JudgedRuns, judgment: Judgment) -> Iterator[PersonVerdict]:
    """One line for a rating, two for a comparison."""
    facts: dict[str, Any] = {
        "sample": runs.dataset.samples.id[judgment.row],
        "reviewer": judgment.reviewer,
        "reason": judgment.note or None,
        "seconds": judgment.seconds,
    }
    left = runs.names[judgment.left]
    if judgment.right is None:
        yield PersonVerdict(
            run=left,
            correct=_yes_or_no(judgment.ratings.get("correct")),
            grounded=_yes_or_no(judgment.ratings.get("grounded")),
            ratings=judgment.ratings,
            **facts,
        )
        return
    right = runs.names[judgment.right]
    sides = ((left, right, OF_THE_FIRST), (right, left, OF_THE_SECOND))
    for run, other, better in sides:
        yield PersonVerdict(
            run=run,
            other=other,
            better=better[judgment.verdict],
            criteria=judgment.criteria,
            **facts,
        )


def _yes_or_no(rating: int | None) -> bool | None:
    if rating is None or NO_TO < rating < YES_FROM:
        return None
    return rating >= YES_FROM

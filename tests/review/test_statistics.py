"""What the owner sees, on small reviews whose numbers are worked out by hand."""

from typing import Any
from uuid import uuid4

import msgspec
import pytest

from maskwise.review.queue import Reviewer
from maskwise.review.records import ControlAnswer, NewDecision
from maskwise.review.review import Review
from tests.review.conftest import StartReview
from tests.review.datasets import box


def join(review: Review, name: str, role: Any = "reviewer") -> Reviewer:
    reviewer = review.find_reviewer(review.add_reviewer(name, role))
    assert reviewer is not None
    return reviewer


def decide(
    review: Review,
    reviewer: Reviewer,
    item: int,
    verdict: str = "accept",
    **fields: Any,
) -> None:
    values = {"id": str(uuid4()), "item": item, "verdict": verdict} | fields
    review.decide(reviewer, msgspec.convert(values, NewDecision))


def cup_edit(width: int) -> dict[str, Any]:
    return {"targets": [{"id": "cup", "amodal": box(2, 2, width, 6)}]}


def test_an_untouched_review_has_no_numbers_to_show(start: StartReview) -> None:
    review = start(double_share=0.5)
    review.add_reviewer("ada")
    stats = review.stats()
    assert (stats.progress.items, stats.progress.open) == (12, 12)
    assert (stats.throughput, stats.reasons, stats.double_share) == ([], [], 0.5)
    agreement = stats.agreement
    assert (agreement.items, agreement.alpha, agreement.mask_iou) == (0, None, None)
    (ada,) = stats.reviewers
    assert (ada.decisions, ada.seconds_median, ada.last) == (0, None, None)
    assert ada.controls.accuracy is None


def test_progress_counts_every_item_once(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    decide(review, ada, 0)
    decide(review, ada, 1, "fix", edit=cup_edit(5))
    decide(review, ada, 2, "reject", reason="bad-mask")
    decide(review, ada, 3, "skip")
    progress = review.stats().progress
    assert (progress.accepted, progress.fixed, progress.rejected) == (1, 1, 1)
    assert (progress.open, progress.disputed) == (9, 0)
    assert (progress.items, progress.decisions) == (12, 3), "a skip decides nothing"


def test_time_per_decision_leaves_out_skips_and_what_was_undone(
    start: StartReview,
) -> None:
    review = start()
    ada = join(review, "ada")
    for item, seconds in enumerate((2.0, 4.0, 9.0)):
        decide(review, ada, item, seconds=seconds)
    decide(review, ada, 3)
    decide(review, ada, 4, "skip", seconds=100.0)
    decide(review, ada, 5, seconds=100.0)
    review.undo(ada, str(uuid4()))
    (stats,) = review.stats().reviewers
    assert stats.seconds_median == 4.0
    assert (stats.decisions, stats.skip, stats.undone) == (4, 1, 1)
    assert stats.last is not None


def test_reasons_are_counted_with_their_titles_the_most_frequent_first(
    start: StartReview,
) -> None:
    review = start()
    ada = join(review, "ada")
    for item, reason in enumerate(("ambiguous", "bad-mask", "ambiguous")):
        decide(review, ada, item, "reject", reason=reason)
    reasons = review.stats().reasons
    assert [(reason.code, reason.count) for reason in reasons] == [
        ("ambiguous", 2),
        ("bad-mask", 1),
    ]
    assert reasons[0].title == "The question can be understood in several ways"


def test_a_control_is_right_if_the_decision_agrees_with_the_known_answer(
    start: StartReview,
) -> None:
    review = start(
        controls={
            "s0": ControlAnswer(verdict="accept"),
            "s1": ControlAnswer(verdict="reject", reason="ambiguous"),
        }
    )
    ada = join(review, "ada")
    bob = join(review, "bob")
    decide(review, ada, 0)
    # Another reason is as right as the known one.
    decide(review, ada, 1, "reject", reason="bad-mask")
    decide(review, bob, 0, "skip")
    decide(review, bob, 1)
    accuracy = {stats.name: stats.controls for stats in review.stats().reviewers}
    assert (accuracy["ada"].seen, accuracy["ada"].accuracy) == (2, 1.0)
    assert (accuracy["bob"].seen, accuracy["bob"].accuracy) == (1, 0.0)


def test_agreement_of_masks_is_weighted_by_the_number_of_masks(
    start: StartReview,
) -> None:
    """ada and bob fix two items: amodal masks of 5 x 6 and 10 x 6 pixels (IoU 1/2), visible ones as they were (1)."""
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    for item in (0, 1):
        decide(review, ada, item, "fix", edit=cup_edit(5))
        decide(review, bob, item, "fix", edit=cup_edit(10))
    agreement = review.stats().agreement
    (pair,) = agreement.pairs
    assert (pair.a, pair.b, pair.items, pair.equal) == ("ada", "bob", 2, 2)
    assert (pair.masks, pair.mask_iou) == (4, pytest.approx(0.75))
    assert (agreement.masks, agreement.mask_iou) == (4, pytest.approx(0.75))
    assert pair.kappa is None, "both use one verdict only"


def test_adjudications_do_not_count_as_agreement(start: StartReview) -> None:
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    eve = join(review, "eve", "adjudicator")
    decide(review, ada, 0)
    decide(review, bob, 0, "reject", reason="ambiguous")
    decide(review, eve, 0)
    agreement = review.stats().agreement
    assert (agreement.items, agreement.equal, len(agreement.pairs)) == (1, 0, 1)


def test_pages_of_the_audit_log_follow_each_other(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    decide(review, ada, 0)
    review.undo(ada, str(uuid4()))
    kinds = [event.kind for event in review.events(0, 100)]
    assert kinds == [
        "project_created",
        "items_added",
        "reviewer_added",
        "decided",
        "undone",
    ]
    first = review.events(0, 2)
    rest = review.events(first[-1].seq, 100)
    assert [event.kind for event in first + rest] == kinds
    assert [event.actor for event in rest] == ["", "ada", "ada"]
    assert review.events(rest[-1].seq, 100) == []

"""Who is given which item: roles, control items and what is counted."""

from typing import Any
from uuid import uuid4

import msgspec
import pytest

from maskwise.review.decisions import ReviewConflictError
from maskwise.review.edits import InvalidDecisionError
from maskwise.review.queue import CONTROL_EVERY, Reviewer
from maskwise.review.records import ControlAnswer, NewDecision
from maskwise.review.refine import Click
from maskwise.review.review import BlindItemError, Review
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


def test_an_owner_is_given_disputes_only(start: StartReview) -> None:
    review = start(double_share=1.0)
    owner = join(review, "olga", "owner")
    ada = join(review, "ada")
    bob = join(review, "bob")
    assert review.queue(owner, 3) == []
    item = review.queue(ada, 1)[0].item
    review.queue(bob, 1)
    with pytest.raises(ReviewConflictError):
        decide(review, owner, item)
    decide(review, ada, item)
    decide(review, bob, item, "reject", reason="ambiguous")
    assert [shown.item for shown in review.queue(owner, 3)] == [item]


def test_an_adjudicator_also_reviews_but_not_the_own_disputes(
    start: StartReview,
) -> None:
    review = start(double_share=1.0)
    eve = join(review, "eve", "adjudicator")
    ada = join(review, "ada")
    item = review.queue(eve, 1)[0].item
    assert review.queue(ada, 1)[0].item == item
    decide(review, eve, item)
    decide(review, ada, item, "reject", reason="ambiguous")
    assert item not in [shown.item for shown in review.queue(eve, 12)]


def test_one_item_in_ten_is_a_control_while_there_are_any(start: StartReview) -> None:
    controls = {f"s{row}": ControlAnswer(verdict="accept") for row in (0, 1, 2)}
    review = start(controls=controls)
    ada = join(review, "ada")
    order = []
    while shown := review.queue(ada, 1):
        order.append(shown[0].item)
        decide(review, ada, order[-1])
    assert sorted(order) == list(range(12))
    first_ten = order[:CONTROL_EVERY]
    assert len({0, 1, 2} & set(first_ten)) <= 2, "controls are spread over the work"


def test_a_reviewer_who_joins_later_gets_the_controls_too(start: StartReview) -> None:
    review = start(controls={"s0": ControlAnswer(verdict="accept")})
    for name in ("ada", "bob"):
        reviewer = join(review, name)
        items = [shown.item for shown in review.queue(reviewer, 12)]
        assert 0 in items
        review.renew(reviewer, [], items)


def test_progress_counts_decisions_and_open_items(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    items = [shown.item for shown in review.queue(ada, 3)]
    decide(review, ada, items[0])
    decide(review, ada, items[1], "skip")
    assert review.progress(ada).decided == 1
    # The number of open items may be some moments old.
    assert review.progress(ada).open in (11, 12)
    review.undo(ada, str(uuid4()))
    review.undo(ada, str(uuid4()))
    assert review.progress(ada).decided == 0


def test_history_is_paged_from_the_latest_on(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    items = [shown.item for shown in review.queue(ada, 4)]
    for item in items:
        decide(review, ada, item, note=f"item {item}")
    latest = review.history(ada, before=None, limit=3)
    assert [facts.item for facts in latest] == items[:0:-1]
    (earliest,) = review.history(ada, before=latest[-1].seq, limit=3)
    assert (earliest.item, earliest.note) == (items[0], f"item {items[0]}")
    assert review.history(join(review, "bob"), before=None, limit=3) == []


class Recorder:
    """A refiner that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def refine(self, image: Any, mask: Any, points: Any) -> Any:
        self.asked.append((image.size, mask, list(points)))
        return box(0, 0, 1, 1)


def test_clicks_are_checked_before_the_model_is_asked(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    item = review.queue(ada, 1)[0].item
    model = Recorder()
    inside = Click(16.0, 12.0, True)

    def refine(reviewer: Reviewer, *points: Click, mask: Any = None) -> Any:
        return review.refine(reviewer, model, item=item, mask=mask, points=points)

    for outside in (Click(16.1, 1.0), Click(1.0, -0.1), Click(float("nan"), 1.0)):
        with pytest.raises(InvalidDecisionError, match="outside the image"):
            refine(ada, inside, outside)
    with pytest.raises(BlindItemError):
        refine(join(review, "bob"), inside)
    assert model.asked == []
    assert refine(ada, inside, mask=box(2, 2, 4, 4)) == box(0, 0, 1, 1)
    assert model.asked == [((16, 12), box(2, 2, 4, 4), [inside])]

"""Reviewers add questions, answers and regions; others check them; the export says who added what."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from maskwise.review.decisions import ReviewConflictError
from maskwise.review.edits import InvalidDecisionError
from maskwise.review.export import export_review, read_provenance
from maskwise.review.queue import Reviewer
from maskwise.review.records import NewSample
from maskwise.review.review import BlindItemError, Review
from maskwise.store import Dataset
from tests.review.conftest import StartReview
from tests.review.datasets import box
from tests.review.test_review import decision, join, state


def addition(item: int, **fields: Any) -> NewSample:
    values = {
        "id": str(uuid4()),
        "item": item,
        "question": "What stands on the table?",
        "mask_type": "visible",
        "answer": {"text": "A vase."},
        "targets": [{"id": "new-1", "name": "vase", "visible": box(8, 1, 3, 5)}],
    }
    return msgspec.convert(values | fields, NewSample)


def take_all(review: Review, reviewer: Reviewer) -> list[int]:
    """Accept all that the queue offers."""
    taken = []
    while items := review.queue(reviewer, 1):
        review.decide(reviewer, decision(items[0].item))
        taken.append(items[0].item)
    return taken


def test_an_addition_is_checked_by_somebody_else_and_exported(
    start: StartReview, tmp_path: Path
) -> None:
    review = start()
    ada = join(review, "ada")
    bob = join(review, "bob")
    (held,) = review.queue(ada, 1)
    new = addition(held.item)
    added = review.add_sample(ada, new)
    assert (added.item, added.sample) == (12, f"{held.sample}+{str(new.id)[:8]}")
    assert review.add_sample(ada, new).replayed
    assert take_all(review, ada) == [5, 7, *(n for n in range(12) if n not in (5, 7))]
    (offered,) = review.queue(bob, 1)
    assert offered.item == 12
    assert offered.question == "What stands on the table?"
    assert offered.tags == {"added_by": "ada"}
    assert offered.image == held.image
    edit = {"question": "What holds flowers?"}
    review.decide(bob, decision(12, "fix", edit=edit))
    export_review(review, tmp_path / "out")
    exported = Dataset.open(tmp_path / "out")
    sample = exported.sample(added.sample)
    assert len(exported) == 13
    assert sample.question == "What holds flowers?"
    assert sample.tags == {"added_by": "ada", "review": "fixed", "reviewed_by": "bob"}
    (vase,) = sample.targets
    assert (vase.name, vase.visible) == ("vase", box(8, 1, 3, 5))
    assert vase.id in {region.id for region in exported.regions_of(sample.image_id)}
    lines = {line.sample: line for line in read_provenance(tmp_path / "out")}
    assert lines[added.sample].added_by == "ada"
    assert lines[added.sample].decisions[0].reviewer == "bob"
    before = state(review)
    review.rebuild()
    assert state(review) == before


def test_an_addition_that_nobody_checked_is_exported_on_request(
    start: StartReview, tmp_path: Path
) -> None:
    review = start()
    ada = join(review, "ada")
    (held,) = review.queue(ada, 1)
    added = review.add_sample(ada, addition(held.item))
    take_all(review, ada)
    checked = export_review(review, tmp_path / "checked")
    assert (checked.written, checked.statuses["unchecked"]) == (12, 1)
    corrected = export_review(review, tmp_path / "corrected", keep_undecided=True)
    assert corrected.written == 12
    export_review(review, tmp_path / "all", unchecked=True)
    sample = Dataset.open(tmp_path / "all").sample(added.sample)
    assert sample.tags == {"added_by": "ada", "review": "added"}
    assert review.stats().progress.added == 1


def test_an_addition_is_withdrawn_until_somebody_checks_it(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    bob = join(review, "bob")
    (held,) = review.queue(ada, 1)
    first = review.add_sample(ada, addition(held.item))
    second = review.add_sample(ada, addition(held.item))
    with pytest.raises(ReviewConflictError, match="not your addition"):
        review.withdraw_sample(bob, first.item)
    with pytest.raises(ReviewConflictError, match="not your addition"):
        review.withdraw_sample(ada, 0)
    review.withdraw_sample(ada, first.item)
    review.withdraw_sample(ada, first.item)
    assert first.item not in take_all(review, bob)
    with pytest.raises(ReviewConflictError, match="somebody else"):
        review.withdraw_sample(ada, second.item)
    progress = review.stats().progress
    assert (progress.added, progress.withdrawn) == (1, 1)
    before = state(review)
    review.rebuild()
    assert state(review) == before


def test_authors_do_not_decide_about_their_additions(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    (held,) = review.queue(ada, 1)
    added = review.add_sample(ada, addition(held.item))
    with pytest.raises(ReviewConflictError):
        review.decide(ada, decision(added.item))


def test_only_images_that_a_reviewer_was_given_can_be_asked_about(
    start: StartReview,
) -> None:
    review = start()
    ada = join(review, "ada")
    with pytest.raises(BlindItemError):
        review.add_sample(ada, addition(0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": "  "}, "has no words"),
        ({"question": "a\x00b"}, "control character"),
        ({"targets": [{"id": "new-1"}]}, "needs a name"),
        ({"targets": [{"id": "cup"}, {"id": "cup"}]}, "occurs twice"),
        (
            {
                "answer": {
                    "text": "It",
                    "phrases": [{"start": 0, "stop": 2, "regions": [3]}],
                }
            },
            "refers to region 3",
        ),
    ],
)
def test_a_bad_addition_is_refused(
    start: StartReview, fields: Any, message: str
) -> None:
    review = start()
    ada = join(review, "ada")
    (held,) = review.queue(ada, 1)
    with pytest.raises(InvalidDecisionError, match=message):
        review.add_sample(ada, addition(held.item, **fields))
    assert review.stats().progress.added == 0


def test_an_id_is_used_once(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    (held,) = review.queue(ada, 1)
    new = addition(held.item)
    review.add_sample(ada, new)
    other = msgspec.structs.replace(new, question="Another one?")
    with pytest.raises(ReviewConflictError, match="make a new one"):
        review.add_sample(ada, other)

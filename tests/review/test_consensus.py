"""When two decisions agree, and what the decisions about an item amount to."""

from typing import Any

import pytest

from maskwise.review.consensus import AGREED_IOU, Opinion, agree, mask_ious, settle
from maskwise.review.records import EditedSample
from maskwise.schema import Answer, Region
from tests.review.datasets import box


def edited(*targets: Region, **fields: Any) -> EditedSample:
    values: dict[str, Any] = {
        "question": "What holds tea?",
        "mask_type": "both",
        "targets": targets or (cup(),),
        "answer": Answer(text="The cup."),
    }
    return EditedSample(**values | fields)


def cup(**masks: Any) -> Region:
    return Region(id="cup", name="cup", **masks or {"visible": box(0, 0, 10, 10)})


def fix(id: str, sample: EditedSample) -> Opinion:
    return Opinion(id, "fix", sample)


ACCEPT = Opinion("a", "accept", None)
REJECT = Opinion("r", "reject", None)


def test_an_item_is_open_until_it_has_enough_reviews() -> None:
    assert settle([], [], 1) == ("open", None)
    assert settle([ACCEPT], [], 2) == ("open", None)


def test_reviews_that_agree_settle_an_item_and_the_first_counts() -> None:
    later = Opinion("b", "accept", None)
    assert settle([ACCEPT], [], 1) == ("accepted", "a")
    assert settle([ACCEPT, later], [], 2) == ("accepted", "a")
    assert settle([REJECT], [], 1) == ("rejected", "r")


def test_reviews_that_differ_make_a_dispute_and_an_adjudication_ends_it() -> None:
    assert settle([ACCEPT, REJECT], [], 2) == ("disputed", None)
    assert settle([ACCEPT, REJECT], [REJECT], 2) == ("rejected", "r")
    # The last adjudication counts, and it counts before any number of reviews.
    assert settle([ACCEPT], [REJECT, Opinion("z", "accept", None)], 2) == (
        "accepted",
        "z",
    )


def test_rejections_agree_whatever_their_reasons() -> None:
    assert agree(REJECT, Opinion("s", "reject", None))
    assert not agree(REJECT, ACCEPT)


def test_fixes_agree_if_their_words_do_however_they_are_spaced() -> None:
    first = fix("a", edited())
    assert agree(first, fix("b", edited(question=" What  holds tea? ")))
    assert agree(first, fix("b", edited(answer=Answer(text="The  cup."))))
    assert not agree(first, fix("b", edited(question="What holds coffee?")))
    assert not agree(first, fix("b", edited(answer=None)))
    assert not agree(first, fix("b", edited(mask_type="amodal")))


@pytest.mark.parametrize(
    ("width", "agrees"), [(10, True), (11, True), (12, False), (16, False)]
)
def test_fixes_agree_from_an_iou_of_nine_tenths_on(width: int, agrees: bool) -> None:
    first = edited()
    second = edited(cup(visible=box(0, 0, width, 10)))
    iou = 10 / width
    assert mask_ious(first, second) == [pytest.approx(iou)]
    assert (iou >= AGREED_IOU) == agrees
    assert agree(fix("a", first), fix("b", second)) == agrees


def test_fixes_with_other_targets_or_other_known_masks_differ() -> None:
    first = fix("a", edited())
    bowl = Region(id="bowl", name="bowl", visible=box(0, 0, 10, 10))
    both = cup(visible=box(0, 0, 10, 10), amodal=box(0, 0, 10, 10))
    assert not agree(first, fix("b", edited(bowl)))
    assert not agree(first, fix("b", edited(cup(), bowl)))
    assert not agree(first, fix("b", edited(both)))


def test_two_empty_masks_agree() -> None:
    empty = cup(visible=box(0, 0, 0, 0))
    assert mask_ious(edited(empty), edited(empty)) == [1.0]


def test_masks_are_compared_by_target_and_type() -> None:
    first = edited(cup(visible=box(0, 0, 4, 4), amodal=box(0, 0, 8, 4)))
    second = edited(cup(amodal=box(0, 0, 4, 4)))
    assert mask_ious(first, second) == [0.5]

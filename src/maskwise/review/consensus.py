"""When two decisions about a sample agree, and what follows from the decisions about an item."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from maskwise.masks import Mask
from maskwise.review.records import JUDGED, STATUS_OF, EditedSample, Verdict

AGREED_IOU = 0.9
"""Two edited masks agree from this IoU on: people do not draw the same pixels twice."""

AGREED_STEPS = 1
"""Two ratings agree if they are no further apart: the next step of the scale is a matter of taste."""


class Opinion(NamedTuple):
    """A decision that counts: neither undone nor a skip."""

    id: str
    verdict: Verdict
    edit: EditedSample | None
    ratings: Mapping[str, int] = {}


def settle(
    reviews: Sequence[Opinion], adjudications: Sequence[Opinion], needed: int
) -> tuple[str, str | None]:
    """The status of an item and the id of the decision that counts, None where there is none.

    Both lists are in the order of time.
    An adjudication counts before all reviews. Without one, `needed` reviews must agree; the first of them counts.
    Judgments of predictions need not agree, and all of them count.
    """
    if adjudications:
        last = adjudications[-1]
        return STATUS_OF[last.verdict], last.id
    if len(reviews) < needed:
        return "open", None
    first = reviews[0]
    if STATUS_OF[first.verdict] == JUDGED:
        return JUDGED, None
    if all(agree(first, other) for other in reviews[1:]):
        return STATUS_OF[first.verdict], first.id
    return "disputed", None


def agree(a: Opinion, b: Opinion) -> bool:
    """Whether two decisions agree: the same verdict and, for a fix, the same sample within AGREED_IOU.

    Two rejections agree whatever their reasons. Ratings agree within AGREED_STEPS, on the criteria that both rated.
    """
    if a.verdict != b.verdict:
        return False
    if a.ratings or b.ratings:
        shared = a.ratings.keys() & b.ratings.keys()
        steps = [abs(a.ratings[name] - b.ratings[name]) for name in shared]
        return bool(steps) and max(steps) <= AGREED_STEPS
    if a.edit is None or b.edit is None:
        return a.edit is b.edit
    return _same_texts(a.edit, b.edit) and _same_targets(a.edit, b.edit)


def mask_ious(a: EditedSample, b: EditedSample) -> list[float]:
    """IoU of each mask that both samples have: the same target and the same type. 1 where both are empty."""
    others = {region.id: region for region in b.targets}
    ious = []
    for region in a.targets:
        other = others.get(region.id)
        if other is None:
            continue
        if region.visible is not None and other.visible is not None:
            ious.append(_iou(region.visible, other.visible))
        if region.amodal is not None and other.amodal is not None:
            ious.append(_iou(region.amodal, other.amodal))
    return ious


def _same_texts(a: EditedSample, b: EditedSample) -> bool:
    """Whether question, answer and mask type are the same; how words are spaced does not count."""
    answer_a = "" if a.answer is None else a.answer.text
    answer_b = "" if b.answer is None else b.answer.text
    same_question = a.question.split() == b.question.split()
    same_answer = answer_a.split() == answer_b.split()
    return same_question and same_answer and a.mask_type == b.mask_type


def _same_targets(a: EditedSample, b: EditedSample) -> bool:
    """Whether the same masks are known, and each pair of them has at least AGREED_IOU."""
    if _known_masks(a) != _known_masks(b):
        return False
    return all(iou >= AGREED_IOU for iou in mask_ious(a, b))


def _known_masks(sample: EditedSample) -> set[tuple[str, str]]:
    """Target id and mask type of the masks that are known."""
    masks = set()
    for region in sample.targets:
        if region.visible is not None:
            masks.add((region.id, "visible"))
        if region.amodal is not None:
            masks.add((region.id, "amodal"))
    return masks


def _iou(a: Mask, b: Mask) -> float:
    # Two empty masks agree, although their IoU is not defined.
    return 1.0 if a.counts == b.counts else a.iou(b)

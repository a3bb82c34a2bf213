"""When two decisions about a sample agree, and what follows from the decisions about an item."""

from collections.abc import Sequence
from typing import NamedTuple

from maskwise.masks import Mask
from maskwise.review.records import STATUS_OF, EditedSample, Verdict

AGREED_IOU = 0.9
"""Two edited masks agree from this IoU on: people do not draw the same pixels twice."""


class Opinion(NamedTuple):
    """A decision that counts: neither undone nor a skip."""

    id: str
    verdict: Verdict
    edit: EditedSample | None


class Outcome(NamedTuple):
    """What an item's decisions amount to. final: the decision that counts, if there is one."""

    status: str
    final: str | None


def settle(
    reviews: Sequence[Opinion], adjudications: Sequence[Opinion], needed: int
) -> Outcome:
    """The outcome of an item. Both lists are in the order of time.

    An adjudication counts before all reviews. Without one, `needed` reviews must agree; the first of them counts.
    """
    if adjudications:
        last = adjudications[-1]
        return Outcome(STATUS_OF[last.verdict], last.id)
    if len(reviews) < needed:
        return Outcome("open", None)
    first = reviews[0]
    if all(agree(first, other) for other in reviews[1:]):
        return Outcome(STATUS_OF[first.verdict], first.id)
    return Outcome("disputed", None)


def agree(a: Opinion, b: Opinion) -> bool:
    """Whether two decisions agree: the same verdict and, for a fix, the same sample within AGREED_IOU.

    Two rejections agree whatever their reasons.
    """
    if a.verdict != b.verdict:
        return False
    if a.edit is None or b.edit is None:
        return a.edit is b.edit
    return _same_texts(a.edit, b.edit) and _same_targets(a.edit, b.edit)


def mask_ious(a: EditedSample, b: EditedSample) -> list[float]:
    """IoU of each mask that both samples have: the same target and the same type. 1 where both are empty."""
    others = {region.id: region for region in b.targets}
    found = []
    for region in a.targets:
        if region.id in others:
            other = others[region.id]
            for one, two in (
                (region.visible, other.visible),
                (region.amodal, other.amodal),
            ):
                if one is not None and two is not None:
                    found.append(_iou(one, two))
    return found


def _same_texts(a: EditedSample, b: EditedSample) -> bool:
    return (
        _words(a.question) == _words(b.question)
        and a.mask_type == b.mask_type
        and _words("" if a.answer is None else a.answer.text)
        == _words("" if b.answer is None else b.answer.text)
    )


def _same_targets(a: EditedSample, b: EditedSample) -> bool:
    kinds = [
        {
            (region.id, kind)
            for region in sample.targets
            for kind in ("visible", "amodal")
            if region.mask(kind)
        }
        for sample in (a, b)
    ]
    return kinds[0] == kinds[1] and all(iou >= AGREED_IOU for iou in mask_ious(a, b))


def _iou(a: Mask, b: Mask) -> float:
    return 1.0 if a.counts == b.counts else a.iou(b)


def _words(text: str) -> list[str]:
    return text.split()

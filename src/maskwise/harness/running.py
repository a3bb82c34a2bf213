"""The gIoU shown while a run goes on: that of protocol `union`, sample by sample.

Union of the predicted masks against the union of the targets, of the type the question wants (`both` counts as
visible), 1 where both are empty, 0 for a failed reply. The final scores come from predictions.jsonl and owe nothing to
this.
"""

import functools
import operator
from collections.abc import Sequence

from maskwise.masks import Mask
from maskwise.schema import Prediction, Sample


def union_ious(samples: Sequence[Sample | str], predictions: Sequence[Prediction]) -> list[float | None]:
    """IoU of each sample of an image; None where there is none: a target lacks the mask, or the sample is not one."""
    return [
        union_iou(sample, prediction) if isinstance(sample, Sample) else None
        for sample, prediction in zip(samples, predictions)
    ]


def union_iou(sample: Sample, prediction: Prediction) -> float | None:
    """IoU of one sample; None where a target lacks the mask wanted."""
    wanted = _targets(sample)
    if wanted is None:
        return None
    found = _regions(prediction, sample.mask_type == "amodal")
    ignore = [sample.ignore] if sample.ignore is not None else []
    if prediction.error is not None or len({mask.size for mask in (*found, *wanted, *ignore)}) > 1:
        return 0.0
    a, b = _merge(found, sample.ignore), _merge(wanted, sample.ignore)
    if a is None or b is None:
        return 0.0 if any(mask is not None and mask.area for mask in (a, b)) else 1.0
    shared, drawn, meant = a.areas_with(b)
    return shared / (drawn + meant - shared) if drawn or meant else 1.0


def _merge(masks: list[Mask], ignore: Mask | None) -> Mask | None:
    """All masks as one, without the pixels to ignore; None where there are none."""
    if not masks:
        return None
    whole = functools.reduce(operator.or_, masks)
    return whole if ignore is None else whole - ignore


def _targets(sample: Sample) -> list[Mask] | None:
    """The targets' masks of the type wanted; None if one is not known."""
    masks = [region.amodal if sample.mask_type == "amodal" else region.visible for region in sample.targets]
    known = [mask for mask in masks if mask is not None]
    return known if len(known) == len(masks) else None


def _regions(prediction: Prediction, amodal: bool) -> list[Mask]:
    """The predicted masks of a type; a region without one shows the other."""
    pairs = [(region.visible, region.amodal) for region in prediction.regions]
    chosen = [(second or first) if amodal else (first or second) for first, second in pairs]
    return [mask for mask in chosen if mask is not None]

"""The gIoU shown while a run goes on: that of protocol `union`, picture by picture.

Union of the predicted masks against the union of the targets, of the type the question wants (`both` counts as
visible), 1 where both are empty, 0 for a failed reply. The final scores come from predictions.jsonl and owe nothing to
this.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskwise.errors import MaskError
from maskwise.masks import Mask, Masks, pair_areas
from maskwise.schema import Prediction, Sample


class _Drawn(NamedTuple):
    """A sample with something drawn: its position, predicted masks, targets, and pixels to ignore."""

    item: int
    found: list[Mask]
    wanted: list[Mask]
    ignore: Mask | None

    @property
    def frame(self) -> tuple[int, int]:
        return (*self.found, *self.wanted)[0].size


def union_ious(samples: Sequence[Sample | str], predictions: Sequence[Prediction]) -> list[float | None]:
    """IoU of each sample of a picture; None where there is none: a target lacks the mask, or the sample is not one."""
    out: list[float | None] = [None] * len(samples)
    drawn = []
    for item, (sample, prediction) in enumerate(zip(samples, predictions)):
        wanted = _targets(sample) if isinstance(sample, Sample) else None
        if wanted is None or isinstance(sample, str):
            continue
        found = _regions(prediction, sample.mask_type == "amodal")
        sizes = {mask.size for mask in (*found, *wanted)}
        if prediction.error is not None or len(sizes) > 1:
            out[item] = 0.0
        elif not sizes:
            out[item] = 1.0
        else:
            drawn.append(_Drawn(item, found, wanted, sample.ignore))
    for one, iou in zip(drawn, _measure(drawn) if drawn else ()):
        out[one.item] = iou
    return out


def _measure(drawn: list[_Drawn]) -> list[float]:
    frames = np.array([one.frame for one in drawn], np.int32)
    found = _merge([one.found for one in drawn], frames)
    wanted = _merge([one.wanted for one in drawn], frames)
    try:
        if any(one.ignore for one in drawn):
            hidden = _merge([[one.ignore] if one.ignore else [] for one in drawn], frames)
            found, wanted = found - hidden, wanted - hidden
    except MaskError:  # an `ignore` of another size, which scoring complains about
        return [0.0] * len(drawn)
    ious: list[float] = pair_areas(found, wanted).iou(empty=1.0).tolist()
    return ious


def _merge(groups: list[list[Mask]], frames: np.ndarray) -> Masks:
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    masks = [mask for group in groups for mask in group]
    sizes = np.array([mask.size for mask in masks], np.int32).reshape(-1, 2)
    return Masks.from_strings([mask.counts for mask in masks], sizes).merge(offsets, frames)


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

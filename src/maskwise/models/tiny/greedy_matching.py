"""Greedy matching of detections with ground truth by IoU, for training, validation and the oracle baselines."""

from collections.abc import Sequence

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.masks import Masks
from maskwise.models.tiny.detections import flatten
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.grounding import CandidateKey
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.schema import PredictedRegion, Region


def match_masks(
    masks: BoolArray, ground_truth: BoolArray, min_iou: float = 0.3
) -> list[int]:
    """For each mask of [n, s, s] the index of its ground-truth mask in [m, s, s], or -1.

    Greedy: the pair with the highest IoU first, each mask used once, pairs below `min_iou` left out.
    """
    n = len(masks)
    m = len(ground_truth)
    a = flatten(masks)
    b = flatten(ground_truth)
    intersection = a @ b.T
    iou = intersection / np.maximum(
        a.sum(1)[:, None] + b.sum(1)[None] - intersection, 1
    )
    matches = [-1] * n
    for flat in np.argsort(-iou, axis=None, kind="stable").tolist():
        i, j = divmod(flat, m)
        if iou[i, j] >= min_iou and matches[i] < 0 and j not in matches:
            matches[i] = j
    return matches


def match_targets(
    encoded: EncodedImage, targets: Sequence[Region]
) -> list[CandidateKey]:
    """The detections that match a target by amodal mask, objects and parts separately: a perfect grounder."""
    found: list[CandidateKey] = []
    for part in (False, True):
        keys = [key for key in encoded.candidates if (key[1] > 0) == part]
        wanted = [region for region in targets if (region.part_of is not None) == part]
        if keys and wanted:
            masks = np.stack([encoded.objects.mask(*key) for key in keys])
            matches = match_masks(
                masks, np.stack([resized_mask(region) for region in wanted])
            )
            found += [key for key, match in zip(keys, matches) if match >= 0]
    return found


def resized_mask(region: Region | PredictedRegion) -> BoolArray:
    """The amodal mask, or the visible one where there is none, at the model's resolution."""
    mask = region.amodal if region.amodal is not None else region.visible
    assert mask is not None
    return Masks.from_masks([mask]).resize((IMAGE_SIZE, IMAGE_SIZE))[0].to_dense()

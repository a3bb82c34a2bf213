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

MIN_IOU = 0.3
"""Lowest IoU of a match: detections of hidden objects overlap little, and a wrong match is rarer than none."""


def match_masks(
    masks: BoolArray, ground_truth: BoolArray, min_iou: float = MIN_IOU
) -> list[int]:
    """For each mask of [n, s, s] the index of its ground-truth mask in [m, s, s], or -1.

    Greedy: the pair with the highest IoU first, each mask used once, pairs below `min_iou` left out.
    """
    predicted = flatten(masks)
    truth = flatten(ground_truth)
    intersections = predicted @ truth.T
    unions = predicted.sum(1)[:, None] + truth.sum(1)[None] - intersections
    ious = intersections / np.maximum(unions, 1)
    matches = [-1] * len(masks)
    for place in np.argsort(-ious, axis=None, kind="stable").tolist():
        row, column = divmod(place, len(ground_truth))
        is_free = matches[row] < 0 and column not in matches
        if ious[row, column] >= min_iou and is_free:
            matches[row] = column
    return matches


def match_targets(
    encoded: EncodedImage, targets: Sequence[Region]
) -> list[CandidateKey]:
    """The detections that match a target by amodal mask, objects and parts separately: a perfect grounder."""
    matched: list[CandidateKey] = []
    for part in (False, True):
        keys = [key for key in encoded.candidates if (key[1] > 0) == part]
        regions = [region for region in targets if (region.part_of is not None) == part]
        if not keys or not regions:
            continue
        masks = np.stack([encoded.objects.mask(*key) for key in keys])
        truth = np.stack([resized_mask(region) for region in regions])
        matches = match_masks(masks, truth)
        matched += [key for key, match in zip(keys, matches) if match >= 0]
    return matched


def resized_mask(region: Region | PredictedRegion) -> BoolArray:
    """The amodal mask, or the visible one where there is none, at the model's resolution."""
    mask = region.amodal if region.amodal is not None else region.visible
    assert mask is not None
    return Masks.from_masks([mask]).resize((IMAGE_SIZE, IMAGE_SIZE))[0].to_dense()

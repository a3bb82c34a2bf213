"""COCO average precision of scored masks, as `pycocotools.COCOeval` computes it for one category and all sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Float64Array

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.arange(101) * 0.01
"""Where precision is sampled. The product is meant: 0.29 and 29 * 0.01 differ in the last bit."""
MAX_DETECTIONS = 100
"""Detections of an image that count, the best scored ones."""
HIGHEST_THRESHOLD = 1 - 1e-10
"""pycocotools caps the threshold, so that an IoU of 1 always matches."""


@dataclass(frozen=True)
class ImageDetections:
    """The detections of one image. score: float64 [detections]; iou: float64 [detections, annotations]."""

    score: Float64Array
    iou: Float64Array


def average_precision(
    images: Sequence[ImageDetections], thresholds: Float64Array = IOU_THRESHOLDS
) -> float | None:
    """Mean precision over recalls and thresholds; None without any annotation. images: in the order of their ids."""
    annotations = sum(image.iou.shape[1] for image in images)
    if not annotations:
        return None
    precisions = [
        _precision_at_recalls(images, threshold, annotations)
        for threshold in thresholds
    ]
    return float(np.mean(precisions))


def _precision_at_recalls(
    images: Sequence[ImageDetections], threshold: float, annotations: int
) -> Float64Array:
    """Precision at each of RECALLS, 0 where that recall is not reached."""
    scores = [np.zeros(0)]
    hits = [np.zeros(0, bool)]
    for image in images:
        order = np.argsort(-image.score, kind="stable")[:MAX_DETECTIONS]
        scores.append(image.score[order])
        hits.append(_match(image.iou[order], threshold))
    best_first = np.argsort(-np.concatenate(scores), kind="stable")
    hit = np.concatenate(hits)[best_first]
    true_positives = np.cumsum(hit)
    false_positives = np.cumsum(~hit)
    recall = true_positives / annotations
    precision = true_positives / (true_positives + false_positives + np.spacing(1))
    # The largest precision at this recall or a larger one.
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    position = np.searchsorted(recall, RECALLS, side="left")
    reached = position < len(recall)
    values = np.zeros(len(RECALLS))
    values[reached] = envelope[position[reached]]
    return values


def _match(iou: Float64Array, threshold: float) -> BoolArray:
    """Whether each detection, best first, finds an annotation that is still free. Of equal ones the last is taken."""
    free = np.ones(iou.shape[1], bool)
    hit = np.zeros(len(iou), bool)
    for row in range(len(iou)):
        best = min(threshold, HIGHEST_THRESHOLD)
        choice = -1
        for column in np.flatnonzero(free).tolist():
            if iou[row, column] >= best:
                best = iou[row, column]
                choice = column
        if choice >= 0:
            hit[row] = True
            free[choice] = False
    return hit

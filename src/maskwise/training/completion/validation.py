"""Metrics of the completion network on composites that it was not trained on."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from maskwise.arrays import BoolArray
from maskwise.models.photo.completion import MIN_PROBABILITY, merge_neighbours
from maskwise.training.completion.batches import MIN_RATE, CompletionExample

MIN_FRONT = 0.65
"""Of a neighbour. Training looks at one object at a time, so that the order of two is not compared."""


def score_network(
    network: nn.Module, examples: Sequence[CompletionExample]
) -> dict[str, float]:
    """Of occluded objects the mean IoU of the amodal mask and of the occluded region, beside those of the convex hull;
    of completely visible ones the mean change of area. All in the network's window.
    """
    amodal_ious: list[float] = []
    occluded_ious: list[float] = []
    hull_ious: list[float] = []
    hull_occluded_ious: list[float] = []
    changes: list[float] = []
    for example in examples:
        visible = example.crops[0, 3] > 0
        hull = example.crops[0, 4] > 0
        occluded = example.amodal & ~visible
        predicted = visible | complete_example(network, example)
        if occluded.sum() < MIN_RATE * example.amodal.sum():
            added = predicted & ~visible
            changes.append(added.sum() / visible.sum())
            continue
        amodal_ious.append(_iou(predicted, example.amodal))
        hull_ious.append(_iou(visible | hull, example.amodal))
        occluded_ious.append(_iou(predicted & ~visible, occluded))
        hull_occluded_ious.append(_iou(hull & ~visible, occluded))
    return {
        "amodal": _mean(amodal_ious),
        "occluded": _mean(occluded_ious),
        "hull": _mean(hull_ious),
        "hull_occluded": _mean(hull_occluded_ious),
        "change": _mean(changes),
    }


def complete_example(network: nn.Module, example: CompletionExample) -> BoolArray:
    """bool [s, s]: where the object of an example is hidden."""
    crops = torch.from_numpy(example.crops)
    features = torch.from_numpy(example.features)
    logits, front = network(crops, features[None])
    neighbours = example.crops[:, 5] > 0
    hull = example.crops[0, 4] > 0
    in_front = front.sigmoid().numpy() >= MIN_FRONT
    probabilities = merge_neighbours(
        logits.sigmoid().numpy(), neighbours, hull, in_front
    )
    return probabilities > MIN_PROBABILITY


def _iou(predicted: BoolArray, target: BoolArray) -> float:
    intersection = (predicted & target).sum()
    union = (predicted | target).sum()
    return float(intersection / max(1, union))


def _mean(values: list[float]) -> float:
    """0 for no values: a curve needs a number, and a held-out set without such objects has no other."""
    return float(np.mean(values)) if values else 0.0

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
    values: dict[str, list[float]] = {
        key: [] for key in ("amodal", "occluded", "hull", "hull_occluded", "change")
    }
    for example in examples:
        visible = example.crops[0, 3] > 0
        hull = example.crops[0, 4] > 0
        amodal = visible | complete_example(network, example)
        if (example.amodal & ~visible).sum() < MIN_RATE * example.amodal.sum():
            values["change"].append((amodal & ~visible).sum() / visible.sum())
            continue
        for name, found in (("amodal", amodal), ("hull", visible | hull)):
            values[name].append(_iou(found, example.amodal))
        for name, found in (("occluded", amodal), ("hull_occluded", hull)):
            values[name].append(_iou(found & ~visible, example.amodal & ~visible))
    return {
        name: float(np.mean(found)) if found else 0.0 for name, found in values.items()
    }


def complete_example(network: nn.Module, example: CompletionExample) -> BoolArray:
    """bool [s, s]: where the object of an example is hidden."""
    crops = torch.from_numpy(example.crops)
    features = torch.from_numpy(example.features)
    logits, front = network(crops, features[None])
    neighbours = example.crops[:, 5] > 0
    hull = example.crops[0, 4] > 0
    in_front = front.sigmoid().numpy() >= MIN_FRONT
    return (
        merge_neighbours(logits.sigmoid().numpy(), neighbours, hull, in_front)
        > MIN_PROBABILITY
    )


def _iou(found: BoolArray, wanted: BoolArray) -> float:
    return float((found & wanted).sum() / max(1, (found | wanted).sum()))

"""Metrics of the completion network on composites that it was not trained on."""

from collections.abc import Sequence

import numpy as np
from torch import nn

from maskwise.arrays import BoolArray
from maskwise.models.photo.completion import MIN_PROBABILITY, MIN_RATE
from maskwise.models.photo.train.batches import MIN_RATE as OCCLUDED_RATE
from maskwise.models.photo.train.batches import CompletionExample, stack_examples


def score_network(network: nn.Module, examples: Sequence[CompletionExample]) -> dict[str, float]:
    """Of occluded objects the mean IoU of the amodal mask and of the occluded region, beside those of the convex hull;
    of completely visible ones the mean change of area. All in the network's window.
    """
    values: dict[str, list[float]] = {
        key: [] for key in ("amodal", "occluded", "hull", "hull_occluded", "change")
    }
    for example in examples:
        batch = stack_examples([example])
        logits, rate = network(batch.crop, batch.features)
        visible, hull = example.crop[3] > 0, example.crop[4] > 0
        amodal = visible.copy()
        if float(rate.sigmoid()) >= MIN_RATE:
            amodal |= (logits.sigmoid() > MIN_PROBABILITY).numpy()[0]
        if (example.amodal & ~visible).sum() < OCCLUDED_RATE * example.amodal.sum():
            values["change"].append((amodal & ~visible).sum() / visible.sum())
            continue
        for name, found in (("amodal", amodal), ("hull", visible | hull)):
            values[name].append(_iou(found, example.amodal))
        for name, found in (("occluded", amodal), ("hull_occluded", hull)):
            values[name].append(_iou(found & ~visible, example.amodal & ~visible))
    return {name: float(np.mean(found)) if found else 0.0 for name, found in values.items()}


def _iou(found: BoolArray, wanted: BoolArray) -> float:
    return float((found & wanted).sum() / max(1, (found | wanted).sum()))

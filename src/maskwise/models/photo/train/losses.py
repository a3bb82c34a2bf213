"""The loss of the completion network: named terms, to be summed."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.photo.train.batches import CompletionBatch

NEAR_WEIGHT = 4.0
"""Weight of pixels in the convex hull or the occluded region: most others are easy."""


def completion_loss(network: nn.Module, batch: CompletionBatch) -> dict[str, Tensor]:
    """network: a CompletionUNet. Visible pixels do not count: they are inside the amodal mask by construction."""
    logits, rate_logits = network(batch.crop, batch.features)
    visible, hull = batch.crop[:, 3], batch.crop[:, 4]
    hidden = batch.amodal * (1 - visible)
    unknown = 1 - visible
    weight = unknown * (1 + (NEAR_WEIGHT - 1) * torch.maximum(hull, hidden))
    entropy = F.binary_cross_entropy_with_logits(logits, batch.amodal, weight, reduction="sum") / weight.sum()
    probability = logits.sigmoid() * unknown
    overlap, total = (probability * hidden).sum((1, 2)), (probability + hidden).sum((1, 2))
    # Relative to the object: a pixel too many on a visible object costs as much as one on an occluded one.
    wrong = (total - 2 * overlap) / batch.amodal.sum((1, 2)).clamp(min=1)
    rate = hidden.sum((1, 2)) / batch.amodal.sum((1, 2)).clamp(min=1)
    occluded = (rate > 0.02).float()
    dice = 1 - (2 * overlap + 1) / (total + 1)
    return {
        "entropy": 2 * entropy,
        "area": wrong.mean(),
        "dice": (dice * occluded).sum() / occluded.sum().clamp(min=1),
        "rate": 5 * F.smooth_l1_loss(rate_logits.sigmoid(), rate, beta=0.1),
        "is_occluded": 0.3
        * F.binary_cross_entropy_with_logits(8 * (rate_logits.sigmoid() - 0.05) / 0.2, occluded),
    }

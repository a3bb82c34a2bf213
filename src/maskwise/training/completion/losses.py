"""The loss of the completion network: named terms, to be summed."""

from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.training.completion.batches import MIN_RATE, CompletionBatch

NEAR_WEIGHT = 4.0
"""Weight of pixels in the convex hull or the occluded region: most others are easy."""


def completion_loss(network: nn.Module, batch: CompletionBatch) -> dict[str, Tensor]:
    """network: a CompletionUNet. Only pixels of the neighbour count: elsewhere nothing can be hidden behind it."""
    crop, features, amodal = batch
    logits, front_logits = network(crop, features)
    # Channels 0 to 2 are the colors; the others see `CROP_CHANNELS`.
    visible = crop[:, 3]
    hull = crop[:, 4]
    neighbour = crop[:, 5]
    hidden = amodal * neighbour
    weight = neighbour * (1 + (NEAR_WEIGHT - 1) * hull.maximum(hidden))
    entropy = F.binary_cross_entropy_with_logits(
        logits, amodal, weight, reduction="none"
    )
    probability = logits.sigmoid() * neighbour
    overlap = (probability * hidden).sum((1, 2))
    total = (probability + hidden).sum((1, 2))
    size = (visible + hidden).sum((1, 2)).clamp(min=1)
    front = (hidden.sum((1, 2)) > MIN_RATE * size).float()
    dice = 1 - (2 * overlap + 1) / (total + 1)
    return {
        "entropy": 2 * (entropy.sum((1, 2)) / weight.sum((1, 2)).clamp(min=1)).mean(),
        # Relative to the object: a pixel too many on a visible object costs as much as one on an occluded one.
        "area": ((total - 2 * overlap) / size).mean(),
        "dice": (dice * front).sum() / front.sum().clamp(min=1),
        "front": F.binary_cross_entropy_with_logits(front_logits, front),
    }

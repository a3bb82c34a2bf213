"""The losses: text, mask type, masks (BCE and Dice), occlusion rate, and those that ground a model with random weights.

Each takes tensors of any number of items and returns a scalar; for no items it is zero with a gradient.
"""

import torch
from torch.nn import functional

DICE_SCALE = 1000.0
DICE_EPSILON = 1e-6
"""As in LISA's code."""


def text_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the answer's tokens. logits: [n, vocabulary]; labels: [n]."""
    if not len(labels):
        return logits.sum() * 0
    return functional.cross_entropy(logits.float(), labels)


def mask_type_loss(logits: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the two segmentation tokens where one of them stands, other words left aside.

    logits: [n, 2], of the visible and the amodal token. kinds: [n], 0 = visible, 1 = amodal.
    """
    if not len(kinds):
        return logits.sum() * 0
    return functional.cross_entropy(logits.float(), kinds)


def bce_loss(
    logits: torch.Tensor, masks: torch.Tensor, positive_weight: float = 1.0
) -> torch.Tensor:
    """Mean binary cross-entropy, first over the pixels, then over the masks. logits, masks: [n, h, w].

    positive_weight: foreground pixels weigh as much as the background, but at most this factor more.
    """
    if not len(logits):
        return logits.sum() * 0
    logits = logits.float().flatten(1)
    masks = masks.flatten(1)
    share = masks.mean(1, keepdim=True).clamp(min=1e-6)
    weight = ((1 - share) / share).clamp(1.0, positive_weight)
    loss = functional.binary_cross_entropy_with_logits(
        logits, masks, reduction="none", pos_weight=weight
    )
    return loss.mean(1).mean()


def dice_loss(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Mean Dice loss. logits, masks: [n, h, w]."""
    if not len(logits):
        return logits.sum() * 0
    probability = logits.float().flatten(1).sigmoid()
    masks = masks.flatten(1)
    overlap = 2 * (probability / DICE_SCALE * masks).sum(1)
    total = (probability / DICE_SCALE).sum(1) + (masks / DICE_SCALE).sum(1)
    return (1 - (overlap + DICE_EPSILON) / (total + DICE_EPSILON)).mean()


def occlusion_loss(rates: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean squared error of the occlusion rate (AURA). rates, targets: [n]."""
    if not len(rates):
        return rates.sum() * 0
    return functional.mse_loss(rates.float(), targets)


def occlusion_map_loss(logits: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the classes of cells against their shares. logits, shares: [n, 3, h, w]."""
    if not len(logits):
        return logits.sum() * 0
    return functional.cross_entropy(logits.float(), shares)


def region_words_loss(
    logits: torch.Tensor, words: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy of image tokens against the words of the regions they show.

    logits: [tokens, vocabulary]. words: [m, 2], image token and word. weights: [m], which add up to the number of
    image tokens that show a region.
    """
    if not len(words):
        return logits.sum() * 0
    log_probability = functional.log_softmax(logits.float(), 1)[
        words[:, 0], words[:, 1]
    ]
    return -(log_probability * weights).sum() / weights.sum()


def alignment_loss(states: torch.Tensor, names: torch.Tensor) -> torch.Tensor:
    """Mean of 1 - cosine similarity. states, names: [n, width]."""
    if not len(states):
        return states.sum() * 0
    return 1 - functional.cosine_similarity(states.float(), names.float(), dim=1).mean()


def prompt_alignment_loss(prompts: torch.Tensor, names: torch.Tensor) -> torch.Tensor:
    """Mean squared error of prompts relative to the variance of those of the names. prompts, names: [n, k, width]."""
    if not len(prompts):
        return prompts.sum() * 0
    return functional.mse_loss(
        prompts.float(), names.float()
    ) / names.float().var().clamp(min=1e-6)

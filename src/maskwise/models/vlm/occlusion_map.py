"""Occlusion map: where a target is visible and where it is hidden, as a dense prompt of the amodal decoder.

After the Spatial Occlusion Encoder of AURA, which predicts background, visible and occluded area and conditions the
amodal decoder on them. Its layers are not published; these are ours.
"""

import torch
from torch import nn
from torch.nn import functional

CLASSES = 3
"""Background, visible, occluded."""

CHANNELS = 32
"""Width of the head: it combines three inputs by two small convolutions and leaves the drawing to the decoder."""


class OcclusionMapHead(nn.Module):
    """Image features, prompts and visible masks to class logits, and to a dense prompt. width: of the features."""

    def __init__(self, width: int, vectors: int) -> None:
        super().__init__()
        self.features = nn.Conv2d(width, CHANNELS, 1)
        self.prompt = nn.Linear(vectors * width, CHANNELS)
        self.visible = nn.Conv2d(1, CHANNELS, 1)
        self.classes = nn.Sequential(
            nn.GELU(),
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(CHANNELS, CLASSES, 1),
        )
        self.dense = nn.Conv2d(CLASSES, width, 1)
        # The decoder starts from what it has learned without a dense prompt.
        for parameter in self.dense.parameters():
            nn.init.zeros_(parameter)

    def forward(
        self, embedding: torch.Tensor, prompts: torch.Tensor, visible: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The dense prompt [n, width, h, w] and class logits [n, 3, h, w].

        embedding: [n, width, h, w]. prompts: [n, k, width]. visible: mask logits [n, H, W]; they get no gradient, so
        that the map does not change the visible mask.
        """
        shares = visible.detach().sigmoid().unsqueeze(1)
        pooled = functional.interpolate(shares, embedding.shape[-2:], mode="area")
        prompted = self.prompt(prompts.flatten(1))[..., None, None]
        combined = self.features(embedding) + prompted + self.visible(pooled)
        logits = self.classes(combined)
        return self.dense(logits.softmax(1)), logits


def occlusion_map_targets(
    visible: torch.Tensor, amodal: torch.Tensor, size: tuple[int, int]
) -> torch.Tensor:
    """The shares of the three classes in each cell, [n, 3, h, w]. visible, amodal: masks [n, H, W], 0 to 1."""
    occluded = (amodal - visible).clamp(min=0)
    background = (1 - visible - occluded).clamp(min=0)
    planes = torch.stack([background, visible, occluded], dim=1)
    return functional.interpolate(planes, size, mode="area")

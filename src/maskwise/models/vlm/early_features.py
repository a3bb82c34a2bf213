"""Early image features for parts: those of an early encoder block are added to the image embedding (M2SA).

M2SA takes the output of SAM's block 8, the first one with global attention, through conv 3x3, LayerNorm, GELU and
conv 3x3, and adds it inside the mask decoder. Here it is added once per image, which is the same sum.
"""

import torch
from torch import nn
from torch.nn import functional


class EarlyFeatures(nn.Module):
    """Encoder features [b, channels, h, w] to an addend [b, width, *size] of the image embedding."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.norm = nn.GroupNorm(1, width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, features: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        """The addend; features of another resolution are averaged or interpolated to `size`."""
        if features.shape[-2:] != size:
            features = functional.interpolate(
                features, size, mode="bilinear", align_corners=False, antialias=True
            )
        addend: torch.Tensor = self.second(
            functional.gelu(self.norm(self.first(features)))
        )
        return addend

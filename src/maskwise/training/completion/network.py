"""The completion network in torch: a U-Net over the crop that adds MobileSAM's features at a quarter of its size."""

import torch
from torch import Tensor, nn

from maskwise.models.photo.completion import CROP_CHANNELS
from maskwise.models.photo.sam import FEATURE_CHANNELS

WIDTHS = (16, 48, 96, 160)
"""Channels at 1/2, 1/4, 1/8 and 1/16 of the crop: the file stays below 3 MB."""

DROPOUT = 0.2
"""Of MobileSAM's features and of the front head: the training images are a few hundred."""


class UNetBlock(nn.Module):
    """Two 3x3 convolutions with batch normalisation, added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
        )
        self.norm = nn.BatchNorm2d(width)

    def forward(self, maps: Tensor) -> Tensor:
        """The same shape."""
        out: Tensor = maps + self.norm(self.body(maps))
        return out


class CompletionUNet(nn.Module):
    """crop [b, CROP_CHANNELS, s, s] and features [b, 256, s/4, s/4] to amodal logits [b, s, s] and logits [b]
    of whether the neighbour is in front.
    """

    def __init__(self) -> None:
        super().__init__()
        sizes = (CROP_CHANNELS, *WIDTHS)
        self.down = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(before, after, 3, stride=2, padding=1),
                nn.BatchNorm2d(after),
                UNetBlock(after),
            )
            for before, after in zip(sizes, WIDTHS)
        )
        # Without a bias or a norm: absent features, all zero, add nothing.
        self.features = nn.Sequential(
            nn.Dropout2d(DROPOUT), nn.Conv2d(FEATURE_CHANNELS, WIDTHS[1], 1, bias=False)
        )
        self.up = nn.ModuleList(
            nn.Conv2d(before, after, 1)
            for before, after in zip(WIDTHS[:0:-1], WIDTHS[-2::-1])
        )
        self.blocks = nn.ModuleList(UNetBlock(width) for width in WIDTHS[-2::-1])
        self.mask_head = nn.Sequential(
            nn.SiLU(), nn.Conv2d(WIDTHS[0], 4, 3, padding=1), nn.PixelShuffle(2)
        )
        self.front_head = nn.Sequential(
            nn.SiLU(), nn.Dropout(DROPOUT), nn.Linear(2 * WIDTHS[-1], 1)
        )

    def forward(self, crop: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Logits; apply a sigmoid for probabilities."""
        levels = []
        maps = crop
        # MobileSAM's features have a quarter of the crop's size, as the maps of the second stage.
        for stage, down in enumerate(self.down):
            maps = down(maps)
            if stage == 1:
                maps = maps + self.features(features)
            levels.append(maps)
        pooled = torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], 1)
        for project, block, level in zip(self.up, self.blocks, levels[-2::-1]):
            upsampled = nn.functional.interpolate(
                project(maps), scale_factor=2, mode="nearest"
            )
            maps = block(level + upsampled)
        return self.mask_head(maps)[:, 0], self.front_head(pooled)[:, 0]

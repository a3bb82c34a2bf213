"""The detector: a convolutional backbone, a feature pyramid, and heads for the heatmap and the boxes.

Every cell of the stride-4 map predicts whether it is the center of the visible part of an object (heatmap) and where
the amodal box of that object is (box), as CenterNet does (Zhou et al. 2019, "Objects as Points").
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.tiny.spec import ATTRIBUTE_SIZES, COARSE_CHANNELS, FINE_CHANNELS

PIXEL_MEAN = 0.45
PIXEL_STD = 0.25
"""Roughly those of photographs (ImageNet); the first batch normalization removes what differs."""

HEATMAP_START = -4.0
"""First logit of the heatmap, a probability of .02: nearly all cells are no center (RetinaNet's prior)."""

BOX_START = 3.0
"""First logarithm of a box's distances: 20 pixels of the image's 160."""

STEM_CHANNELS = 24
"""Channels of the first convolution. They are also half of the fine map."""

BOX_LOGITS = (-2.0, 6.0)
"""Logarithms of distances are limited to these: .14 to 403 pixels, more than the image has."""


class DetectorOutput(NamedTuple):
    """fine: [b, FINE_CHANNELS, s/2, s/2]. coarse: [b, COARSE_CHANNELS, s/4, s/4]. heatmap: [b, 1, s/4, s/4] logits.
    box: [b, 4, s/4, s/4], distances from the cell's center to the left, top, right and bottom in pixels. cell_logits:
    [b, categories + colors, s/4, s/4], classes of the object visible in each cell; only training uses them.
    """

    fine: Tensor
    coarse: Tensor
    heatmap: Tensor
    box: Tensor
    cell_logits: Tensor


def conv_block(inputs: int, outputs: int, *, stride: int = 1) -> nn.Sequential:
    """3 x 3 convolution, batch normalisation, SiLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(),
    )


def normalize_pixels(images: Tensor) -> Tensor:
    """Images in 0..1 as the networks take them."""
    return (images - PIXEL_MEAN) / PIXEL_STD


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with a skip connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = conv_block(channels, channels)
        self.conv2 = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        """[b, channels, h, w] to the same shape."""
        return F.silu(x + self.conv2(self.conv1(x)))


class Backbone(nn.Module):
    """Feature maps at strides 2, 4, 8 and 16, with STEM_CHANNELS, 48, 96 and 160 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_block(3, STEM_CHANNELS, stride=2)
        self.stage1 = nn.Sequential(
            conv_block(STEM_CHANNELS, 48, stride=2), ResidualBlock(48)
        )
        self.stage2 = nn.Sequential(
            conv_block(48, 96, stride=2), ResidualBlock(96), ResidualBlock(96)
        )
        self.stage3 = nn.Sequential(
            conv_block(96, 160, stride=2), ResidualBlock(160), ResidualBlock(160)
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """images: [b, 3, s, s] in 0..1, s a multiple of 16."""
        stride2 = self.stem(normalize_pixels(images))
        stride4 = self.stage1(stride2)
        stride8 = self.stage2(stride4)
        return stride2, stride4, stride8, self.stage3(stride8)


class FeaturePyramid(nn.Module):
    """Top-down pathway with lateral connections, to maps at strides 4 and 2 (Lin et al. 2017, FPN).

    The map at stride 2 has the edges of objects and knows, from the pyramid, which object they belong to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lateral16 = nn.Conv2d(160, 64, 1)
        self.lateral8 = nn.Conv2d(96, 64, 1)
        self.output8 = conv_block(64, COARSE_CHANNELS)
        self.lateral4 = nn.Conv2d(48, COARSE_CHANNELS, 1)
        self.output4 = conv_block(COARSE_CHANNELS, COARSE_CHANNELS)
        self.lateral2 = nn.Conv2d(STEM_CHANNELS, FINE_CHANNELS - STEM_CHANNELS, 1)
        self.top2 = nn.Conv2d(COARSE_CHANNELS, FINE_CHANNELS - STEM_CHANNELS, 1)
        self.output2 = conv_block(
            FINE_CHANNELS - STEM_CHANNELS, FINE_CHANNELS - STEM_CHANNELS
        )

    def forward(
        self, stride2: Tensor, stride4: Tensor, stride8: Tensor, stride16: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The fine map [b, FINE_CHANNELS, s/2, s/2] and the coarse map [b, COARSE_CHANNELS, s/4, s/4]."""
        top = F.interpolate(self.lateral16(stride16), scale_factor=2.0, mode="nearest")
        top = self.output8(self.lateral8(stride8) + top)
        coarse: Tensor = self.output4(
            self.lateral4(stride4)
            + F.interpolate(top, scale_factor=2.0, mode="nearest")
        )
        top = F.interpolate(self.top2(coarse), scale_factor=2.0, mode="nearest")
        merged = self.output2(self.lateral2(stride2) + top)
        return torch.cat([stride2, merged], 1), coarse


class CenterHead(nn.Module):
    """Heatmap logits and box distances of each cell."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = conv_block(COARSE_CHANNELS, COARSE_CHANNELS)
        self.heatmap = nn.Conv2d(COARSE_CHANNELS, 1, 1)
        self.box = nn.Conv2d(COARSE_CHANNELS, 4, 1)
        assert self.heatmap.bias is not None
        assert self.box.bias is not None
        nn.init.constant_(self.heatmap.bias, HEATMAP_START)
        nn.init.constant_(self.box.bias, BOX_START)

    def forward(self, coarse: Tensor) -> tuple[Tensor, Tensor]:
        """heatmap [b, 1, h, w] logits, box [b, 4, h, w] in pixels."""
        x = self.tower(coarse)
        # In bfloat16 the logarithm of a distance would be off by up to 1.5 %, more than the errors of good boxes.
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            heatmap = self.heatmap(x)
            distances = torch.exp(self.box(x).clamp(*BOX_LOGITS))
        return heatmap, distances


class Detector(nn.Module):
    """Backbone, feature pyramid and heads; see the docstring of this module."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.neck = FeaturePyramid()
        self.head = CenterHead()
        self.cell_classifier = nn.Conv2d(COARSE_CHANNELS, sum(ATTRIBUTE_SIZES[:2]), 1)

    def forward(self, images: Tensor) -> DetectorOutput:
        """images: [b, 3, s, s] in 0..1, s a multiple of 16."""
        fine, coarse = self.neck(*self.backbone(images))
        heatmap, box = self.head(coarse)
        return DetectorOutput(fine, coarse, heatmap, box, self.cell_classifier(coarse))

"""The RoI head: masks, parts, category, color and material of the object in each box."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    COARSE_CHANNELS,
    FINE_CHANNELS,
    MAX_PARTS,
    ROI_SIZE,
)
from maskwise.training.tiny.detector import ResidualBlock, conv_block

MIN_VISIBLE_SUM = 0.1
"""Added to the visible cells of a box: an object without any gets small features, not infinite ones."""


class RoIOutput(NamedTuple):
    """One row per box, all logits. masks: [k, 2 + MAX_PARTS, MASK_SIZE, MASK_SIZE]: visible, amodal, then one channel
    per part. category, color, material: [k, classes].
    """

    masks: Tensor
    category: Tensor
    color: Tensor
    material: Tensor


class RoIHead(nn.Module):
    """Completing an occluded shape needs the whole box, so features at half the RoI resolution are added. Attributes
    are pooled over the predicted visible mask, because other objects may cover the rest of the box.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_block(COARSE_CHANNELS + 2, 64)
        self.downsample = nn.Sequential(conv_block(64, 96, stride=2), ResidualBlock(96))
        self.lateral = nn.Conv2d(96, 64, 1)
        self.fuse = ResidualBlock(64)
        self.mask_tower = nn.Sequential(
            conv_block(64 + FINE_CHANNELS, 40), conv_block(40, 40)
        )
        self.mask_predictor = nn.Conv2d(40, 2 + MAX_PARTS, 1)
        self.class_tower = nn.Sequential(
            conv_block(64 + FINE_CHANNELS, 64, stride=2), conv_block(64, 96, stride=2)
        )
        self.class_predictor = nn.Linear(96 + 96 + 96, sum(ATTRIBUTE_SIZES))

    def forward(
        self, fine: Tensor, coarse: Tensor, boxes: Sequence[Tensor]
    ) -> RoIOutput:
        """boxes: for each image [n, 4] left, top, right, bottom as fractions of the image."""
        # Where a cell is in its box, in -1..1: convolutions alone do not know it.
        steps = torch.linspace(-1.0, 1.0, ROI_SIZE, device=fine.device)
        columns = steps.expand(ROI_SIZE, ROI_SIZE)
        rows = steps[:, None].expand(ROI_SIZE, ROI_SIZE)
        coordinates = torch.stack([columns, rows])
        rois = roi_align(coarse, boxes, ROI_SIZE)
        located = [rois, coordinates.expand(rois.shape[0], -1, -1, -1)]
        x = self.stem(torch.cat(located, 1))
        context = self.downsample(x)
        wide = F.interpolate(self.lateral(context), scale_factor=2.0, mode="nearest")
        x = self.fuse(x + wide)
        fine_rois = roi_align(fine, boxes, 2 * ROI_SIZE)
        upsampled = F.interpolate(x, scale_factor=2.0, mode="nearest")
        x = torch.cat([upsampled, fine_rois], 1)
        masks = self.mask_predictor(self.mask_tower(x))
        # Without its gradient: attributes do not decide where an object is.
        visible_probability = masks[:, :1].detach().sigmoid()
        visible = F.avg_pool2d(visible_probability, 4).flatten(2)
        context = context.flatten(2)
        features = torch.cat([self.class_tower(x).flatten(2), context], 1)
        visible_sum = visible.sum(2) + MIN_VISIBLE_SUM
        pooled = (features * visible).sum(2) / visible_sum
        described = torch.cat([pooled, context.mean(2)], 1)
        logits = self.class_predictor(described)
        category, color, material = logits.split(list(ATTRIBUTE_SIZES), 1)
        return RoIOutput(masks, category, color, material)


def roi_align(maps: Tensor, boxes: Sequence[Tensor], cells: int) -> Tensor:
    """Each box as cells x cells bilinear samples: [k, c, cells, cells]; 0 outside the image.

    maps: [b, c, h, w]; boxes: for each map [n, 4] as fractions of the image. One sample per cell. The boxes of an image
    are sampled as one tall grid, so that the map is not copied for each box.
    """
    samples = []
    for index, inside in enumerate(boxes):
        numbers = torch.arange(cells, dtype=inside.dtype, device=inside.device)
        steps = (numbers + 0.5) / cells
        # Left, top, right and bottom are columns 0 to 3.
        left = inside[:, 0:1]
        top = inside[:, 1:2]
        x = left + (inside[:, 2:3] - left) * steps
        y = top + (inside[:, 3:4] - top) * steps
        columns = x[:, None, :].expand(-1, cells, -1)
        rows = y[:, :, None].expand(-1, -1, cells)
        grid = torch.stack([columns, rows], 3)
        image_maps = maps[index : index + 1]
        # grid_sample has the image in -1..1.
        tall_grid = (grid * 2 - 1).reshape(1, -1, cells, 2)
        tall = F.grid_sample(image_maps, tall_grid, align_corners=False)
        samples.append(tall.reshape(maps.shape[1], -1, cells, cells).transpose(0, 1))
    return torch.cat(samples)

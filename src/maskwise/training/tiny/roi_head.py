"""The RoI head: category, color, material, first masks and a better box of the object in each box."""

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
    ROI_MASK_SIZE,
    ROI_SIZE,
)
from maskwise.training.tiny.detector import ResidualBlock, conv_block

MIN_VISIBLE_SUM = 0.1
"""Added to the visible cells of a box: an object without any gets small features, not infinite ones."""

TRUNK_CHANNELS = 64
CONTEXT_CHANNELS = 96
"""Channels at ROI_SIZE and at half of it."""

SHIFT_SCALE = 0.1
"""Of the outputs that move the sides of a box: they are small, and without it a step of Adam moves them too far."""

MAX_SHIFT = 0.5
"""A side of a box is moved by at most this fraction of the box."""


class RoIOutput(NamedTuple):
    """One row per box, all logits but the boxes. masks: [k, 2 + MAX_PARTS, ROI_MASK_SIZE, ROI_MASK_SIZE]: visible,
    amodal, then one channel per part. category, color, material: [k, classes]. boxes: [k, 4] left, top, right, bottom
    as fractions of the image, nearer to the object than those that were given.
    """

    masks: Tensor
    category: Tensor
    color: Tensor
    material: Tensor
    boxes: Tensor


class RoITrunk(nn.Module):
    """Features of a box. Completing an occluded shape needs the whole box, so features at half the RoI resolution are
    added. inputs: channels beside those of the coarse map and the two coordinates.
    """

    def __init__(self, inputs: int = 0) -> None:
        super().__init__()
        self.stem = conv_block(COARSE_CHANNELS + 2 + inputs, TRUNK_CHANNELS)
        self.downsample = nn.Sequential(
            conv_block(TRUNK_CHANNELS, CONTEXT_CHANNELS, stride=2),
            ResidualBlock(CONTEXT_CHANNELS),
        )
        self.lateral = nn.Conv2d(CONTEXT_CHANNELS, TRUNK_CHANNELS, 1)
        self.fuse = ResidualBlock(TRUNK_CHANNELS)

    def forward(self, rois: Tensor) -> tuple[Tensor, Tensor]:
        """Features [k, TRUNK_CHANNELS, ROI_SIZE, ROI_SIZE], and context [k, CONTEXT_CHANNELS, ROI_SIZE / 2, ROI_SIZE /
        2]. rois: [k, COARSE_CHANNELS + inputs, ROI_SIZE, ROI_SIZE].
        """
        # Where a cell is in its box, in -1..1: convolutions alone do not know it.
        steps = torch.linspace(-1.0, 1.0, ROI_SIZE, device=rois.device)
        columns = steps.expand(ROI_SIZE, ROI_SIZE)
        rows = steps[:, None].expand(ROI_SIZE, ROI_SIZE)
        coordinates = torch.stack([columns, rows])
        located = [rois, coordinates.expand(rois.shape[0], -1, -1, -1)]
        x = self.stem(torch.cat(located, 1))
        context = self.downsample(x)
        wide = F.interpolate(self.lateral(context), scale_factor=2.0, mode="nearest")
        return self.fuse(x + wide), context


class RoIHead(nn.Module):
    """Attributes are pooled over the predicted visible mask, because other objects may cover the rest of the box."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = RoITrunk()
        self.mask_tower = nn.Sequential(
            conv_block(TRUNK_CHANNELS + FINE_CHANNELS, 40), conv_block(40, 40)
        )
        self.mask_predictor = nn.Conv2d(40, 2 + MAX_PARTS, 1)
        self.class_tower = nn.Sequential(
            conv_block(TRUNK_CHANNELS + FINE_CHANNELS, 64, stride=2),
            conv_block(64, 96, stride=2),
        )
        self.class_predictor = nn.Linear(
            96 + 2 * CONTEXT_CHANNELS, sum(ATTRIBUTE_SIZES)
        )
        self.box_tower = nn.Sequential(nn.Conv2d(CONTEXT_CHANNELS, 16, 1), nn.SiLU())
        cells = (ROI_SIZE // 2) ** 2
        self.box_predictor = nn.Linear(16 * cells, 4)
        # At first boxes stay as they are.
        nn.init.zeros_(self.box_predictor.weight)
        nn.init.zeros_(self.box_predictor.bias)

    def forward(
        self, fine: Tensor, coarse: Tensor, boxes: Sequence[Tensor]
    ) -> RoIOutput:
        """boxes: for each image [n, 4] left, top, right, bottom as fractions of the image."""
        x, context = self.trunk(roi_align(coarse, boxes, ROI_SIZE))
        fine_rois = roi_align(fine, boxes, ROI_MASK_SIZE)
        upsampled = F.interpolate(x, scale_factor=2.0, mode="nearest")
        x = torch.cat([upsampled, fine_rois], 1)
        masks = self.mask_predictor(self.mask_tower(x))
        shifts = SHIFT_SCALE * self.box_predictor(self.box_tower(context).flatten(1))
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
        moved = shift_boxes(torch.cat(list(boxes)), shifts)
        return RoIOutput(masks, category, color, material, moved)


def shift_boxes(boxes: Tensor, shifts: Tensor) -> Tensor:
    """Boxes [k, 4] with every side moved by shifts [k, 4], fractions of the width or the height of the box."""
    width = boxes[:, 2:3] - boxes[:, 0:1]
    height = boxes[:, 3:4] - boxes[:, 1:2]
    sizes = torch.cat([width, height, width, height], 1)
    return boxes + shifts.clamp(-MAX_SHIFT, MAX_SHIFT) * sizes


def roi_align(maps: Tensor, boxes: Sequence[Tensor], cells: int) -> Tensor:
    """Each box as cells x cells bilinear samples: [k, c, cells, cells]; 0 outside the image.

    maps: [b, c, h, w]; boxes: for each map [n, 4] as fractions of the image. One sample per cell. The boxes of an image
    are sampled as one tall grid, so that the map is not copied for each box.
    """
    samples = []
    # Slices would each have a gradient of the size of all maps.
    for image_maps, inside in zip(maps.chunk(len(boxes)), boxes):
        grid = box_grid(inside, cells)
        tall_grid = grid.reshape(1, -1, cells, 2)
        tall = F.grid_sample(image_maps, tall_grid, align_corners=False)
        samples.append(tall.reshape(maps.shape[1], -1, cells, cells).transpose(0, 1))
    return torch.cat(samples)


def box_grid(boxes: Tensor, cells: int) -> Tensor:
    """Where the cells x cells cells of boxes [k, 4] have their centers, as grid_sample expects it: [k, cells, cells,
    2], x and y, the image in -1..1.
    """
    numbers = torch.arange(cells, dtype=boxes.dtype, device=boxes.device)
    steps = (numbers + 0.5) / cells
    # Left, top, right and bottom are columns 0 to 3.
    left = boxes[:, 0:1]
    top = boxes[:, 1:2]
    x = left + (boxes[:, 2:3] - left) * steps
    y = top + (boxes[:, 3:4] - top) * steps
    columns = x[:, None, :].expand(-1, cells, -1)
    rows = y[:, :, None].expand(-1, -1, cells)
    return torch.stack([columns, rows], 3) * 2 - 1

"""The mask head: the final masks of the objects of an image, with the first masks of all of them in view.

What hides an object is the other objects, so the masks of the others say where its occluded part can be. The boxes are
those that the RoI head corrected (two stages, as in Cai and Vasconcelos 2018, "Cascade R-CNN").
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    FINE_CHANNELS,
    MASK_SIZE,
    MAX_PARTS,
    ROI_MASK_SIZE,
    ROI_SIZE,
)
from maskwise.training.tiny.detector import conv_block, normalize_pixels
from maskwise.training.tiny.roi_head import (
    TRUNK_CHANNELS,
    RoITrunk,
    box_grid,
    roi_align,
)

GIVEN_MASKS = 3
"""Masks that the head is given for each object: its visible mask, its amodal mask, what is visible of the others."""

FINAL_CHANNELS = 32
"""Channels at MASK_SIZE: the most expensive layers of the head."""

MIN_SIDE = 1e-5
"""Fraction of the image in place of the side of an empty box, to divide by."""


class MaskHead(nn.Module):
    """Masks at ROI_MASK_SIZE, and a correction of them at MASK_SIZE from the fine map and the pixels of the image."""

    def __init__(self) -> None:
        super().__init__()
        # Each cell at ROI_SIZE gets the 2 x 2 cells of the given masks inside it.
        self.trunk = RoITrunk(4 * GIVEN_MASKS)
        self.attributes = nn.Linear(sum(ATTRIBUTE_SIZES), TRUNK_CHANNELS)
        self.mask_tower = nn.Sequential(
            conv_block(TRUNK_CHANNELS + FINE_CHANNELS + GIVEN_MASKS, 40),
            conv_block(40, 40),
        )
        self.mask_predictor = nn.Conv2d(40, 2 + MAX_PARTS, 1)
        self.top = nn.Conv2d(40, FINAL_CHANNELS, 1)
        self.lateral = nn.Conv2d(FINE_CHANNELS + 3, FINAL_CHANNELS, 1)
        self.output = conv_block(FINAL_CHANNELS, FINAL_CHANNELS)
        self.correction = nn.Conv2d(FINAL_CHANNELS, 2 + MAX_PARTS, 3, padding=1)
        for layer in (self.attributes, self.correction):
            nn.init.zeros_(layer.weight)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)

    def forward(
        self,
        images: Tensor,
        fine: Tensor,
        coarse: Tensor,
        *,
        boxes: Sequence[Tensor],
        given_masks: Tensor,
        attributes: Tensor,
    ) -> Tensor:
        """Logits [k, 2 + MAX_PARTS, MASK_SIZE, MASK_SIZE], as in RoIOutput.

        images: [b, 3, s, s] in 0..1. boxes: for each image [n, 4]. given_masks: [k, GIVEN_MASKS, ROI_MASK_SIZE,
        ROI_MASK_SIZE] in 0..1, inside these boxes. attributes: [k, sum(ATTRIBUTE_SIZES)], probabilities.
        """
        given_cells = F.pixel_unshuffle(given_masks, 2)
        coarse_rois = roi_align(coarse, boxes, ROI_SIZE)
        x, _ = self.trunk(torch.cat([coarse_rois, given_cells], 1))
        x = x + self.attributes(attributes)[:, :, None, None]
        upsampled = F.interpolate(x, scale_factor=2.0, mode="nearest")
        fine_rois = roi_align(fine, boxes, ROI_MASK_SIZE)
        x = self.mask_tower(torch.cat([upsampled, fine_rois, given_masks], 1))
        masks = F.interpolate(
            self.mask_predictor(x),
            scale_factor=2.0,
            mode="bilinear",
            align_corners=False,
        )
        top = F.interpolate(self.top(x), scale_factor=2.0, mode="nearest")
        final_rois = [
            roi_align(maps, boxes, MASK_SIZE)
            for maps in (fine, normalize_pixels(images))
        ]
        lateral = self.lateral(torch.cat(final_rois, 1))
        corrected: Tensor = masks + self.correction(self.output(F.silu(top + lateral)))
        return corrected


def move_masks(masks: Tensor, boxes: Tensor, new_boxes: Tensor) -> Tensor:
    """Masks [k, c, m, m] that fill boxes [k, 4], sampled in new boxes [k, 4]: [k, c, m, m], 0 outside the old ones."""
    grid = box_grid(_relative_boxes(new_boxes, boxes), masks.shape[2])
    return F.grid_sample(masks, grid, align_corners=False)


def others_visible(visible: Tensor, boxes: Tensor, new_boxes: Tensor) -> Tensor:
    """For each object of an image the largest visible probability of the others, [k, 1, m, m] in its new box.

    visible: [k, 1, m, m], probabilities inside boxes [k, 4].
    """
    count = visible.shape[0]
    cells = visible.shape[2]
    # Row i of the grid samples the mask of object i in the new boxes of all objects, one below the other.
    relative = _relative_boxes(new_boxes[None], boxes[:, None])
    tall_grid = box_grid(relative.reshape(-1, 4), cells).reshape(count, -1, cells, 2)
    sampled = F.grid_sample(visible, tall_grid, align_corners=False)
    sampled = sampled.reshape(count, -1, cells, cells)
    numbers = torch.arange(count, device=visible.device)
    is_other = (numbers[:, None] != numbers[None]).to(visible.dtype)
    return (sampled * is_other[:, :, None, None]).amax(0)[:, None]


def _relative_boxes(boxes: Tensor, frames: Tensor) -> Tensor:
    """Boxes [..., 4] as fractions of frames [..., 4]."""
    corners = frames[..., [0, 1, 0, 1]]
    sizes = (frames[..., [2, 3, 2, 3]] - corners).clamp(min=MIN_SIDE)
    return (boxes - corners) / sizes

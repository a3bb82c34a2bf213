"""The eye: finds every object of an image once, without a question, with both masks and its parts.

A convolutional encoder with a feature pyramid makes two maps, at a half and a quarter of the image's side. On the
quarter map every cell says how much it is the middle of what is seen of an object (`heat`) and where the whole object
lies (`box`, amodal). For each object found, a second look into its box draws the visible mask, the amodal mask and
which part each pixel belongs to, and tells category, colour and material.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LOOK = 14
"""Cells along each side of a second look; masks are drawn twice as fine."""

FINE, COARSE = 24, 48
"""Channels of the map at half and at a quarter of the side."""


class Maps(NamedTuple):
    """fine: [b, FINE, s/2, s/2]. coarse: [b, COARSE, s/4, s/4]. heat: [b, 1, s/4, s/4] logits. box: [b, 4, s/4, s/4],
    distances left, up, right, down from the cell's middle in pixels. surface: [b, k, s/4, s/4] logits of categories
    and colours of what each cell shows, which only training looks at.
    """

    fine: Tensor
    coarse: Tensor
    heat: Tensor
    box: Tensor
    surface: Tensor


class Look(NamedTuple):
    """One row an object. masks: [k, 2 + parts, 2 * LOOK, 2 * LOOK] logits: visible, amodal, then one plane a part.
    category, colour, material: [k, n] logits.
    """

    masks: Tensor
    category: Tensor
    colour: Tensor
    material: Tensor


def convolution(inputs: int, outputs: int, *, stride: int = 1, size: int = 3) -> nn.Sequential:
    """Convolution, normalisation, activation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(),
    )


class Residual(nn.Module):
    """Two convolutions beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = convolution(channels, channels)
        self.second = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x + self.second(self.first(x)))


class Eye(nn.Module):
    """See the module's docstring. Images are [b, 3, s, s] in 0..1, s a multiple of 16."""

    def __init__(self, categories: int, colours: int, materials: int, parts: int) -> None:
        super().__init__()
        self.stem = convolution(3, FINE, stride=2)
        self.quarter = nn.Sequential(convolution(FINE, 48, stride=2), Residual(48))
        self.eighth = nn.Sequential(convolution(48, 96, stride=2), Residual(96), Residual(96))
        self.sixteenth = nn.Sequential(convolution(96, 160, stride=2), Residual(160), Residual(160))
        self.from_sixteenth = nn.Conv2d(160, 64, 1)
        self.from_eighth = nn.Conv2d(96, 64, 1)
        self.join_eighth = convolution(64, COARSE)
        self.from_quarter = nn.Conv2d(48, COARSE, 1)
        self.join_quarter = convolution(COARSE, COARSE)
        self.find = convolution(COARSE, COARSE)
        self.heat = nn.Conv2d(COARSE, 1, 1)
        self.box = nn.Conv2d(COARSE, 4, 1)
        self.surface = nn.Conv2d(COARSE, categories + colours, 1)
        self.look = SecondLook(categories, colours, materials, parts)
        for head, start in ((self.heat, -4.0), (self.box, 3.0)):
            assert head.bias is not None
            nn.init.constant_(head.bias, start)

    def forward(self, images: Tensor, boxes: Sequence[Tensor]) -> tuple[Maps, Look]:
        """Both steps at once, as in training, where the boxes are known; at least one an image."""
        maps = self.see(images)
        return maps, self.look(maps.fine, maps.coarse, boxes)

    def see(self, images: Tensor) -> Maps:
        """The first step."""
        fine = self.stem((images - 0.45) / 0.25)
        quarter = self.quarter(fine)
        eighth = self.eighth(quarter)
        sixteenth = self.sixteenth(eighth)
        up = F.interpolate(self.from_sixteenth(sixteenth), scale_factor=2.0, mode="nearest")
        up = self.join_eighth(self.from_eighth(eighth) + up)
        coarse = self.join_quarter(
            self.from_quarter(quarter) + F.interpolate(up, scale_factor=2.0, mode="nearest")
        )
        found = self.find(coarse)
        box = torch.exp(self.box(found).clamp(-2.0, 6.0))
        return Maps(fine, coarse, self.heat(found), box, self.surface(coarse))


class SecondLook(nn.Module):
    """Into one box: masks, parts and what the object is.

    Completing a shape takes the whole box at once, so a glimpse at a quarter of the resolution is added to it. What
    the object is, is read where the object is seen: in front of it may be others.
    """

    def __init__(self, categories: int, colours: int, materials: int, parts: int) -> None:
        super().__init__()
        self.shape = convolution(COARSE + 2, 64)
        self.glimpse = nn.Sequential(convolution(64, 96, stride=2), Residual(96))
        self.from_glimpse = nn.Conv2d(96, 64, 1)
        self.settle = Residual(64)
        self.detail = nn.Sequential(convolution(64 + FINE, 40), convolution(40, 40))
        self.draw = nn.Conv2d(40, 2 + parts, 1)
        self.kind = nn.Sequential(convolution(64 + FINE, 64, stride=2), convolution(64, 96, stride=2))
        self.name = nn.Linear(96 + 96 + 96, categories + colours + materials)
        self.sizes = [categories, colours, materials]

    def forward(self, fine: Tensor, coarse: Tensor, boxes: Sequence[Tensor]) -> Look:
        """boxes: for each image [n, 4] left, top, right, bottom as shares of the frame."""
        steps = torch.linspace(-1.0, 1.0, LOOK, device=fine.device)
        place = torch.stack([steps.expand(LOOK, LOOK), steps[:, None].expand(LOOK, LOOK)])
        there = sample_boxes(coarse, boxes, LOOK)
        shape = self.shape(torch.cat([there, place.expand(there.shape[0], -1, -1, -1)], 1))
        glimpse = self.glimpse(shape)
        shape = self.settle(
            shape + F.interpolate(self.from_glimpse(glimpse), scale_factor=2.0, mode="nearest")
        )
        near = sample_boxes(fine, boxes, 2 * LOOK)
        detail = torch.cat([F.interpolate(shape, scale_factor=2.0, mode="nearest"), near], 1)
        masks = self.draw(self.detail(detail))
        seen = F.avg_pool2d(masks[:, :1].detach().sigmoid(), 4).flatten(2)
        kind = self.kind(detail).flatten(2)
        glimpse = glimpse.flatten(2)
        where_seen = (torch.cat([kind, glimpse], 1) * seen).sum(2) / (seen.sum(2) + 0.1)
        name = self.name(torch.cat([where_seen, glimpse.mean(2)], 1))
        return Look(masks, *name.split(self.sizes, 1))


def sample_boxes(maps: Tensor, boxes: Sequence[Tensor], cells: int) -> Tensor:
    """Each box of each map as cells x cells bilinear samples: [k, c, cells, cells]; outside the frame is 0.

    maps: [b, c, h, w]; boxes: for each map [n, 4] as shares of the frame. All boxes of a map are one tall grid, so that
    the map is not copied for each.
    """
    samples = []
    for number, inside in enumerate(boxes):
        steps = (torch.arange(cells, dtype=inside.dtype, device=inside.device) + 0.5) / cells
        x = inside[:, 0:1] + (inside[:, 2:3] - inside[:, 0:1]) * steps
        y = inside[:, 1:2] + (inside[:, 3:4] - inside[:, 1:2]) * steps
        grid = torch.stack([x[:, None, :].expand(-1, cells, -1), y[:, :, None].expand(-1, -1, cells)], 3)
        tall = F.grid_sample(
            maps[number : number + 1], (grid * 2 - 1).reshape(1, -1, cells, 2), align_corners=False
        )
        samples.append(tall.reshape(maps.shape[1], -1, cells, cells).transpose(0, 1))
    return torch.cat(samples)

"""What the eye is taught: targets made from lessons, and the loss against them."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.crowding import harden
from maskwise.models.lessons import Lesson
from maskwise.models.perception import LOOK
from maskwise.models.sight import MARGIN, STRIDE

CELLS = 2 * LOOK
OCCLUDED = 3.0
"""Weight of hidden pixels in the amodal loss: they are few, and what the task is about."""

LOOKS = 4
"""Objects of each image that are looked at twice, drawn at random; always as many, since kernels are made anew for
every other number of rows.
"""

HIDDEN_FIRST = 4.0
"""How much likelier, in harder lessons, the wholly hidden would be looked at than what is seen whole."""


class Targets(NamedTuple):
    """A batch. images: float [b, 3, s, s]. heat: [b, 1, c, c] in 0..1. box: [b, 4, c, c] pixels, where `weight`
    [b, 1, c, c] is positive. surface: int64 [b, 2, c, c], category and colour or -1. boxes: for each image [n, 4] in
    shares of the frame. Then one row a box: masks as drawn (uint8 [k, 3, CELLS, CELLS]: visible, amodal, part), and
    int64 [k, 3] kinds, -1 where unknown.
    """

    images: Tensor
    heat: Tensor
    box: Tensor
    weight: Tensor
    surface: Tensor
    boxes: list[Tensor]
    drawn: Tensor
    kinds: Tensor


def make_targets(lessons: list[Lesson], random: np.random.Generator, *, harder: bool = False) -> Targets:
    """A batch for training: mirrored at random, colours a little off, boxes a little off; see `harden` for `harder`,
    which also looks more often at what is hidden.

    All objects are to be found; LOOKS of each image are looked at twice.
    """
    if harder:
        lessons = [harden(lesson, lessons[random.integers(len(lessons))], random) for lesson in lessons]
    images, maps, boxes, drawn, kinds = [], [], [], [], []
    for lesson in lessons:
        mirrored = bool(random.integers(2))
        image = lesson.image[:, ::-1] if mirrored else lesson.image
        gain = random.uniform(0.92, 1.08, 3) * random.uniform(0.9, 1.1)
        images.append(np.clip(image * gain.astype(np.float32) / 255, 0, 1).transpose(2, 0, 1))
        planes = _planes(lesson, mirrored)
        maps.append(_cell_targets(lesson, planes))
        looks = np.resize(_order(planes, random) if harder else random.permutation(len(planes)), LOOKS)
        looked = [_drawn(planes[i], random) for i in looks]
        boxes.append(torch.from_numpy(np.stack([box for box, _ in looked])))
        drawn += [mask for _, mask in looked]
        kinds.append(lesson.kinds[looks])
    heat, box, weight, surface = (torch.from_numpy(np.stack(column)) for column in zip(*maps))
    return Targets(
        images=torch.from_numpy(np.stack(images).astype(np.float32)),
        heat=heat,
        box=box,
        weight=weight,
        surface=surface,
        boxes=boxes,
        drawn=torch.from_numpy(np.stack(drawn)),
        kinds=torch.from_numpy(np.concatenate(kinds)),
    )


class _Plane(NamedTuple):
    """One object in the frame: visible bool (s, s), parts uint8 (s, s), box left, top, right, bottom."""

    visible: NDArray[np.bool_]
    parts: NDArray[np.uint8]
    box: tuple[int, int, int, int]


def _planes(lesson: Lesson, mirrored: bool) -> list[_Plane]:
    side, planes = lesson.owner.shape[0], []
    for number, ((left, top, right, bottom), numbers) in enumerate(zip(lesson.boxes.tolist(), lesson.parts)):
        parts = np.zeros((side, side), np.uint8)
        parts[top:bottom, left:right] = numbers
        visible = lesson.owner == number
        if mirrored:
            planes.append(_Plane(visible[:, ::-1], parts[:, ::-1], (side - right, top, side - left, bottom)))
        else:
            planes.append(_Plane(visible, parts, (left, top, right, bottom)))
    return planes


def _order(planes: list[_Plane], random: np.random.Generator) -> NDArray[np.int64]:
    """All planes in random order, the more hidden ones likely first."""
    odds = np.array([1 + HIDDEN_FIRST * _hidden_share(plane) for plane in planes])
    return random.choice(len(planes), len(planes), replace=False, p=odds / odds.sum())


def _hidden_share(plane: _Plane) -> float:
    whole = plane.parts > 0
    return 1 - float(plane.visible[whole].mean()) if whole.any() else 0.0


def _cell_targets(lesson: Lesson, planes: list[_Plane]) -> tuple[NDArray[np.float32], ...]:
    """heat, box, weight, surface of one image."""
    side = lesson.owner.shape[0]
    cells = side // STRIDE
    middle = np.arange(cells, dtype=np.float32) * STRIDE + STRIDE / 2
    heat, weight = np.zeros((1, cells, cells), np.float32), np.zeros((1, cells, cells), np.float32)
    box, surface = np.zeros((4, cells, cells), np.float32), np.full((2, cells, cells), -1, np.int64)
    for plane, kind in zip(planes, lesson.kinds):
        rows, columns = np.nonzero(plane.visible)
        if len(rows) < 3:
            continue
        away = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
        nearest = int(away.argmin())
        y, x = rows[nearest] // STRIDE, columns[nearest] // STRIDE
        width = max(0.7, 0.1 * len(rows) ** 0.5 / STRIDE * 2)
        grid = np.arange(cells, dtype=np.float32)
        bump = np.exp(-((grid[:, None] - y) ** 2 + (grid[None] - x) ** 2) / (2 * width * width))
        seen = plane.visible[STRIDE // 2 :: STRIDE, STRIDE // 2 :: STRIDE].copy()
        seen[y, x] = True
        bump *= seen
        np.maximum(heat[0], bump, out=heat[0])
        left, top, right, bottom = plane.box
        distances = np.stack(
            np.broadcast_arrays(
                middle[None] - left, middle[:, None] - top, right - middle[None], bottom - middle[:, None]
            )
        )
        box[:, seen] = distances[:, seen]
        weight[0][seen] = (bump + 0.05)[seen]
        surface[:, seen] = kind[:2, None]
    return heat, np.maximum(box, 0.2), weight, surface


def _drawn(plane: _Plane, random: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """A box a little off, as shares of the frame, and the masks as seen through it."""
    side = plane.parts.shape[0]
    left, top, right, bottom = plane.box
    width, height = right - left, bottom - top
    off = random.normal(0, 0.05, 4).clip(-0.15, 0.15) * [width, height, width, height]
    pad = MARGIN * np.array([-width, -height, width, height])
    box = np.array([left, top, right, bottom]) + pad + off
    steps = (np.arange(CELLS) + 0.5) / CELLS
    x = np.floor(box[0] + (box[2] - box[0]) * steps).astype(int)
    y = np.floor(box[1] + (box[3] - box[1]) * steps).astype(int)
    inside = ((y >= 0) & (y < side))[:, None] & ((x >= 0) & (x < side))[None]
    at = np.ix_(y.clip(0, side - 1), x.clip(0, side - 1))
    parts, visible = np.where(inside, plane.parts[at], 0), plane.visible[at] & inside
    drawn = np.stack([visible, parts > 0, parts]).astype(np.uint8)
    return (box / side).astype(np.float32), drawn


def seeing_loss(eye: nn.Module, targets: Targets, categories: int) -> dict[str, Tensor]:
    """All terms, to be summed."""
    maps, look = eye(targets.images, targets.boxes)
    surface_category, surface_colour = maps.surface.split([categories, maps.surface.shape[1] - categories], 1)
    visible, amodal, part = (targets.drawn[:, i] for i in range(3))
    hidden = (amodal > visible).float()
    parts = F.cross_entropy(look.masks[:, 2:], (part.long() - 1).clamp(min=0), reduction="none")
    return {
        "heat": heat_loss(maps.heat, targets.heat),
        "box": box_loss(maps.box, targets.box, targets.weight),
        "surface": 0.3 * _kind_loss(surface_category, targets.surface[:, 0])
        + 0.3 * _kind_loss(surface_colour, targets.surface[:, 1]),
        "visible": mask_loss(look.masks[:, 0], visible.float(), torch.ones_like(hidden)),
        "amodal": mask_loss(look.masks[:, 1], amodal.float(), 1 + (OCCLUDED - 1) * hidden),
        "parts": 0.7 * (parts * amodal).sum() / amodal.sum().clamp(min=1),
        "category": 0.5 * _kind_loss(look.category, targets.kinds[:, 0]),
        "colour": 0.5 * _kind_loss(look.colour, targets.kinds[:, 1]),
        "material": 0.2 * _kind_loss(look.material, targets.kinds[:, 2]),
    }


def _kind_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross entropy where the kind is known (not -1); 0 where none is."""
    return F.cross_entropy(logits, target, ignore_index=-1, reduction="sum") / (target >= 0).sum().clamp(
        min=1
    )


def heat_loss(logits: Tensor, target: Tensor) -> Tensor:
    """The focal loss of CornerNet (Law and Deng 2018, eq. 1), as CenterNet uses it, per object."""
    probability = logits.sigmoid().clamp(1e-4, 1 - 1e-4)
    middle = (target > 0.99).float()
    hit = -middle * (1 - probability) ** 2 * probability.log()
    miss = -(1 - middle) * (1 - target) ** 4 * probability**2 * (1 - probability).log()
    return (hit + miss).sum() / middle.sum().clamp(min=1)


def box_loss(box: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """1 - IoU of boxes that share the cell's middle, weighted."""
    area = (box[:, 0] + box[:, 2]) * (box[:, 1] + box[:, 3])
    wanted = (target[:, 0] + target[:, 2]) * (target[:, 1] + target[:, 3])
    least = torch.minimum(box, target)
    shared = (least[:, 0] + least[:, 2]) * (least[:, 1] + least[:, 3])
    iou = shared / (area + wanted - shared + 1e-6)
    return 2 * ((1 - iou) * weight[:, 0]).sum() / weight.sum().clamp(min=1)


def mask_loss(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Cross entropy and Dice, both weighted by pixel."""
    entropy = F.binary_cross_entropy_with_logits(logits, target, weight=weight)
    probability = logits.sigmoid() * weight
    wanted = target * weight
    overlap = (probability * target).sum((1, 2))
    dice = 1 - (2 * overlap + 1) / (probability.sum((1, 2)) + wanted.sum((1, 2)) + 1)
    return 2 * entropy + dice.mean()

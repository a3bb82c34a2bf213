"""Augmentation of training scenes: copy-paste occlusion and permuted color channels.

Objects of other scenes are pasted in front, so that heavily occluded objects are frequent (copy-paste, Ghiasi et al.
2021). The color channels of some images are permuted, so that the category cannot be read off the color.
"""

from typing import NamedTuple

import numpy as np

from maskwise.arrays import UInt8Array
from maskwise.models.tiny.scene_example import SceneExample

MAX_PASTES = 6
"""Attempts to paste an object, at most; about one in three succeeds."""

CHANNEL_PERMUTATION = 0.25
"""Probability that the color channels are permuted; the color labels are then unknown."""

MIN_VISIBLE = 0.08
"""A paste is rejected if it would leave less than this fraction of an object visible."""

PASTE_AREA = (300, 6000)
"""Smallest and largest area of a pasted object, in pixels."""


class _Paste(NamedTuple):
    """An object cut from another scene: its part map, its pixels there, and the window where it goes."""

    part_map: UInt8Array
    pixels: UInt8Array
    window: tuple[slice, slice]


def augment(
    example: SceneExample, other: SceneExample, random: np.random.Generator
) -> SceneExample:
    """`example` with objects of `other` pasted in front, and sometimes with permuted color channels."""
    for _ in range(random.binomial(MAX_PASTES, 0.5)):
        example = copy_paste(example, other, random)
    if random.random() < CHANNEL_PERMUTATION:
        order = random.permutation(3)
        labels = example.labels.copy()
        labels[:, 1] = -1
        example = example._replace(image=example.image[:, :, order], labels=labels)
    return example


def copy_paste(
    example: SceneExample, other: SceneExample, random: np.random.Generator
) -> SceneExample:
    """Paste one object of `other`, if it is unoccluded there, so that it covers part of an object of `example`.

    Returns `example` unchanged if the object does not qualify or if it would cover too much.
    """
    index = int(random.integers(len(other.labels)))
    part_map = other.part_maps[index]
    (left, top, _, _) = other.boxes[index]
    height, width = part_map.shape
    area = int((part_map > 0).sum())
    unoccluded = (
        other.instances[top : top + height, left : left + width] == index
    ) == (part_map > 0)
    if not unoccluded.all() or not PASTE_AREA[0] <= area <= PASTE_AREA[1]:
        return example
    paste = _place(example, other, index, random)
    if paste is None:
        return example
    inside = paste.part_map > 0
    instances = example.instances.copy()
    image = example.image.copy()
    instances[paste.window][inside] = len(example.labels)
    visible = np.bincount(
        instances[instances >= 0].astype(np.int64), minlength=len(example.labels)
    )
    if any(
        visible[i] < MIN_VISIBLE * (parts > 0).sum()
        for i, parts in enumerate(example.part_maps)
    ):
        return example
    image[paste.window][inside] = paste.pixels[inside]
    rows, columns = paste.window
    box = np.array([(columns.start, rows.start, columns.stop, rows.stop)])
    return example._replace(
        image=image,
        instances=instances,
        labels=np.concatenate([example.labels, other.labels[index : index + 1]]),
        boxes=np.concatenate([example.boxes, box]),
        part_maps=[*example.part_maps, np.ascontiguousarray(paste.part_map)],
    )


def _place(
    example: SceneExample, other: SceneExample, index: int, random: np.random.Generator
) -> _Paste | None:
    """Move an object of `other` to a random place where it overlaps the box of an object of `example`.

    None if nothing of it would be inside the image.
    """
    part_map = other.part_maps[index]
    (left, top, _, _) = other.boxes[index]
    height, width = part_map.shape
    side = example.instances.shape[0]
    covered = example.boxes[random.integers(len(example.boxes))]
    to_left = int(
        random.integers(
            covered[0] - width + 4, max(covered[2] - 4, covered[0] - width + 5)
        )
    )
    to_top = int(
        random.integers(
            covered[1] - height + 4, max(covered[3] - 4, covered[1] - height + 5)
        )
    )
    first_row = max(0, -to_top)
    first_column = max(0, -to_left)
    part_map = part_map[first_row : side - to_top, first_column : side - to_left]
    if not part_map.any():
        return None
    rows = np.flatnonzero(part_map.any(1))
    columns = np.flatnonzero(part_map.any(0))
    first_row = first_row + int(rows[0])
    first_column = first_column + int(columns[0])
    part_map = part_map[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = part_map.shape
    window = (
        slice(to_top + first_row, to_top + first_row + height),
        slice(to_left + first_column, to_left + first_column + width),
    )
    pixels = other.image[top + first_row :, left + first_column :][:height, :width]
    return _Paste(part_map, pixels, window)

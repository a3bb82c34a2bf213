"""Augmentation of training scenes: copy-paste occlusion and permuted color channels.

Objects of other scenes are pasted in front, so that heavily occluded objects are frequent (copy-paste, Ghiasi et al.
2021). The color channels of some images are permuted, so that the category cannot be read off the color.
"""

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


PASTE_PROBABILITY = 0.5
"""Of each attempt: three are made on average."""

MIN_OVERLAP = 4
"""Pixels by which a pasted box overlaps the box that it is meant to cover, in each direction."""


def augment(
    example: SceneExample, other: SceneExample, random: np.random.Generator
) -> SceneExample:
    """`example` with objects of `other` pasted in front, and sometimes with permuted color channels."""
    for _ in range(random.binomial(MAX_PASTES, PASTE_PROBABILITY)):
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
    left, top, _, _ = other.boxes[index]
    height, width = part_map.shape
    shown = other.instances[top : top + height, left : left + width] == index
    is_unoccluded = (shown == (part_map > 0)).all()
    area = int((part_map > 0).sum())
    if not is_unoccluded or not PASTE_AREA[0] <= area <= PASTE_AREA[1]:
        return example
    placement = _place(example, other, index, random)
    if placement is None:
        return example
    pasted_map, pixels, window = placement
    inside = pasted_map > 0
    instances = example.instances.copy()
    instances[window][inside] = len(example.labels)
    occupied = instances[instances >= 0].astype(np.int64)
    visible = np.bincount(occupied, minlength=len(example.labels))
    for number, parts in enumerate(example.part_maps):
        if visible[number] < MIN_VISIBLE * (parts > 0).sum():
            return example
    image = example.image.copy()
    image[window][inside] = pixels[inside]
    rows, columns = window
    box = np.array([(columns.start, rows.start, columns.stop, rows.stop)])
    return example._replace(
        image=image,
        instances=instances,
        labels=np.concatenate([example.labels, other.labels[index : index + 1]]),
        boxes=np.concatenate([example.boxes, box]),
        part_maps=[*example.part_maps, np.ascontiguousarray(pasted_map)],
    )


def _place(
    example: SceneExample, other: SceneExample, index: int, random: np.random.Generator
) -> tuple[UInt8Array, UInt8Array, tuple[slice, slice]] | None:
    """Move an object of `other` to a random place where it overlaps the box of an object of `example`.

    The part map of the object, its pixels, and the window of rows and columns where they go; None if nothing of it
    would be inside the image.
    """
    part_map = other.part_maps[index]
    left, top, _, _ = other.boxes[index]
    height, width = part_map.shape
    side = example.instances.shape[0]
    covered = example.boxes[random.integers(len(example.boxes))]
    to_left = _draw_start(covered[0], covered[2], width, random)
    to_top = _draw_start(covered[1], covered[3], height, random)
    # What is outside the image is cut off, and then the empty margin of what is left.
    first_row = max(0, -to_top)
    first_column = max(0, -to_left)
    part_map = part_map[first_row : side - to_top, first_column : side - to_left]
    if not part_map.any():
        return None
    rows = np.flatnonzero(part_map.any(1))
    columns = np.flatnonzero(part_map.any(0))
    part_map = part_map[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    first_row += int(rows[0])
    first_column += int(columns[0])
    height, width = part_map.shape
    window_top = to_top + first_row
    window_left = to_left + first_column
    window = (
        slice(window_top, window_top + height),
        slice(window_left, window_left + width),
    )
    pixels = other.image[top + first_row :, left + first_column :]
    return part_map, pixels[:height, :width], window


def _draw_start(low: int, high: int, length: int, random: np.random.Generator) -> int:
    """Where a span of `length` begins so that it overlaps the span from `low` to `high` by MIN_OVERLAP."""
    first = low - length + MIN_OVERLAP
    stop = max(high - MIN_OVERLAP, first + 1)
    return int(random.integers(first, stop))

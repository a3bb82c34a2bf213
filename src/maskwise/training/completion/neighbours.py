"""Neighbours of an object for training: annotated objects and pieces of the image, as inaccurate as proposals are."""

import numpy as np
from scipy import ndimage

from maskwise.arrays import BoolArray, Int64Array
from maskwise.models.photo.completion import CONTACT
from maskwise.training.completion.composites import STORED_SIZE, ObjectCrop

COARSE_SIZE = 64
"""Side of the map of segments."""

SEGMENTS = (4, 20)
"""Least and greatest number of segments of a crop."""


def draw_neighbour(crop: ObjectCrop, random: np.random.Generator) -> BoolArray:
    """bool [STORED_SIZE, STORED_SIZE]: something near the object, without its visible pixels.

    An object without features has one neighbour that is known, number 1.
    """
    objects = [1] if not len(crop.features) else _near_labels(crop)
    front = [
        number
        for number in objects
        if (crop.amodal & ~crop.visible & (crop.neighbours == number)).any()
    ]
    kind = random.random()
    if not len(crop.features):
        mask = crop.neighbours == 1
    elif front and kind < 0.5:
        mask = _disturb(crop, crop.neighbours == random.choice(front), random)
    elif objects and kind < 0.7:
        mask = crop.neighbours == random.choice(objects)
    elif kind < 0.9:
        mask = _near_segments(crop, random)
    else:
        mask = ~np.isin(
            crop.neighbours, [number for number in objects if random.random() < 0.7]
        )
    return _resize(mask, random) & ~crop.visible


def _near_labels(crop: ObjectCrop) -> list[int]:
    """Numbers of the annotated objects that touch the object."""
    place = ndimage.binary_dilation(crop.visible, iterations=CONTACT + 1)
    return [int(number) for number in np.unique(crop.neighbours[place]) if number]


def _disturb(
    crop: ObjectCrop, mask: BoolArray, random: np.random.Generator
) -> BoolArray:
    """A mask as it is, or one merged with something else, or a part of it."""
    kind = random.random()
    if kind < 0.6:
        return mask
    near = _near_segments(crop, random)
    part = mask & near
    return part if kind < 0.8 and part.any() else mask | near


def _near_segments(crop: ObjectCrop, random: np.random.Generator) -> BoolArray:
    """One to three segments that touch the object."""
    segments = _segment(crop, random)
    place = (
        ndimage.binary_dilation(crop.visible, iterations=CONTACT + 1) & ~crop.visible
    )
    near = np.unique(segments[place])
    chosen: BoolArray = np.isin(
        segments, random.permutation(near)[: random.integers(1, 4)]
    )
    return chosen


def _segment(crop: ObjectCrop, random: np.random.Generator) -> Int64Array:
    """int64 [STORED_SIZE, STORED_SIZE]: segments of similar color and place, one around each of some random pixels."""
    step = STORED_SIZE // COARSE_SIZE
    rows, columns = np.indices((COARSE_SIZE, COARSE_SIZE)) / COARSE_SIZE
    colors = crop.pixels[::step, ::step].astype(np.float64) / 255
    places = np.dstack([rows, columns]) * random.uniform(0.3, 2)
    points = np.concatenate([places, colors], 2).reshape(-1, 5)
    centers = points[random.integers(len(points), size=random.integers(*SEGMENTS))]
    distances = (centers**2).sum(1) - 2 * points @ centers.T
    segments: Int64Array = distances.argmin(1).reshape(COARSE_SIZE, COARSE_SIZE)
    return segments.repeat(step, 0).repeat(step, 1)


def _resize(mask: BoolArray, random: np.random.Generator) -> BoolArray:
    """The mask, or one that is one or two pixels narrower or wider; never empty."""
    change = int(random.integers(-2, 3))
    if change == 0:
        return mask
    grow = ndimage.binary_dilation if change > 0 else ndimage.binary_erosion
    changed: BoolArray = grow(mask, iterations=abs(change))
    return changed if changed.any() else mask

"""Neighbours of an object for training: annotated objects and pieces of the image, as inaccurate as proposals are."""

import numpy as np
from scipy import ndimage

from maskwise.arrays import BoolArray, Int64Array
from maskwise.models.photo.completion import CONTACT
from maskwise.training.completion.composites import STORED_SIZE, ObjectCrop

COARSE_SIZE = 64
"""Side of the map of segments: half of the crop's, four times as fast, and edges are as inaccurate as proposals are."""

SEGMENTS = (4, 20)
"""Least and greatest number of segments of a crop: from an object and its background to parts of objects."""

PLACE_WEIGHT = (0.3, 2.0)
"""Lowest and highest weight of the place beside the color: segments that follow colors, and compact ones."""

FRONT_SHARE = 0.5
"""How often the neighbour is an annotated object in front, if there is one: the case the network is for."""

ANNOTATED_SHARE = 0.2
"""How often it is any annotated object that touches."""

SEGMENT_SHARE = 0.2
"""How often it is made of segments; for the rest it is everything but some annotated objects."""

KEPT_OBJECT_SHARE = 0.7
"""How often an annotated object is left out of such a rest."""

UNCHANGED_SHARE = 0.6
"""How often an object in front keeps its mask; the other masks are cut or merged in equal shares."""

CUT_SHARE = 0.2


def draw_neighbour(crop: ObjectCrop, random: np.random.Generator) -> BoolArray:
    """bool [STORED_SIZE, STORED_SIZE]: something near the object, without its visible pixels.

    An object without features has one neighbour that is known, number 1.
    """
    objects = [1] if not len(crop.features) else _near_labels(crop)
    hidden = crop.amodal & ~crop.visible
    front = [
        number for number in objects if (hidden & (crop.neighbours == number)).any()
    ]
    kind = random.random()
    if not len(crop.features):
        mask = crop.neighbours == 1
    elif front and kind < FRONT_SHARE:
        mask = _disturb(crop, crop.neighbours == random.choice(front), random)
    elif objects and kind < FRONT_SHARE + ANNOTATED_SHARE:
        mask = crop.neighbours == random.choice(objects)
    elif kind < FRONT_SHARE + ANNOTATED_SHARE + SEGMENT_SHARE:
        mask = _near_segments(crop, random)
    else:
        left_out = [number for number in objects if random.random() < KEPT_OBJECT_SHARE]
        mask = ~np.isin(crop.neighbours, left_out)
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
    if kind < UNCHANGED_SHARE:
        return mask
    near = _near_segments(crop, random)
    part = mask & near
    if kind < UNCHANGED_SHARE + CUT_SHARE and part.any():
        return part
    return mask | near


def _near_segments(crop: ObjectCrop, random: np.random.Generator) -> BoolArray:
    """One to three segments that touch the object."""
    segments = _segment(crop, random)
    grown = ndimage.binary_dilation(crop.visible, iterations=CONTACT + 1)
    touching = np.unique(segments[grown & ~crop.visible])
    shuffled = random.permutation(touching)
    count = random.integers(1, 4)
    chosen: BoolArray = np.isin(segments, shuffled[:count])
    return chosen


def _segment(crop: ObjectCrop, random: np.random.Generator) -> Int64Array:
    """int64 [STORED_SIZE, STORED_SIZE]: segments of similar color and place, one around each of some random pixels."""
    step = STORED_SIZE // COARSE_SIZE
    rows, columns = np.indices((COARSE_SIZE, COARSE_SIZE)) / COARSE_SIZE
    colors = crop.pixels[::step, ::step].astype(np.float64) / 255
    places = np.dstack([rows, columns]) * random.uniform(*PLACE_WEIGHT)
    # A point per pixel: row, column, red, green, blue.
    points = np.concatenate([places, colors], 2).reshape(-1, 5)
    count = random.integers(*SEGMENTS)
    centers = points[random.integers(len(points), size=count)]
    # Squared distances without the squares of the points, which are the same for all centers.
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

"""Complete objects of a dataset, cut out of their images: what `occlude` completes and what it pastes."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.masks import Mask, Masks
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset

BORDER = 4
"""An object this near to the image border, in pixels, may be truncated."""

CONTACT_WIDTH = 3
"""Width in pixels of the band around an object in which contact with other objects is measured."""

MAX_CONTACT = 0.2
"""An object with more of that band inside other objects may be occluded by them."""

MAX_OCCLUSION = 0.01
"""Occlusion rate up to which an object with a known amodal mask counts as complete."""

MIN_LARGEST_COMPONENT = 0.95
"""An object in several pieces is usually occluded; the largest piece of a complete one has at least this share."""

MIN_AREA = 1500
"""Smallest object to paste, in pixels: about 39 x 39. A smaller one hides too little."""

MAX_SHARE = 0.3
"""Largest object to paste, as a share of its image: a larger one rarely fits elsewhere."""

MAX_CACHED = 256
"""Cut-outs that are kept in memory: cutting one out decodes its whole image."""


class Cutout(NamedTuple):
    """The pixels of an object: RGB uint8 [h, w, 3] and its mask bool [h, w], cropped to its box.

    `image`: the image it was cut out of.
    """

    name: str
    pixels: UInt8Array
    mask: BoolArray
    image: ImageInfo | None = None


class CutoutSource:
    """The objects of a dataset that may be pasted elsewhere; they are checked when they are drawn.

    All objects, not parts or crowds, of MIN_AREA pixels or more and at most MAX_SHARE of their image.
    """

    def __init__(self, dataset: Dataset) -> None:
        regions = dataset.regions
        visible = regions.masks("visible")
        area = np.where(visible.present, visible.masks.area(), 0)
        frame = regions.size.astype(np.int64).prod(1)
        suitable = (
            (area >= MIN_AREA)
            & (area <= MAX_SHARE * frame)
            & ~regions.crowd
            & ~regions.part_of.present
        )
        self.dataset = dataset
        self.rows = np.flatnonzero(suitable)

    def draw(self, random: np.random.Generator, *, other_than: int) -> Cutout | None:
        """A complete object of another image than row `other_than`; None if the one drawn is not suitable."""
        if not len(self.rows):
            return None
        row = int(random.choice(self.rows))
        if int(self.dataset.regions.image[row]) == other_than:
            return None
        return cut_out(self.dataset, row)


@lru_cache(maxsize=MAX_CACHED)
def cut_out(dataset: Dataset, row: int) -> Cutout | None:
    """The object of a region row with its pixels; None if it may be truncated or occluded."""
    image_row = int(dataset.regions.image[row])
    geometry = AnnotatedObjects(dataset.regions_of(image_row))
    offsets, rows = dataset.regions.of_image
    item = rows[offsets[image_row] : offsets[image_row + 1]].tolist().index(row)
    if not geometry.is_complete(item):
        return None
    x, y, width, height = geometry.boxes[item].tolist()
    pixels = np.asarray(
        dataset.open_image(image_row).crop((x, y, x + width, y + height))
    )
    mask = geometry.masks[[item]].crop([[x, y, width, height]]).to_dense()[0]
    return Cutout(geometry.regions[item].name, pixels, mask, dataset.image(image_row))


class AnnotatedObjects:
    """The regions of one image, their visible masks, boxes int64 [n, 4] (x, y, width, height) and areas int64 [n].

    A region without a visible mask counts as empty.
    """

    def __init__(self, regions: Sequence[Region]) -> None:
        self.regions = regions
        self.masks = Masks.from_masks(
            [
                Mask.empty(*region.size) if region.visible is None else region.visible
                for region in regions
            ]
        )
        self.boxes = self.masks.box()
        self.areas = self.masks.area()

    def is_complete(self, item: int) -> bool:
        """Whether all of an object shows, as far as the annotation tells.

        With an amodal mask: its occlusion rate is at most MAX_OCCLUSION. Without: it does not reach the image border,
        lies in one piece and hardly touches another object. The second rule is a heuristic: an object behind something
        that nobody annotated passes it.
        """
        region = self.regions[item]
        if not self.areas[item] or region.crowd or region.part_of is not None:
            return False
        x, y, width, height = self.boxes[item].tolist()
        frame_height, frame_width = region.size
        right_margin = frame_width - (x + width)
        bottom_margin = frame_height - (y + height)
        if min(x, y, right_margin, bottom_margin) < BORDER:
            return False
        if region.occluded is not None and region.amodal is not None:
            return region.occluded.area <= MAX_OCCLUSION * region.amodal.area
        pieces, _ = self.masks[[item]].components()
        in_one_piece = pieces.area().max() >= MIN_LARGEST_COMPONENT * self.areas[item]
        return bool(in_one_piece) and self._contact(item) <= MAX_CONTACT

    def _contact(self, item: int) -> float:
        """Share of the band around an object that lies inside other objects."""
        x, y, width, height = self.boxes[item].tolist()
        window = [
            x - CONTACT_WIDTH,
            y - CONTACT_WIDTH,
            width + 2 * CONTACT_WIDTH,
            height + 2 * CONTACT_WIDTH,
        ]
        near = [
            other
            for other in range(len(self.regions))
            if other != item and self._meets(other, window)
        ]
        if not near:
            return 0.0
        windows = [window] * (1 + len(near))
        inside, *others = self.masks[[item, *near]].crop(windows).to_dense()
        band = ndimage.binary_dilation(inside, iterations=CONTACT_WIDTH) & ~inside
        touched = np.any(others, axis=0) & band
        return float(touched.sum() / band.sum())

    def _meets(self, item: int, window: list[int]) -> bool:
        """Whether an object's box meets a window; parts of objects do not count."""
        if not self.areas[item] or self.regions[item].part_of is not None:
            return False
        x, y, width, height = self.boxes[item].tolist()
        left, top, window_width, window_height = window
        meets_across = x < left + window_width and left < x + width
        meets_down = y < top + window_height and top < y + height
        return bool(meets_across and meets_down)

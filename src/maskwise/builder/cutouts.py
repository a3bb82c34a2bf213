"""Complete objects of a dataset, cut out of their images: what `occlude` completes and what it pastes."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from maskwise.arrays import BoolArray, Float64Array, Int64Array, NumberArray, UInt8Array
from maskwise.builder.category_facts import find_category, find_settings
from maskwise.errors import ImageError
from maskwise.masks import Mask, Masks
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset

log = logging.getLogger(__name__)

BORDER = 0.01
"""An object this near to the image border, as a share of the side, may be truncated. At least MIN_BORDER pixels."""

MIN_BORDER = 4

CONTACT_WIDTH = 0.02
"""Width of the band around an object in which no other object may lie, as a share of the longer side of its box:
outlines of neighbours are drawn with gaps. At least MIN_CONTACT_WIDTH pixels."""

MIN_CONTACT_WIDTH = 4

BASE_MARGIN = 0.05
"""How much higher, in heights of an object, the base line of what stands behind it must lie."""

MAX_HELD = 0.1
"""Largest area of a thing that a person holds or wears, relative to the person, so that the person counts as whole."""

MAX_OCCLUSION = 0.01
"""Occlusion rate up to which an object with a known amodal mask counts as complete."""

MIN_LARGEST_COMPONENT = 0.95
"""An object in several pieces is usually occluded; the largest piece of a complete one has at least this share."""

MIN_AREA = 600
"""Smallest object to paste, in pixels: about 25 x 25. A smaller one shows too little to be recognized."""

MAX_SHARE = 0.3
"""Largest object to paste, as a share of its image: a larger one rarely fits elsewhere."""

MAX_CACHED = 256
"""Cut-outs that are kept in memory: cutting one out decodes its whole image."""


class Cutout(NamedTuple):
    """The pixels of an object: RGB uint8 [h, w, 3] and its mask bool [h, w], cropped to its box.

    `image`: the image it was cut out of. `ground`: as `ground_color` gives it. `settings`: those that the objects of
    its image suggest.
    """

    name: str
    pixels: UInt8Array
    mask: BoolArray
    image: ImageInfo | None = None
    ground: Float64Array | None = None
    settings: frozenset[str] = frozenset()


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
        suitable &= _keeps_clear(visible.masks.box(), regions.size)
        self.dataset = dataset
        self.rows = np.flatnonzero(suitable)
        self.images = regions.image[self.rows]
        names = regions.table["name"].to_pylist()
        self.names = sorted({names[row] for row in self.rows.tolist()})
        codes = {name: code for code, name in enumerate(self.names)}
        self.codes = [codes[names[row]] for row in self.rows.tolist()]

    def draw(self, random: np.random.Generator, *, other_than: int) -> Cutout | None:
        """A complete object of another image than row `other_than`; None if the one drawn is not suitable."""
        if not len(self.rows):
            return None
        row = int(random.choice(self.rows))
        if int(self.dataset.regions.image[row]) == other_than:
            return None
        return cut_out(self.dataset, row)

    def cut_out(self, number: int) -> Cutout | None:
        """The object of a place in `rows`; None if it may be truncated or occluded."""
        return cut_out(self.dataset, int(self.rows[number]))


@lru_cache(maxsize=MAX_CACHED)
def cut_out(dataset: Dataset, row: int) -> Cutout | None:
    """The object of a region row with its pixels; None if it may be truncated or occluded, or its image is damaged."""
    image_row = int(dataset.regions.image[row])
    geometry = AnnotatedObjects(dataset.regions_of(image_row))
    offsets, rows = dataset.regions.of_image
    item = rows[offsets[image_row] : offsets[image_row + 1]].tolist().index(row)
    if not geometry.is_complete(item, lenient=True):
        return None
    x, y, width, height = geometry.boxes[item].tolist()
    try:
        pixels = np.asarray(dataset.open_image(image_row))
    except ImageError as error:
        log.warning("%s", error)
        return None
    # What is held in front leaves holes, through which another background would show.
    mask = ndimage.binary_fill_holes(geometry.masks[item].to_dense())
    window = slice(y, y + height), slice(x, x + width)
    return Cutout(
        geometry.regions[item].name,
        pixels[window].copy(),
        mask[window].copy(),
        dataset.image(image_row),
        ground_color(pixels, mask),
        find_settings(frozenset(region.name for region in geometry.regions)),
    )


def _keeps_clear(boxes: Int64Array, sizes: NumberArray) -> BoolArray:
    """Whether boxes (x, y, width, height) keep clear of the borders of their images (height, width): bool [n]."""
    frame = sizes[:, ::-1]
    before = boxes[:, :2]
    after = frame - (before + boxes[:, 2:])
    margin = np.maximum(MIN_BORDER, BORDER * frame)
    clear: BoolArray = (np.minimum(before, after) >= margin).all(1)
    return clear


def ground_color(pixels: UInt8Array, mask: BoolArray) -> Float64Array:
    """The color around the foot of an object, float64 [3]: brightness in powers of 2, redness and blueness.

    The band reaches a tenth of the object's height above and below its lower edge; pixels of the object do not count.
    """
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    reach = max(2, (rows[-1] - rows[0]) // 10)
    band = (
        slice(rows[-1] - reach, rows[-1] + reach + 1),
        slice(columns[0], columns[-1] + 1),
    )
    outside = pixels[band][~mask[band]]
    red, green, blue = outside.mean(0) if len(outside) else pixels[band].mean((0, 1))
    # 8 of 255: darker colors are hardly told apart, and black must not divide by 0.
    light = (red + green + blue) / 3 + 8
    return np.array([np.log2(light), (red - green) / light, (blue - light) / light])


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

    def is_complete(self, item: int, *, lenient: bool = False) -> bool:
        """Whether all of an object shows; where that is not sure, it does not count as complete.

        It keeps clear of the image border. With an amodal mask: its occlusion rate is at most MAX_OCCLUSION. Without:
        it lies in one piece, no other object touches a band around it, and its category and outline are such that
        nothing unannotated is likely to hide a part of it (category_sizes.yaml; unknown categories pass). What stands
        further back may touch it. lenient: so may small things that are held or worn.
        """
        region = self.regions[item]
        if not self.areas[item] or region.crowd or region.part_of is not None:
            return False
        if not _keeps_clear(self.boxes[[item]], np.array([region.size]))[0]:
            return False
        if region.occluded is not None and region.amodal is not None:
            return region.occluded.area <= MAX_OCCLUSION * region.amodal.area
        pieces, _ = self.masks[[item]].components()
        if pieces.area().max() < MIN_LARGEST_COMPONENT * self.areas[item]:
            return False
        facts = find_category(region.name)
        mask = self.masks[[item]].crop(self.boxes[[item]]).to_dense()[0]
        is_typical = facts is None or facts.is_typical(mask, as_target=not lenient)
        return is_typical and not self._touches_another(item, lenient)

    def _touches_another(self, item: int, lenient: bool) -> bool:
        """Whether a pixel of another object lies in the band around this one, or inside it."""
        x, y, width, height = self.boxes[item].tolist()
        reach = max(MIN_CONTACT_WIDTH, round(CONTACT_WIDTH * max(width, height)))
        window = [x - reach, y - reach, width + 2 * reach, height + 2 * reach]
        near = [
            other
            for other in range(len(self.regions))
            if other != item
            and self._meets(other, window)
            and not self._may_touch(other, item, lenient)
        ]
        if not near:
            return False
        windows = [window] * (1 + len(near))
        inside, *others = self.masks[[item, *near]].crop(windows).to_dense()
        band = ndimage.binary_dilation(inside, iterations=reach)
        return bool((np.any(others, axis=0) & band).any())

    def _may_touch(self, other: int, item: int, lenient: bool) -> bool:
        """Whether another object cannot hide this one: it stands further back. lenient: or is small and held or worn.

        What stands on the ground with a base line clearly higher in the image is further back.
        """
        own_facts = find_category(self.regions[item].name)
        facts = find_category(self.regions[other].name)
        if own_facts is None or facts is None:
            return False
        if own_facts.living and facts.support == "none":
            return lenient and bool(self.areas[other] <= MAX_HELD * self.areas[item])
        if (own_facts.support, facts.support) != ("ground", "ground"):
            return False
        # Whoever rides has a higher base line too, and hides a part of the bicycle or the horse.
        if facts.living and own_facts.ridden:
            return False
        _, y, _, height = self.boxes[item].tolist()
        _, other_y, _, other_height = self.boxes[other].tolist()
        return bool(other_y + other_height < y + height - BASE_MARGIN * height)

    def _meets(self, item: int, window: list[int]) -> bool:
        """Whether an object's box meets a window; parts of objects do not count."""
        if not self.areas[item] or self.regions[item].part_of is not None:
            return False
        x, y, width, height = self.boxes[item].tolist()
        left, top, window_width, window_height = window
        meets_across = x < left + window_width and left < x + width
        meets_down = y < top + window_height and top < y + height
        return bool(meets_across and meets_down)

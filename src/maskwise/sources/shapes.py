"""What annotation files call a segmentation, as masks: polygons, run lengths, lists of either."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError
from maskwise.masks import Mask, Masks
from maskwise.sources.layout import Size
from maskwise.sources.records import BROKEN, decoder


class Rle(msgspec.Struct, frozen=True):
    """COCO run lengths, compressed (text) or not (numbers)."""

    size: tuple[int, int]
    counts: str | list[int]


Part = NDArray[np.float64] | Rle
"""One polygon x, y, x, y, ... or one run-length mask."""


class Drawn(NamedTuple):
    """A segmentation as a mask, the union of its parts.

    `overlap`: where two parts or more cover a pixel (None where none do, or where nobody asked). `oddity`: what is
    odd about the segmentation although pycocotools, and so we, can draw it.
    """

    mask: Mask
    overlap: Mask | None = None
    oddity: str | None = None


def draw(
    segmentations: Sequence[object], size: Size, *, overlaps: bool = False
) -> list[Drawn | MaskError | None]:
    """Draw segmentations (raw JSON, decoded, ready masks, or None) of one picture as one batch.

    None gives None. What cannot be drawn gives a MaskError that says what it is instead of a segmentation.
    """
    out: list[Drawn | MaskError | None] = [None] * len(segmentations)
    shapes: dict[int, list[Part]] = {}
    for item, segmentation in enumerate(segmentations):
        try:
            if isinstance(segmentation, Mask):
                out[item] = _ready(segmentation, size)
            elif segmentation is not None:
                shapes[item] = _parse(segmentation, size)
        except MaskError as error:
            out[item] = error
    for item, drawn in zip(shapes, _draw_each(list(shapes.values()), size, overlaps)):
        out[item] = drawn
    return out


def _ready(mask: Mask, size: Size) -> Drawn:
    if mask.size != size:
        raise MaskError(f"a mask of {mask.size} in a picture of height and width {size}")
    return Drawn(mask)


def _parse(segmentation: object, size: Size) -> list[Part]:
    try:
        found = _decode(segmentation, list[list[float]] | Rle)
    except msgspec.ValidationError as error:
        try:
            found = _decode(segmentation, list[Rle])
        except BROKEN:
            raise MaskError(f"neither polygons nor run lengths: {error}") from None
    except BROKEN:
        raise MaskError("neither polygons nor run lengths: not JSON") from None
    parts = found if isinstance(found, list) else [found]
    for part in parts:
        if isinstance(part, Rle) and part.size != size:
            raise MaskError(f"a mask of {part.size} in a picture of height and width {size}")
    if all(isinstance(part, list) and len(part) < 6 for part in parts):
        raise MaskError("no polygon has three points or more")
    return [part if isinstance(part, Rle) else np.array(part, np.float64) for part in parts]


def _decode(segmentation: object, type: Any) -> Any:
    if isinstance(segmentation, msgspec.Raw):
        return decoder(type).decode(segmentation)
    return msgspec.convert(segmentation, type)


def _draw_each(shapes: list[list[Part]], size: Size, overlaps: bool) -> list[Drawn | MaskError]:
    """All shapes as one batch; where that fails, one by one, so that each bad shape is known by its error."""
    try:
        return list(_draw_all(shapes, size, overlaps))
    except MaskError as error:
        if len(shapes) == 1:
            return [error]
    return [drawn for shape in shapes for drawn in _draw_each([shape], size, overlaps)]


def _draw_all(shapes: list[list[Part]], size: Size, overlaps: bool) -> list[Drawn]:
    parts = _draw_parts([part for shape in shapes for part in shape], size)
    offsets = list(itertools.accumulate(map(len, shapes), initial=0))
    whole = parts.merge(offsets, size)
    return [
        Drawn(whole[item], _overlap(parts[first:last]) if overlaps else None, _oddity(shapes[item]))
        for item, (first, last) in enumerate(itertools.pairwise(offsets))
    ]


def _draw_parts(parts: list[Part], size: Size) -> Masks:
    """One mask a part, in order."""
    is_polygon = np.array([isinstance(part, np.ndarray) for part in parts], bool)
    drawn = Masks.draw_polygons([part for part in parts if isinstance(part, np.ndarray)], size)
    read = Masks.from_rles(
        [{"size": part.size, "counts": part.counts} for part in parts if isinstance(part, Rle)]
    )
    read.check()
    places = np.concatenate([np.flatnonzero(is_polygon), np.flatnonzero(~is_polygon)])
    return Masks.concat([drawn, read])[np.argsort(places)]


def _overlap(parts: Masks) -> Mask | None:
    """Pixels that two parts or more cover."""
    seen, twice = parts[0], Mask.empty(*parts[0].size)
    for part in parts[1:]:
        twice = twice | (seen & part)
        seen = seen | part
    return twice if twice.area else None


def _oddity(parts: list[Part]) -> str | None:
    polygons = [part for part in parts if isinstance(part, np.ndarray)]
    if any(len(polygon) < 6 for polygon in polygons):
        return "a polygon of fewer than three points"
    return "an odd number of coordinates" if any(len(polygon) % 2 for polygon in polygons) else None

"""What annotation files call a segmentation, as masks: polygons, run lengths, lists of either."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError
from maskwise.formats.layout import Size
from maskwise.formats.records import BROKEN, decoder
from maskwise.masks import Mask, Masks


class Rle(msgspec.Struct, frozen=True):
    """COCO run lengths, compressed (text) or not (numbers)."""

    size: tuple[int, int]
    counts: str | list[int]


Part = NDArray[np.float64] | Rle
"""One polygon x, y, x, y, ... or one run-length mask."""


class Shape(NamedTuple):
    """A segmentation taken apart: its parts, one or more, and the frame they lie in."""

    parts: list[Part]
    size: Size


class Drawn(NamedTuple):
    """A segmentation as a mask, the union of its parts.

    `overlap`: where two parts or more cover a pixel (None where none do, or where nobody asked). `oddity`: what is
    odd about the segmentation although pycocotools, and so we, can draw it.
    """

    mask: Mask
    overlap: Mask | None = None
    oddity: str | None = None


def draw(
    segmentations: Sequence[object], sizes: Sequence[Size], *, overlaps: bool = False
) -> list[Drawn | MaskError | None]:
    """Draw segmentations (raw JSON, decoded, ready masks, or None), each in a frame of its size, as one batch.

    None gives None. What cannot be drawn gives a MaskError that says what it is instead of a segmentation.
    """
    out: list[Drawn | MaskError | None] = [None] * len(segmentations)
    shapes: dict[int, Shape] = {}
    for item, (segmentation, size) in enumerate(zip(segmentations, sizes)):
        try:
            found = None if segmentation is None else _parse(segmentation, size)
        except MaskError as error:
            out[item] = error
        else:
            if isinstance(found, Mask):
                out[item] = Drawn(found)
            elif found is not None:
                shapes[item] = found
    for item, drawn in zip(shapes, _draw_each(list(shapes.values()), overlaps)):
        out[item] = drawn
    return out


def _parse(segmentation: object, size: Size) -> "Mask | Shape":
    """A mask that needs no drawing, or the shape to draw."""
    if isinstance(segmentation, Mask):
        found: Any = [segmentation]
    else:
        found = _decode_any(segmentation)
    parts = found if isinstance(found, list) else [found]
    for part in parts:
        if not isinstance(part, list) and tuple(part.size) != size:
            raise MaskError(f"a mask of {part.size} in an image of height and width {size}")
    if all(isinstance(part, list) and len(part) < 6 for part in parts):
        raise MaskError("no polygon has three points or more")
    first = parts[0]
    if len(parts) == 1 and isinstance(first, Rle) and isinstance(first.counts, str):
        return Mask(size, first.counts)
    if isinstance(first, Mask):
        return first
    return Shape([part if isinstance(part, Rle) else np.array(part, np.float64) for part in parts], size)


def _decode_any(segmentation: object) -> Any:
    """Polygons, run lengths or a list of run lengths, by type alone."""
    try:
        return _decode(segmentation, list[list[float]] | Rle)
    except msgspec.ValidationError as error:
        try:
            return _decode(segmentation, list[Rle])
        except BROKEN:
            raise MaskError(f"neither polygons nor run lengths: {error}") from None
    except BROKEN:
        raise MaskError("neither polygons nor run lengths: not JSON") from None


def _decode(segmentation: object, type: Any) -> Any:
    if isinstance(segmentation, msgspec.Raw):
        return decoder(type).decode(segmentation)
    return msgspec.convert(segmentation, type)


def _draw_each(shapes: list[Shape], overlaps: bool) -> list[Drawn | MaskError]:
    """All shapes as one batch; where that fails, in halves, so that each bad shape is known by its error."""
    if not shapes:
        return []
    try:
        return list(_draw_all(shapes, overlaps))
    except MaskError as error:
        if len(shapes) == 1:
            return [error]
    half = len(shapes) // 2
    return _draw_each(shapes[:half], overlaps) + _draw_each(shapes[half:], overlaps)


def _draw_all(shapes: list[Shape], overlaps: bool) -> Iterator[Drawn]:
    parts = _draw_parts([(part, shape.size) for shape in shapes for part in shape.parts])
    offsets = list(itertools.accumulate((len(shape.parts) for shape in shapes), initial=0))
    whole = parts.merge(offsets, [shape.size for shape in shapes])
    for item, (first, last) in enumerate(itertools.pairwise(offsets)):
        overlap = _overlap(parts[first:last]) if overlaps and last - first > 1 else None
        yield Drawn(whole[item], overlap, _oddity(shapes[item].parts))


def _draw_parts(parts: list[tuple[Part, Size]]) -> Masks:
    """One mask a part, in order."""
    polygons = [(item, part, size) for item, (part, size) in enumerate(parts) if isinstance(part, np.ndarray)]
    rles = [(item, part) for item, (part, _) in enumerate(parts) if isinstance(part, Rle)]
    batches = []
    if polygons:
        batches.append(
            Masks.draw_polygons([part for _, part, _ in polygons], [size for _, _, size in polygons])
        )
    if rles:
        batches.append(Masks.from_rles([{"size": part.size, "counts": part.counts} for _, part in rles]))
        batches[-1].check()
    places = [item for item, *_ in polygons] + [item for item, _ in rles]
    return Masks.concat(batches)[np.argsort(places)]


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

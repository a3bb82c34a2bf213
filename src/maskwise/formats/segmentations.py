"""Decode segmentations of annotation files to masks: polygons, COCO RLE, lists of either."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from maskwise.arrays import Float64Array
from maskwise.errors import MaskError
from maskwise.formats.file_layout import Size
from maskwise.formats.json_files import BROKEN, decoder
from maskwise.masks import Mask, Masks


class CocoRle(msgspec.Struct, frozen=True):
    """COCO RLE, compressed (text) or uncompressed (numbers)."""

    size: tuple[int, int]
    counts: str | list[int]


SegmentationPart = Float64Array | CocoRle
"""One polygon x, y, x, y, ... or one run-length mask."""


Segmentation = tuple[list[SegmentationPart], Size]
"""A parsed segmentation: its parts, one or more, and the size of the image."""


class DecodedMask(NamedTuple):
    """A segmentation as a mask, the union of its parts.

    `overlap`: pixels covered by two parts or more (None if there are none, or if overlaps were not requested).
    `irregularity`: what is irregular about a segmentation that pycocotools, and therefore we, still decode.
    """

    mask: Mask
    overlap: Mask | None = None
    irregularity: str | None = None


def decode_segmentations(
    segmentations: Sequence[object], sizes: Sequence[Size], *, overlaps: bool = False
) -> list[DecodedMask | MaskError | None]:
    """Decode segmentations (raw JSON, decoded JSON, masks or None), each for an image of its size, as one batch.

    None gives None. An invalid segmentation gives a MaskError with the reason.
    """
    out: list[DecodedMask | MaskError | None] = [None] * len(segmentations)
    parsed: dict[int, Segmentation] = {}
    for item, (segmentation, size) in enumerate(zip(segmentations, sizes)):
        if segmentation is None:
            continue
        try:
            mask_or_parts = _parse(segmentation, size)
        except MaskError as error:
            out[item] = error
            continue
        if isinstance(mask_or_parts, Mask):
            out[item] = DecodedMask(mask_or_parts)
        else:
            parsed[item] = mask_or_parts
    for item, decoded in zip(parsed, _decode_each(list(parsed.values()), overlaps)):
        out[item] = decoded
    return out


def _parse(segmentation: object, size: Size) -> "Mask | Segmentation":
    """A mask that needs no further decoding, or the parsed segmentation."""
    content: Any = segmentation
    if not isinstance(segmentation, Mask):
        content = _decode_any(segmentation)
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        if not isinstance(part, list) and tuple(part.size) != size:
            raise MaskError(
                f"a mask of {part.size} in an image of height and width {size}"
            )
    if _is_matrix(parts, size):
        raise MaskError("a matrix of 0 and 1 with a value per pixel, not polygons")
    # Three points are six coordinates.
    if all(isinstance(part, list) and len(part) < 6 for part in parts):
        raise MaskError("no polygon has three points or more")
    first = parts[0]
    if len(parts) == 1 and isinstance(first, CocoRle) and isinstance(first.counts, str):
        return Mask(size, first.counts)
    if isinstance(first, Mask):
        return first
    arrays = [
        part if isinstance(part, CocoRle) else np.array(part, np.float64)
        for part in parts
    ]
    return arrays, size


def _is_matrix(parts: list[Any], size: Size) -> bool:
    """Whether what looks like polygons has a value of 0 or 1 for every pixel of the image."""
    height, width = size
    if len(parts) != height or not isinstance(parts[0], list):
        return False
    return all(
        isinstance(part, list) and len(part) == width and set(part) <= {0.0, 1.0}
        for part in parts
    )


def _decode_any(segmentation: object) -> Any:
    """Polygons, RLE or a list of RLE, by type alone."""
    try:
        return _decode(segmentation, list[list[float]] | CocoRle)
    except msgspec.ValidationError as error:
        try:
            return _decode(segmentation, list[CocoRle])
        except BROKEN:
            raise MaskError(f"neither polygons nor RLE: {error}") from None
    except BROKEN:
        raise MaskError("neither polygons nor RLE: not JSON") from None


def _decode(segmentation: object, type: Any) -> Any:
    if isinstance(segmentation, msgspec.Raw):
        return decoder(type).decode(segmentation)
    return msgspec.convert(segmentation, type)


def _decode_each(
    segmentations: list[Segmentation], overlaps: bool
) -> list[DecodedMask | MaskError]:
    """Decode all as one batch; if that fails, in halves, so that each invalid segmentation gets its own error."""
    if not segmentations:
        return []
    try:
        return list(_decode_all(segmentations, overlaps))
    except MaskError as error:
        if len(segmentations) == 1:
            return [error]
    half = len(segmentations) // 2
    return _decode_each(segmentations[:half], overlaps) + _decode_each(
        segmentations[half:], overlaps
    )


def _decode_all(
    segmentations: list[Segmentation], overlaps: bool
) -> Iterator[DecodedMask]:
    sized_parts = []
    for parts, size in segmentations:
        sized_parts += [(part, size) for part in parts]
    part_masks = _decode_parts(sized_parts)
    # The masks of segmentation k are those from offsets[k] to offsets[k + 1].
    counts = [len(parts) for parts, _ in segmentations]
    offsets = list(itertools.accumulate(counts, initial=0))
    masks = part_masks.merge(offsets, [size for _, size in segmentations])
    for item, (parts, _) in enumerate(segmentations):
        overlap = None
        if overlaps and len(parts) > 1:
            overlap = _overlap(part_masks[offsets[item] : offsets[item + 1]])
        yield DecodedMask(masks[item], overlap, _irregularity(parts))


def _decode_parts(parts: list[tuple[SegmentationPart, Size]]) -> Masks:
    """One mask per part, in order."""
    polygons = []
    polygon_sizes = []
    polygon_positions = []
    rles = []
    rle_positions = []
    for position, (part, size) in enumerate(parts):
        if isinstance(part, CocoRle):
            rles.append({"size": part.size, "counts": part.counts})
            rle_positions.append(position)
        else:
            polygons.append(part)
            polygon_sizes.append(size)
            polygon_positions.append(position)
    batches = []
    if polygons:
        batches.append(Masks.draw_polygons(polygons, polygon_sizes))
    if rles:
        rle_masks = Masks.from_rles(rles)
        rle_masks.check()
        batches.append(rle_masks)
    # Both kinds were decoded as a batch each; this restores the order of the parts.
    order = np.argsort(polygon_positions + rle_positions)
    return Masks.concat(batches)[order]


def _overlap(parts: Masks) -> Mask | None:
    """Pixels that two parts or more cover."""
    seen = parts[0]
    twice = Mask.empty(*parts[0].size)
    for part in parts[1:]:
        twice = twice | (seen & part)
        seen = seen | part
    return twice if twice.area else None


def _irregularity(parts: list[SegmentationPart]) -> str | None:
    polygons = [part for part in parts if isinstance(part, np.ndarray)]
    if any(len(polygon) < 6 for polygon in polygons):
        return "a polygon of fewer than three points"
    if any(len(polygon) % 2 for polygon in polygons):
        return "an odd number of coordinates"
    return None

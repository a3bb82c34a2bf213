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


class Segmentation(NamedTuple):
    """A parsed segmentation: its parts, one or more, and the image size (height, width)."""

    parts: list[SegmentationPart]
    size: Size


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
        try:
            found = None if segmentation is None else _parse(segmentation, size)
        except MaskError as error:
            out[item] = error
        else:
            if isinstance(found, Mask):
                out[item] = DecodedMask(found)
            elif found is not None:
                parsed[item] = found
    for item, decoded in zip(parsed, _decode_each(list(parsed.values()), overlaps)):
        out[item] = decoded
    return out


def _parse(segmentation: object, size: Size) -> "Mask | Segmentation":
    """A mask that needs no further decoding, or the parsed segmentation."""
    if isinstance(segmentation, Mask):
        found: Any = [segmentation]
    else:
        found = _decode_any(segmentation)
    parts = found if isinstance(found, list) else [found]
    for part in parts:
        if not isinstance(part, list) and tuple(part.size) != size:
            raise MaskError(
                f"a mask of {part.size} in an image of height and width {size}"
            )
    if all(isinstance(part, list) and len(part) < 6 for part in parts):
        raise MaskError("no polygon has three points or more")
    first = parts[0]
    if len(parts) == 1 and isinstance(first, CocoRle) and isinstance(first.counts, str):
        return Mask(size, first.counts)
    if isinstance(first, Mask):
        return first
    return Segmentation(
        [
            part if isinstance(part, CocoRle) else np.array(part, np.float64)
            for part in parts
        ],
        size,
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
    parts = _decode_parts(
        [(part, item.size) for item in segmentations for part in item.parts]
    )
    offsets = list(
        itertools.accumulate((len(item.parts) for item in segmentations), initial=0)
    )
    whole = parts.merge(offsets, [item.size for item in segmentations])
    for item, (first, last) in enumerate(itertools.pairwise(offsets)):
        overlap = _overlap(parts[first:last]) if overlaps and last - first > 1 else None
        yield DecodedMask(
            whole[item], overlap, _irregularity(segmentations[item].parts)
        )


def _decode_parts(parts: list[tuple[SegmentationPart, Size]]) -> Masks:
    """One mask per part, in order."""
    polygons = [
        (item, part, size)
        for item, (part, size) in enumerate(parts)
        if isinstance(part, np.ndarray)
    ]
    rles = [
        (item, part)
        for item, (part, _) in enumerate(parts)
        if isinstance(part, CocoRle)
    ]
    batches = []
    if polygons:
        batches.append(
            Masks.draw_polygons(
                [part for _, part, _ in polygons], [size for _, _, size in polygons]
            )
        )
    if rles:
        batches.append(
            Masks.from_rles(
                [{"size": part.size, "counts": part.counts} for _, part in rles]
            )
        )
        batches[-1].check()
    positions = [item for item, *_ in polygons] + [item for item, _ in rles]
    return Masks.concat(batches)[np.argsort(positions)]


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
    return (
        "an odd number of coordinates"
        if any(len(polygon) % 2 for polygon in polygons)
        else None
    )

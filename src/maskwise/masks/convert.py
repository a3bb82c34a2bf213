"""Masks from whatever people have: arrays, tensors, images, run lengths, polygons, geometries, detections."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskwise.errors import MaskError
from maskwise.masks.batch import Masks
from maskwise.masks.dense import to_array
from maskwise.masks.integers import to_size
from maskwise.masks.mask import Mask
from maskwise.masks.polygons import is_geometry


def as_mask(source: Any, size: Any = None, *, threshold: float | None = None) -> Mask:
    """One mask from any of these:

    - a `Mask`; a COCO run-length dict, compressed or not
    - pixels (height, width): numpy, torch, nested lists, a PIL image; floats need a threshold
    - polygons, with the frame's `size` (height, width): a COCO list of flat lists, [n, 2] points, a shapely geometry

    Where `size` is given, a mask of another size is refused, and lists that do not have the shape of the frame are
    polygons. MaskError says what was expected.
    """
    frame = None if size is None else to_size(size)
    mask = _convert(source, frame, threshold)
    if frame is not None and mask.size != frame:
        raise MaskError(f"expected a mask of height and width {frame}, got {mask.size}")
    return mask


def as_masks(source: Any, size: Any = None, *, threshold: float | None = None) -> Masks:
    """A batch from a `Masks`, an array (n, height, width), supervision `Detections`, or a sequence for `as_mask`.

    What `as_mask` takes as one mask gives a batch of one.
    """
    if isinstance(source, Masks):
        return _check_sizes(source, size)
    if hasattr(source, "xyxy") and hasattr(source, "mask"):
        if source.mask is None:
            raise MaskError("the detections have boxes but no masks")
        return as_masks(source.mask, size, threshold=threshold)
    if _is_pixels(source) and to_array(source).ndim == 3:
        return _check_sizes(Masks.from_dense(source, threshold=threshold), size)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return Masks.from_masks(
            [_item(source, item, size, threshold) for item in range(len(source))]
        )
    return Masks.from_masks([as_mask(source, size, threshold=threshold)])


def _convert(
    source: Any, frame: tuple[int, int] | None, threshold: float | None
) -> Mask:
    if isinstance(source, Mask):
        return source
    if is_geometry(source):
        return Mask.from_polygons(source, _expect_frame(frame))
    if isinstance(source, Mapping):
        return Mask.from_rle(source)
    if frame is not None and _is_polygons(source, frame):
        return Mask.from_polygons(source, frame)
    return Mask.from_dense(source, threshold=threshold)


def _item(source: Sequence[Any], item: int, size: Any, threshold: float | None) -> Mask:
    try:
        return as_mask(source[item], size, threshold=threshold)
    except MaskError as error:
        raise MaskError(error.message, item) from None


def _is_pixels(source: Any) -> bool:
    """Arrays, tensors and PIL images; lists may be polygons."""
    return (
        isinstance(source, np.ndarray)
        or hasattr(source, "detach")
        or hasattr(source, "__array_interface__")
    )


def _is_polygons(source: Any, frame: tuple[int, int]) -> bool:
    """Whether an array or list is polygons and not pixels: points [n, 2], or lists without the shape of the frame."""
    if _is_pixels(source):
        array = to_array(source)
        return (
            array.shape != frame and array.shape[1:] == (2,) and array.dtype != np.bool_
        )
    if not isinstance(source, Sequence) or isinstance(source, str | bytes):
        return False
    try:
        array = np.asarray(source)
    except ValueError:
        return True  # polygons of different lengths
    return array.shape != frame and array.dtype != np.bool_


def _expect_frame(frame: tuple[int, int] | None) -> tuple[int, int]:
    if frame is None:
        raise MaskError("polygons need the size (height, width) of their frame")
    return frame


def _check_sizes(masks: Masks, size: Any) -> Masks:
    if size is not None and (masks.size != to_size(size)).any():
        item = int((masks.size != to_size(size)).any(1).argmax())
        mask_size = tuple(masks.size[item].tolist())
        raise MaskError(
            f"expected a mask of height and width {to_size(size)}, got {mask_size}",
            item,
        )
    return masks

"""Integers from outside: converted to int64 and checked for their range once, before anything computes with them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maskwise.arrays import Int32Array, Int64Array
from maskwise.errors import MaskError

MAX_PIXELS = 2**31 - 1
"""The largest frame a mask may have, and the largest coordinate, shift or distance."""


def to_int64(
    values: ArrayLike, what: str, *, low: int = -MAX_PIXELS, high: int = MAX_PIXELS
) -> Int64Array:
    """An int64 array of the same shape. MaskError if a value is not an integer from low to high; bools are refused."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        raise MaskError(f"{what} must be integers, in a regular array") from None
    if not array.size or array.dtype.kind in "iu":
        smallest, largest = (
            (int(array.min()), int(array.max())) if array.size else (low, high)
        )
    else:
        # Integers of mixed types or of more than 64 bits have the dtype float64 or object.
        array = np.asarray(values, object)
        if not all(
            isinstance(value, int | np.integer) and not isinstance(value, bool)
            for value in array.flat
        ):
            raise MaskError(f"{what} must be integers, got {str(array.flat[0])[:40]!r}")
        smallest = int(min(array.flat))
        largest = int(max(array.flat))
    if smallest < low or largest > high:
        raise MaskError(
            f"{what} must be from {low} to {high}, got {smallest if smallest < low else largest}"
        )
    return array.astype(np.int64)


def to_integer(
    value: Any, what: str, *, low: int = -MAX_PIXELS, high: int = MAX_PIXELS
) -> int:
    """One Python int; MaskError as `to_int64`."""
    array = to_int64(value, what, low=low, high=high)
    if array.ndim or not array.size:
        raise MaskError(f"{what} must be one integer, got shape {array.shape}")
    return int(array)


def to_int32_rows(
    values: ArrayLike,
    shape: tuple[int, ...],
    what: str,
    *,
    low: int = -MAX_PIXELS,
    high: int = MAX_PIXELS,
) -> Int32Array:
    """int32 of the given shape, from one row for all or one row for each."""
    array = to_int64(values, what, low=low, high=high)
    try:
        return np.ascontiguousarray(np.broadcast_to(array, shape), np.int32)
    except ValueError:
        raise MaskError(
            f"{what} must have the shape {shape} or that of one row, got {array.shape}"
        ) from None


def to_sizes(sizes: ArrayLike, count: int) -> Int32Array:
    """Heights and widths as int32 [count, 2], from one pair for all or one pair for each; MaskError names the item."""
    wide = to_int64(sizes, "sizes (height, width)", low=-(2**63), high=2**63 - 1)
    try:
        rows = np.broadcast_to(
            wide if wide.size else np.zeros((0, 2), np.int64), (count, 2)
        )
    except ValueError:
        raise MaskError(
            f"sizes must be {count} pairs (height, width) or one, got shape {wide.shape}"
        ) from None
    bad = (rows < 0).any(1) | (rows > MAX_PIXELS).any(1)
    bad |= rows[:, 0] * np.where(bad, 0, rows[:, 1]) > MAX_PIXELS
    if bad.any():
        item = int(bad.argmax())
        raise MaskError(
            f"size {tuple(rows[item].tolist())} is not within 0 and {MAX_PIXELS} pixels",
            item,
        )
    return np.ascontiguousarray(rows, np.int32)


def to_size(size: Any) -> tuple[int, int]:
    """One (height, width) of Python ints."""
    array = to_int64(size, "the size (height, width)", low=-(2**63), high=2**63 - 1)
    if array.shape != (2,):
        raise MaskError(f"a size is (height, width), got shape {array.shape}")
    height, width = array.tolist()
    check_size(height, width)
    return height, width


def check_size(height: int, width: int) -> None:
    """MaskError for a frame that is negative or larger than MAX_PIXELS."""
    if height < 0 or width < 0 or height * width > MAX_PIXELS:
        raise MaskError(
            f"size ({height}, {width}) is not within 0 and {MAX_PIXELS} pixels"
        )

"""Masks that are stored as matrices: Arrow columns of lists of lists of bools or integers.

A mask of 12 megapixels takes 1.5 MB as bits in an Arrow buffer, and about 96 MB as Python lists. The functions here
read the buffers of the inner arrays and never make a Python object per pixel.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from maskwise.arrays import Int64Array
from maskwise.errors import MaskError
from maskwise.masks import Mask

Array = Any
"""A pyarrow array."""


def is_matrix_type(type: pa.DataType) -> bool:
    """Whether a column holds lists of lists of bools or integers. Polygons are lists of lists of floats."""
    inner = _item_type(_item_type(type))
    return inner is not None and (
        pa.types.is_boolean(inner) or pa.types.is_integer(inner)
    )


def decode_matrix(column: Array, row: int) -> Mask | None:
    """The mask in a row of a matrix column; None where it is null.

    MaskError if the lines have different lengths, if there is a null inside, or if an integer is not 0 or 1 (or 255).
    """
    lines, first_line, last_line = _list_at(column, row)
    if lines is None:
        return None
    if not is_matrix_type(column.type):
        raise MaskError(f"expected a matrix of bools or integers, found {column.type}")
    height = last_line - first_line
    ends = _line_ends(lines, first_line, last_line)
    widths = np.diff(ends)
    if height < 1 or widths.min() < 1:
        raise MaskError("an empty matrix")
    if widths.min() != widths.max():
        raise MaskError(
            f"lines of different lengths: {widths.min()} to {widths.max()} pixels"
        )
    pixels = _storage(lines).values.slice(int(ends[0]), int(ends[-1] - ends[0]))
    if pixels.null_count:
        raise MaskError(f"{pixels.null_count} pixels without a value")
    return Mask.from_dense(_to_numpy(pixels).reshape(height, int(widths[0])))


def _to_numpy(pixels: Array) -> np.ndarray[Any, np.dtype[Any]]:
    """A flat array of bool or integers; bits are unpacked from the buffer, integers share its memory."""
    if not pa.types.is_boolean(pixels.type):
        integers: np.ndarray[Any, np.dtype[Any]] = pixels.to_numpy()
        return integers
    start = pixels.offset
    stop = start + len(pixels)
    packed = np.frombuffer(pixels.buffers()[1], np.uint8)[start // 8 : -(-stop // 8)]
    bits = np.unpackbits(packed, bitorder="little")
    first = start % 8
    return bits[first : first + len(pixels)].view(np.bool_)


def _list_at(column: Array, row: int) -> tuple[Array | None, int, int]:
    """The items of a list column, and which of them belong to a row; (None, 0, 0) for a null."""
    storage = _storage(column)
    if not storage.is_valid()[row].as_py():
        return None, 0, 0
    if pa.types.is_fixed_size_list(storage.type):
        length = storage.type.list_size
        first = (storage.offset + row) * length
        return storage.values, first, first + length
    offsets = storage.offsets
    return storage.values, offsets[row].as_py(), offsets[row + 1].as_py()


def _line_ends(lines: Array, first: int, last: int) -> Int64Array:
    """Where the lines first to last - 1 begin and end among their pixels, int64 [last - first + 1]."""
    storage = _storage(lines)
    if storage.slice(first, last - first).null_count:
        raise MaskError("a line without pixels")
    if pa.types.is_fixed_size_list(storage.type):
        length = storage.type.list_size
        positions = np.arange(first, last + 1, dtype=np.int64) + int(storage.offset)
        return positions * int(length)
    ends: Int64Array = storage.offsets.to_numpy()[first : last + 1].astype(np.int64)
    return ends


def _storage(array: Array) -> Array:
    """The plain array below an extension type, such as Array2D of `datasets`."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _item_type(type: pa.DataType | None) -> pa.DataType | None:
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    is_list = type is not None and (
        pa.types.is_list(type)
        or pa.types.is_large_list(type)
        or pa.types.is_fixed_size_list(type)
    )
    return type.value_type if is_list and type is not None else None

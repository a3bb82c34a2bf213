"""Arrow arrays as numpy arrays and back, without the import of pandas.

pyarrow's own conversions (`Array.to_numpy`, `pyarrow.array`) import pandas where it is installed, which takes ten times
as long as opening a dataset.
"""

import numpy as np
import pyarrow as pa

from maskwise.arrays import BoolArray, Int64Array, NumberArray


def arrow_to_numpy(array: "pa.Array | pa.ChunkedArray") -> NumberArray:
    """Numbers or bools, sharing memory where possible. With nulls the result is that of `Array.to_numpy`."""
    whole = _one_chunk(array)
    if whole.null_count:
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(whole.type):
        # DLPack has bools of one byte only.
        return np.from_dlpack(whole.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(whole)


def nulls_to_zeros(array: "pa.Array | pa.ChunkedArray") -> NumberArray:
    """Numbers, with 0 for a null."""
    whole = _one_chunk(array)
    if not whole.null_count:
        return arrow_to_numpy(whole)
    _, values = whole.buffers()
    unmasked = pa.Array.from_buffers(
        whole.type, len(whole), [None, values], offset=whole.offset
    )
    return np.where(arrow_to_numpy(whole.is_valid()), arrow_to_numpy(unmasked), 0)


def numpy_to_arrow(values: Int64Array, missing: BoolArray) -> pa.Array:
    """int64 with nulls where `missing` is True."""
    validity = np.packbits(~missing, bitorder="little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.int64(), len(values), buffers)


def text_to_arrow(text: str) -> pa.Scalar:
    """A text as a scalar, as the functions of `pyarrow.compute` take it."""
    encoded = text.encode()
    ends = np.array([0, len(encoded)], np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(encoded)]
    return pa.Array.from_buffers(pa.string(), 1, buffers)[0]


def _one_chunk(array: "pa.Array | pa.ChunkedArray") -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

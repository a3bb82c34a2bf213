"""Dense planes from outside: which pixels are foreground, without guessing."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from maskwise.arrays import BoolArray, NumberArray, UInt8Array
from maskwise.errors import MaskError
from maskwise.masks.kernel import BEYOND_1, BEYOND_255

MAX_NAMED_VALUES = 6
"""Unexpected values that an error message lists."""


def to_array(values: Any) -> NumberArray:
    """A numpy array of bools, integers or floats.

    values: an array, nested lists, a PIL image, or a torch tensor on any device. MaskError for everything else.
    """
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            values = (
                values.float() if "bfloat16" in str(values.dtype) else values
            )  # numpy has no bfloat16
        array = (
            _stack_columns(values) if _is_column_major(values) else np.asarray(values)
        )
    except Exception as error:
        # Anything can be passed, and its own conversion can raise anything.
        raise MaskError(
            f"expected an array of pixels, got {type(values).__name__}: {error}"
        ) from None
    if isinstance(values, str | bytes):
        raise MaskError(
            f"expected an array of bools or numbers, got {type(values).__name__}"
        )
    if array.dtype.kind not in "biuf":
        raise MaskError(
            f"expected an array of bools or numbers, got {type(values).__name__} of {array.dtype}"
        )
    return array


def _is_column_major(values: Any) -> bool:
    """Whether this is a list of planes in column order, as pycocotools wants them."""
    if not isinstance(values, list | tuple) or not values:
        return False
    return all(
        isinstance(plane, np.ndarray)
        and plane.ndim == 2
        and plane.flags.f_contiguous
        and not plane.flags.c_contiguous
        for plane in values
    )


def _stack_columns(planes: Sequence[NumberArray]) -> NumberArray:
    """An array (n, height, width) whose planes stay in column order, which numpy would change at a cost."""
    return np.stack([plane.T for plane in planes]).transpose(0, 2, 1)


def to_planes(
    values: Any, dimensions: int, *, threshold: float | None = None
) -> BoolArray | UInt8Array:
    """Bools of the same shape and memory layout, or uint8 whose values `expect_binary` still has to check.

    Bools are taken as they are. Integers must be 0 and 1, or 0 and 255. Floats need a `threshold`, and foreground is
    what lies above it; with a threshold integers may have any value. MaskError names unexpected values.
    """
    array = to_array(values)
    if array.ndim != dimensions:
        expected = "(height, width)" if dimensions == 2 else "(n, height, width)"
        raise MaskError(f"expected an array {expected}, got shape {array.shape}")
    if threshold is not None:
        return _above(array, threshold)
    if array.dtype == np.bool_:
        return array
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f" and array.size:
        raise MaskError(
            f"an array of {array.dtype} needs a threshold, for example 0.5 for probabilities or 0 for logits"
        )
    if not _is_binary(array):
        _refuse_values(array)
    return np.not_equal(array, 0)


def order_planes(planes: BoolArray | UInt8Array) -> tuple[UInt8Array, bool]:
    """Planes (n, height, width) in contiguous memory, as `kernel.encode` takes them, and whether in column order.

    Both memory orders of planes are taken as they are.
    """
    column_major = (
        planes.transpose(0, 2, 1).flags.c_contiguous and not planes.flags.c_contiguous
    )
    ordered = (
        planes.transpose(0, 2, 1) if column_major else np.ascontiguousarray(planes)
    )
    return ordered.view(np.uint8), column_major


def expect_binary(planes: BoolArray | UInt8Array, beyond: int) -> None:
    """MaskError if uint8 are neither 0 and 1 nor 0 and 255. beyond: what `kernel.encode` said of their values."""
    if beyond == BEYOND_1 + BEYOND_255 and planes.dtype != np.bool_:
        _refuse_values(planes)


def _refuse_values(array: NumberArray) -> NoReturn:
    raise MaskError(
        f"expected a mask of 0 and 1, or of 0 and 255; found {name_values(array)}"
    )


def name_values(array: NumberArray) -> str:
    """The distinct values of an integer array, shortened to a few."""
    values = np.unique(array).tolist()
    few = ", ".join(map(str, values[:MAX_NAMED_VALUES]))
    return (
        few
        if len(values) <= MAX_NAMED_VALUES
        else f"{few}, ... {values[-1]} ({len(values)} values)"
    )


def _is_binary(array: NumberArray) -> bool:
    """Whether all values are 0 and 1, or all are 0 and 255."""
    if not array.size:
        return True
    low = int(array.min())
    high = int(array.max())
    if low < 0 or high not in (0, 1, 255):
        return False
    return high < 255 or not bool(((array != 0) & (array != 255)).any())


def _above(array: NumberArray, threshold: float) -> BoolArray:
    if not isinstance(threshold, int | float | np.number) or not np.isfinite(threshold):
        raise MaskError(f"the threshold must be a finite number, got {threshold!r}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise MaskError("the array contains NaN")
    return np.greater(array, threshold)

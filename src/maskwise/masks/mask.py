"""One mask, as records hold it: COCO compressed run lengths with their frame."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError
from maskwise.masks.kernel import AND, MAX_PIXELS, MINUS, OR, Batch, Strings, kernel


class Mask(msgspec.Struct, frozen=True, gc=False):
    """A binary mask: `size` = (height, width), `counts` = COCO compressed runs, column-major, background first.

    It is its own JSON form, `{"size": [h, w], "counts": "..."}`. Construction checks that the runs fill the frame
    exactly. Masks of one frame combine with `&`, `|`, `-`; for many masks at once use `Masks`.
    """

    size: tuple[int, int]
    counts: str

    def __post_init__(self) -> None:
        check_size(*self.size)
        kernel.check(self.counts, *self.size)

    @property
    def area(self) -> int:
        """Pixels inside."""
        return kernel.check(self.counts, *self.size)

    def areas_with(self, other: "Mask") -> tuple[int, int, int]:
        """Areas of the intersection, of this mask and of the other."""
        if self.size != other.size:
            raise MaskError(f"sizes differ: {self.size} and {other.size}")
        return kernel.pair(self.counts, other.counts, *self.size)

    def iou(self, other: "Mask") -> float:
        """Intersection over union; 0 when both are empty, as pycocotools counts."""
        intersection, area, other_area = self.areas_with(other)
        return intersection / (area + other_area - intersection) if intersection else 0.0

    def inside(self, other: "Mask") -> bool:
        """Whether every pixel of this mask is in the other."""
        intersection, area, _ = self.areas_with(other)
        return intersection == area

    def __and__(self, other: "Mask") -> "Mask":
        return self._combine(AND, other)

    def __or__(self, other: "Mask") -> "Mask":
        return self._combine(OR, other)

    def __sub__(self, other: "Mask") -> "Mask":
        return self._combine(MINUS, other)

    def to_dense(self) -> NDArray[np.bool_]:
        """A bool array (height, width)."""
        height, width = self.size
        out = np.empty((1, width, height), np.uint8)
        kernel.decode(self._batch(), out)
        plane: NDArray[np.bool_] = out.view(np.bool_)[0].T
        return plane

    @staticmethod
    def from_dense(array: NDArray[np.generic]) -> "Mask":
        """The mask of an array (height, width): nonzero is inside."""
        if array.ndim != 2:
            raise MaskError(f"expected an array (height, width), got shape {array.shape}")
        inside = np.ascontiguousarray(array != 0).view(np.uint8)
        height, width = array.shape
        check_size(height, width)
        return _from_strings(kernel.encode(inside[None], height, width, False), (height, width))

    @staticmethod
    def empty(height: int, width: int) -> "Mask":
        """A mask with no pixel."""
        check_size(height, width)
        runs, offsets = np.array([height * width], np.int64), np.array([0, 1], np.int64)
        return _from_strings(
            kernel.from_runs(runs, offsets, np.array([[height, width]], np.int32)), (height, width)
        )

    def _combine(self, operation: int, other: "Mask") -> "Mask":
        return _from_strings(kernel.combine(operation, self._batch(), other._batch()), self.size)

    def _batch(self) -> Batch:
        data = np.frombuffer(self.counts.encode("ascii"), np.uint8)
        return data, np.zeros(1, np.int64), np.array([len(data)], np.int64), np.array([self.size], np.int32)


def check_size(height: int, width: int) -> None:
    """Refuse frames that are negative or larger than MAX_PIXELS."""
    if height < 0 or width < 0 or height * width > MAX_PIXELS:
        raise MaskError(f"size ({height}, {width}) is not within 0 and {MAX_PIXELS} pixels")


def _from_strings(strings: Strings, size: tuple[int, int]) -> Mask:
    return Mask(size, strings[0].decode("ascii"))

"""The choice of the mask kernel: C, or numpy where the C kernel could not be built.

Both offer the functions of `Kernel`. A batch is the tuple `(data, start, stop, size)`: uint8 bytes of COCO
compressed strings, int64 [n] first byte and end (exclusive) of each, int32 [n, 2] heights and widths. A function
that makes masks returns `(data, stop)`: the bytes of the new strings and the int64 end of each as bytes.
Set MASKWISE_KERNEL=numpy to use numpy where the C kernel is installed.
"""

import os
from typing import Protocol, cast

from maskwise.arrays import Float64Array, Int32Array, Int64Array, UInt8Array

Batch = tuple[UInt8Array, Int64Array, Int64Array, Int32Array]
Strings = tuple[bytes, bytes]

AND, OR, MINUS, XOR = range(4)

BEYOND_1 = 1
BEYOND_255 = 2


class Kernel(Protocol):
    """The functions of a kernel. All raise MaskError naming the item if the input is malformed, and trust no length."""

    def check(self, counts: str, height: int, width: int, /) -> int:
        """Area of one mask, after checking that its runs fill the frame exactly."""

    def pair(self, a: str, b: str, height: int, width: int, /) -> tuple[int, int, int]:
        """Areas of the intersection, of a and of b, for two masks of one size."""

    def measure(self, a: Batch, areas: Int64Array, boxes: Int64Array, /) -> None:
        """Fill areas [n] and boxes [n, 4] as x, y, width, height (0, 0, 0, 0 when empty)."""

    def pair_areas(self, a: Batch, b: Batch, out: Int64Array, /) -> None:
        """Fill out [n, 3]: areas of the intersection of a[i] and b[i], of a[i] and of b[i]."""

    def pairwise(self, a: Batch, b: Batch, out: Int64Array, /) -> None:
        """Fill out [n, m]: area of the intersection of a[i] and b[j]."""

    def combine(self, operation: int, a: Batch, b: Batch, /) -> Strings:
        """a[i] operation b[i]."""

    def merge(
        self, operation: int, a: Batch, offsets: Int64Array, sizes: Int32Array, /
    ) -> Strings:
        """Fold a[offsets[g]:offsets[g + 1]] for every g; an empty group gives an empty mask of sizes[g]."""

    def runs(self, a: Batch, /) -> Strings:
        """Run lengths, first is background, as uint32 bytes, and the int64 end (in runs) of each mask."""

    def from_runs(
        self, runs: Int64Array, offsets: Int64Array, sizes: Int32Array, /
    ) -> Strings:
        """Masks from run lengths runs[offsets[i]:offsets[i + 1]]."""

    def coordinates(self, polygons: list[list[float] | Float64Array], /) -> Strings:
        """Polygons `[x, y, ...]` laid end to end: float64 bytes, and the int64 offsets of the polygons, in points."""

    def from_polygons(
        self, xy: Float64Array, offsets: Int64Array, sizes: Int32Array, /
    ) -> Strings:
        """One mask per polygon xy[2 * offsets[i]:2 * offsets[i + 1]], rasterised exactly as pycocotools does."""

    def encode(
        self, dense: UInt8Array, height: int, width: int, column_major: bool, /
    ) -> tuple[bytes, bytes, int]:
        """Masks of contiguous planes, each height x width (or width x height if column_major); nonzero is inside.

        Third: BEYOND_1 if there is a value beside 0 and 1, plus BEYOND_255 if there is one beside 0 and 255.
        """

    def decode(self, a: Batch, out: UInt8Array, /) -> None:
        """Fill out [n, width, height] with 0 and 1."""

    def boundary(self, a: Batch, distance: Int32Array, /) -> Strings:
        """a[i] minus its erosion by a square of side 2 * distance[i] + 1; outside the frame is background."""

    def boundary_areas(
        self, a: Batch, b: Batch, distance: Int32Array, out: Int64Array, /
    ) -> None:
        """As pair_areas, for the boundaries."""

    def window(self, a: Batch, boxes: Int32Array, /) -> Strings:
        """The part of a[i] inside the window x, y, width, height = boxes[i]; it may reach past the frame."""

    def flip(self, a: Batch, horizontal: bool, /) -> Strings:
        """Mirror left-right (horizontal) or top-bottom."""

    def resize(self, a: Batch, sizes: Int32Array, /) -> Strings:
        """Nearest neighbour by pixel centers: output i reads input floor((i + 0.5) * old / new)."""

    def components(self, a: Batch, connectivity: int, /) -> tuple[bytes, bytes, bytes]:
        """Connected components, ordered by first pixel in column order; third: int64 owner of each."""


def _load() -> tuple[str, Kernel]:
    if os.environ.get("MASKWISE_KERNEL", "c") != "numpy":
        try:
            from maskwise.masks import _kernel  # type: ignore[attr-defined] # noqa: PLC0415

            return "c", cast(Kernel, _kernel)
        except ImportError:
            pass
    from maskwise.masks import numpy_kernel  # noqa: PLC0415

    return "numpy", cast(Kernel, numpy_kernel)


_NAME, kernel = _load()


def kernel_name() -> str:
    """`c` or `numpy`."""
    return _NAME

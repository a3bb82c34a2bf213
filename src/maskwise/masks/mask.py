"""One mask, as records hold it: COCO compressed run lengths with the size of their frame."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.errors import MaskError
from maskwise.masks.contours import chain_rings, trace_polygons
from maskwise.masks.dense import expect_binary, order_planes, to_planes
from maskwise.masks.display import plane_to_png
from maskwise.masks.integers import check_size, to_int64, to_size
from maskwise.masks.kernel import AND, MINUS, OR, XOR, Batch, Strings, kernel
from maskwise.masks.polygons import draw_objects, object_polygons

SHOWN_SIDE = 256
"""The longer side of the image that a notebook shows."""


class Mask(msgspec.Struct, frozen=True, gc=False):
    """A binary mask: `size` = (height, width), `counts` = COCO compressed runs, column-major, background first.

    It is its own JSON form, `{"size": [h, w], "counts": "..."}`. Construction checks that the runs fill the frame
    exactly. Masks of one size combine with `&`, `|`, `-`, `^`; for many masks at once use `Masks`. `np.asarray(mask)`
    is `mask.to_dense()`.
    """

    size: tuple[int, int]
    counts: str

    def __post_init__(self) -> None:
        size = self.size
        counts = self.counts
        if type(counts) is not str:
            counts = _to_text(counts)
            msgspec.structs.force_setattr(self, "counts", counts)
        if (
            type(size) is not tuple
            or len(size) != 2
            or not type(size[0]) is type(size[1]) is int
        ):
            size = to_size(size)
            msgspec.structs.force_setattr(self, "size", size)
        check_size(*size)
        kernel.check(counts, *size)

    # -- measuring -------------------------------------------------------------------------------------------------

    @property
    def area(self) -> int:
        """Pixels inside."""
        return kernel.check(self.counts, *self.size)

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The tight box x, y, width, height; zeros for an empty mask."""
        areas = np.empty(1, np.int64)
        boxes = np.empty((1, 4), np.int64)
        kernel.measure(self._batch(), areas, boxes)
        x, y, width, height = boxes[0].tolist()
        return x, y, width, height

    def areas_with(self, other: "Mask") -> tuple[int, int, int]:
        """Areas of the intersection, of this mask and of the other."""
        if not isinstance(other, Mask):
            raise MaskError(f"expected a Mask, got {type(other).__name__}")
        if self.size != other.size:
            raise MaskError(f"sizes differ: {self.size} and {other.size}")
        return kernel.pair(self.counts, other.counts, *self.size)

    def iou(self, other: "Mask") -> float:
        """Intersection over union; 0 when both are empty, as in pycocotools."""
        intersection, area, other_area = self.areas_with(other)
        return (
            intersection / (area + other_area - intersection) if intersection else 0.0
        )

    def inside(self, other: "Mask") -> bool:
        """Whether every pixel of this mask is in the other."""
        intersection, area, _ = self.areas_with(other)
        return intersection == area

    # -- sets ------------------------------------------------------------------------------------------------------

    def __and__(self, other: "Mask") -> "Mask":
        return self._combine(AND, other)

    def __or__(self, other: "Mask") -> "Mask":
        return self._combine(OR, other)

    def __sub__(self, other: "Mask") -> "Mask":
        return self._combine(MINUS, other)

    def __xor__(self, other: "Mask") -> "Mask":
        return self._combine(XOR, other)

    # -- from other forms ------------------------------------------------------------------------------------------

    @staticmethod
    def from_dense(array: Any, *, threshold: float | None = None) -> "Mask":
        """The mask of an array (height, width): numpy, torch, nested lists or a PIL image of one channel.

        Bools, or integers 0 and 1 or 0 and 255. Floats need a threshold; what lies above it is inside.
        """
        plane = to_planes(array, 2, threshold=threshold)
        height, width = to_size(plane.shape)
        ordered, column_major = order_planes(plane[None])
        data, stop, beyond = kernel.encode(ordered, height, width, column_major)
        expect_binary(plane, beyond)
        return _from_strings((data, stop), (height, width))

    @staticmethod
    def from_rle(rle: Mapping[str, Any]) -> "Mask":
        """From a COCO dict `{"size": [h, w], "counts": ...}`: str or bytes (compressed), or a list of run lengths."""
        if not isinstance(rle, Mapping) or "size" not in rle or "counts" not in rle:
            raise MaskError("a run-length mask is a dict with size and counts")
        counts = rle["counts"]
        if isinstance(counts, str | bytes):
            return Mask(to_size(rle["size"]), _to_text(counts))
        return _from_runs(counts, to_size(rle["size"]))

    @staticmethod
    def from_polygons(polygons: Any, size: Any) -> "Mask":
        """The union of the polygons of one object in a frame of size (height, width), as pycocotools draws them.

        polygons: a COCO list of flat lists `[x, y, ...]`, a list of [n, 2] arrays, one such list or array, or a
        geometry as in `from_shapely`.
        """
        height, width = to_size(size)
        try:
            strings = draw_objects(
                [object_polygons(polygons)], np.array([[height, width]], np.int32)
            )
        except MaskError as error:
            raise MaskError(error.message) from None
        return _from_strings(strings, (height, width))

    @staticmethod
    def from_shapely(geometry: Any, size: Any) -> "Mask":
        """From a shapely (or GeoJSON) Polygon or MultiPolygon with its holes, in pixels, x to the right and y down."""
        return Mask.from_polygons(geometry, size)

    @staticmethod
    def empty(height: int, width: int) -> "Mask":
        """A mask with no pixel."""
        height, width = to_size((height, width))
        return _from_runs([height * width], (height, width))

    # -- to other forms --------------------------------------------------------------------------------------------

    def to_dense(self) -> BoolArray:
        """A bool array (height, width)."""
        height, width = self.size
        out = np.empty((1, width, height), np.uint8)
        kernel.decode(self._batch(), out)
        plane: BoolArray = out.view(np.bool_)[0].T
        return plane

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        """For numpy: the dense plane."""
        plane = self.to_dense()
        return plane if dtype is None else plane.astype(dtype)

    def to_rle(self) -> dict[str, Any]:
        """A COCO dict `{"size": [h, w], "counts": bytes}`, as pycocotools takes and gives it."""
        return {"size": list(self.size), "counts": self.counts.encode("ascii")}

    def to_polygons(self) -> list[list[float]]:
        """COCO polygons `[x, y, ...]` along the pixel edges, one per 4-connected component; [] for an empty mask.

        A hole is part of its polygon, reached by a line that is followed there and back. `from_polygons` and
        pycocotools draw exactly this mask from them.
        """
        return [chain_rings(rings).tolist() for rings in self._rings()]

    def to_shapely(self) -> Any:
        """A shapely MultiPolygon along the pixel edges, with holes; its area is that of the mask."""
        try:
            from shapely import MultiPolygon, Polygon  # noqa: PLC0415
        except ImportError:
            raise MaskError("to_shapely needs shapely: pip install shapely") from None
        return MultiPolygon(
            [Polygon(exterior, holes) for exterior, *holes in self._rings()]
        )

    def __repr__(self) -> str:
        height, width = self.size
        return f"Mask({height}x{width}, area={self.area}, box={self.box})"

    def _repr_png_(self) -> bytes:
        """For notebooks: the mask, white on black, at most SHOWN_SIDE pixels wide and high."""
        return plane_to_png(self._shrunk(SHOWN_SIDE).to_dense())

    # -- inside ----------------------------------------------------------------------------------------------------

    def _rings(self) -> list[list[Int64Array]]:
        """Exterior and holes of each component, in the coordinates of the frame."""
        x, y, width, height = self.box
        if not width:
            return []
        window = np.array([[x, y, width, height]], np.int32)
        cut = _from_strings(kernel.window(self._batch(), window), (height, width))
        return [
            [np.add(ring, (x, y)) for ring in rings]
            for rings in trace_polygons(cut.to_dense())
        ]

    def _shrunk(self, side: int) -> "Mask":
        """The mask scaled down until no side is longer than `side`."""
        scale = min(1.0, side / max(1, *self.size))
        height, width = (
            max(1, round(length * scale)) if length else 0 for length in self.size
        )
        if (height, width) == self.size:
            return self
        size = np.array([[height, width]], np.int32)
        return _from_strings(kernel.resize(self._batch(), size), (height, width))

    def _combine(self, operation: int, other: "Mask") -> "Mask":
        if not isinstance(other, Mask):
            return NotImplemented
        return _from_strings(
            kernel.combine(operation, self._batch(), other._batch()), self.size
        )

    def _batch(self) -> Batch:
        data = np.frombuffer(self.counts.encode("ascii"), np.uint8)
        return (
            data,
            np.zeros(1, np.int64),
            np.array([len(data)], np.int64),
            np.array([self.size], np.int32),
        )


def _to_text(counts: Any) -> str:
    if isinstance(counts, str):
        return counts
    if not isinstance(counts, bytes | bytearray | memoryview):
        raise MaskError(f"counts must be a COCO string, got {type(counts).__name__}")
    try:
        return bytes(counts).decode("ascii")
    except UnicodeDecodeError:
        raise MaskError("bad character in counts: a COCO string is ASCII") from None


def _from_runs(runs: Any, size: tuple[int, int]) -> Mask:
    lengths = to_int64(runs, "run lengths", low=-(2**63), high=2**63 - 1)
    if lengths.ndim != 1:
        raise MaskError("run lengths must be a flat list")
    offsets = np.array([0, len(lengths)], np.int64)
    sizes = np.array([size], np.int32)
    try:
        return _from_strings(kernel.from_runs(lengths, offsets, sizes), size)
    except MaskError as error:
        raise MaskError(error.message) from None


def _from_strings(strings: Strings, size: tuple[int, int]) -> Mask:
    return Mask(size, strings[0].decode("ascii"))

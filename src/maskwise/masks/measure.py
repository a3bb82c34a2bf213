"""Areas and overlaps of masks against masks: paired, all against all, and of their boundaries."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskwise.arrays import Float64Array, Int32Array, Int64Array
from maskwise.errors import MaskError
from maskwise.masks.batch import Masks, _expect_masks, _map_rows
from maskwise.masks.integers import MAX_PIXELS, to_sizes
from maskwise.masks.kernel import kernel


class PairAreas(NamedTuple):
    """int64 [n] each. gIoU, cIoU and intervals are computed from these, and shards are added up."""

    intersection: Int64Array
    a: Int64Array
    b: Int64Array

    @property
    def union(self) -> Int64Array:
        """Pixels in either."""
        return self.a + self.b - self.intersection

    def iou(self, empty: float = 0.0) -> Float64Array:
        """Intersection over union; `empty` where both masks are empty."""
        union = self.union
        return np.where(union > 0, self.intersection / np.maximum(union, 1), empty)


def pair_areas(a: Masks, b: Masks, *, threads: int = 1) -> PairAreas:
    """Areas of the intersection of a[i] and b[i], and of each. The batches have one length, and a pair has one size."""
    _expect_pairs(a, b)
    out = np.empty((len(a), 3), np.int64)
    _map_rows(
        lambda rows: kernel.pair_areas(a[rows]._batch(), b[rows]._batch(), out[rows]),
        len(a),
        threads,
    )
    return PairAreas(out[:, 0], out[:, 1], out[:, 2])


def pairwise_intersection(a: Masks, b: Masks) -> Int64Array:
    """Area of the intersection of a[i] and b[j] for all i, j: int64 [n, m]. All masks have one size."""
    out = np.empty((len(_expect_masks(a)), len(_expect_masks(b))), np.int64)
    kernel.pairwise(a._batch(), b._batch(), out)
    return out


def iou(
    a: Masks, b: Masks, *, crowd: ArrayLike = False, threads: int = 1
) -> Float64Array:
    """IoU of a[i] (detection) and b[i] (ground truth), as in pycocotools: divided by the area of a if b is crowd; 0 if
    both are empty.
    """
    areas = pair_areas(a, b, threads=threads)
    return _ratio(
        areas.intersection, np.where(np.asarray(crowd, bool), areas.a, areas.union)
    )


def pairwise_iou(a: Masks, b: Masks, *, crowd: ArrayLike = False) -> Float64Array:
    """IoU of every a[i] (detection) with every b[j] (ground truth), float64 [n, m]; crowd: bool [m], as in `iou`."""
    together = pairwise_intersection(a, b)
    areas_a = a.area()[:, None]
    areas_b = b.area()[None]
    return _ratio(
        together,
        np.where(np.asarray(crowd, bool), areas_a, areas_a + areas_b - together),
    )


def boundary_width(sizes: ArrayLike, ratio: float = 0.02) -> Int32Array:
    """Width of the band in pixels: ratio of the frame's diagonal, rounded half to even, at least 1."""
    if not isinstance(ratio, int | float | np.number) or not 0 <= ratio < np.inf:
        raise MaskError(f"the ratio must be a finite number from 0 up, got {ratio!r}")
    height, width = to_sizes(sizes, np.size(sizes) // 2).T.astype(np.float64)
    band = np.maximum(1, np.rint(ratio * np.sqrt(height * height + width * width)))
    clipped: Int32Array = np.minimum(band, MAX_PIXELS).astype(np.int32)
    return clipped


def boundary_areas(
    a: Masks, b: Masks, *, ratio: float = 0.02, threads: int = 1
) -> PairAreas:
    """As `pair_areas`, of the boundary bands."""
    _expect_pairs(a, b)
    out = np.empty((len(a), 3), np.int64)
    reach = boundary_width(a.size, ratio)
    _map_rows(
        lambda rows: kernel.boundary_areas(
            a[rows]._batch(), b[rows]._batch(), reach[rows], out[rows]
        ),
        len(a),
        threads,
    )
    return PairAreas(out[:, 0], out[:, 1], out[:, 2])


def boundary_iou(
    a: Masks,
    b: Masks,
    *,
    ratio: float = 0.02,
    crowd: ArrayLike = False,
    threads: int = 1,
) -> Float64Array:
    """min(mask IoU, boundary IoU) of a[i] and b[i], as boundary-iou-api scores; mask IoU alone where b is crowd."""
    band = boundary_areas(a, b, ratio=ratio, threads=threads)
    whole = iou(a, b, crowd=crowd, threads=threads)
    return np.where(
        np.asarray(crowd, bool),
        whole,
        np.minimum(whole, _ratio(band.intersection, band.union)),
    )


def pairwise_boundary_iou(
    a: Masks, b: Masks, *, ratio: float = 0.02, crowd: ArrayLike = False
) -> Float64Array:
    """As `boundary_iou`, every a[i] with every b[j]."""
    whole = pairwise_iou(a, b, crowd=crowd)
    band = pairwise_iou(
        a.boundary(boundary_width(a.size, ratio)),
        b.boundary(boundary_width(b.size, ratio)),
    )
    return np.where(
        np.broadcast_to(np.asarray(crowd, bool), whole.shape),
        whole,
        np.minimum(whole, band),
    )


def _ratio(part: Int64Array, whole: NDArray[np.int64]) -> Float64Array:
    return np.where(part > 0, part / np.maximum(whole, 1), 0.0)


def _expect_pairs(a: Masks, b: Masks) -> None:
    _expect_masks(a)
    _expect_masks(b)
    if len(a) != len(b):
        raise MaskError(f"pairs need batches of one length, got {len(a)} and {len(b)}")

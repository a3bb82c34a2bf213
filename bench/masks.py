"""The mask engine and pycocotools, hotcoco, rlemasklib, OpenCV and numpy, on one thread except in the last table.

Every method is checked to give the same numbers before it is timed.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import cv2
import hotcoco.mask
import numpy as np
from pycocotools import mask as coco
from rlemasklib import RLEMask

from bench.scenes import mask_pairs, outline_pairs
from bench.sizes import choose
from bench.timing import Row, Table, fastest, to_markdown
from maskwise.masks import Masks, boundary_iou, boundary_width, pair_areas

HEIGHT = 480
WIDTH = 640
PAIRS = choose(4000, 120)
DENSE = choose(200, 4)
BOUNDARIES = choose(300, 4)
POLYGONS = choose(4000, 20)

Rle = dict[str, Any]


def sections() -> Iterator[str]:
    """All tables as Markdown."""
    return map(to_markdown, tables())


def tables() -> Iterator[Table]:
    """All tables, one after the other."""
    yield paired()
    yield one_by_one()
    yield polygons()
    for kind in (np.bool_, np.uint8):
        for order in ("row", "column"):
            yield dense(kind, order)
    yield boundaries()
    yield two_threads()


def coco_areas(a: Rle, b: Rle) -> tuple[int, int]:
    """Intersection and union as pycocotools gives them: three calls."""
    intersection = int(coco.area(coco.merge([a, b], intersect=True)))
    return intersection, int(coco.area(a)) + int(coco.area(b)) - intersection


def paired() -> Table:
    """Whole batches of pairs."""
    a, b = mask_pairs(PAIRS, HEIGHT, WIDTH)
    left = _dicts(a)
    right = _dicts(b)
    areas = pair_areas(a, b)
    assert [coco_areas(x, y) for x, y in zip(left, right)] == list(
        zip(areas.intersection.tolist(), areas.union.tolist())
    )
    few = 100
    planes_a = a[:few].to_dense()
    planes_b = b[:few].to_dense()
    return Table(
        f"Intersection and union of pairs of masks, {WIDTH} x {HEIGHT}, {PAIRS:,} pairs, from compressed strings",
        [
            Row(
                "numpy, dense planes already decoded",
                fastest(
                    lambda: [
                        (x & y).sum() + (x | y).sum()
                        for x, y in zip(planes_a, planes_b)
                    ],
                    few,
                ),
            ),
            Row("pycocotools, merge and area", _over_pairs(coco_areas, left, right)),
            Row("rlemasklib (IoU only)", _over_pairs(_rlemasklib_iou, left, right)),
            Row("hotcoco (IoU only)", _over_pairs(_hotcoco_iou, left, right)),
            Row("maskwise, `pair_areas`", fastest(lambda: pair_areas(a, b), PAIRS)),
        ],
        {
            "pycocotools, merge and area": 6,
            "rlemasklib (IoU only)": 3,
            "hotcoco (IoU only)": 2.5,
        },
    )


def one_by_one() -> Table:
    """One pair per call."""
    a, b = mask_pairs(PAIRS, HEIGHT, WIDTH)
    left = _dicts(a)
    right = _dicts(b)
    ours = list(a)
    theirs = list(b)
    return Table(
        "The same, one pair per call",
        [
            Row("pycocotools, merge and area", _over_pairs(coco_areas, left, right)),
            Row("hotcoco (IoU only)", _over_pairs(_hotcoco_iou, left, right)),
            Row(
                "maskwise, `Mask.areas_with`",
                fastest(lambda: [x.areas_with(y) for x, y in zip(ours, theirs)], PAIRS),
            ),
        ],
        {"pycocotools, merge and area": 4},
    )


def polygons() -> Table:
    """Lists of coordinates, as JSON gives them, with as many points as COCO's have on average."""
    outlines = [
        outline.tolist()
        for outline in outline_pairs(POLYGONS, HEIGHT, WIDTH, points=24)[0]
    ]
    size = (HEIGHT, WIDTH)
    drawn = Masks.draw_polygons(outlines, size)
    assert drawn.to_strings() == [
        coco.frPyObjects([xy], *size)[0]["counts"] for xy in outlines
    ]
    return Table(
        f"Polygon to run lengths, {WIDTH} x {HEIGHT}, 24 points, bit by bit the same",
        [
            Row(
                "pycocotools",
                fastest(
                    lambda: [coco.frPyObjects([xy], *size) for xy in outlines], POLYGONS
                ),
            ),
            Row(
                "hotcoco",
                fastest(
                    lambda: [hotcoco.mask.frPyObjects([xy], *size) for xy in outlines],
                    POLYGONS,
                ),
            ),
            Row(
                "maskwise, `Masks.draw_polygons`",
                fastest(lambda: Masks.draw_polygons(outlines, size), POLYGONS),
            ),
        ],
        {"pycocotools": 8},
    )


def dense(kind: type, order: str) -> Table:
    """Planes in row order, as models give them, and in column order, as pycocotools decodes them."""
    masks, _ = mask_pairs(DENSE, HEIGHT, WIDTH)
    planes = np.ascontiguousarray(masks.to_dense()).view(kind)
    if order == "column":
        planes = np.ascontiguousarray(planes.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert Masks.from_dense(planes) == masks
    bytes_of_planes = planes.view(np.uint8)
    words = np.frombuffer(planes.base if planes.base is not None else planes, np.uint64)
    return Table(
        f"Dense plane to run lengths, {WIDTH} x {HEIGHT}, {np.dtype(kind).name}, {order} by {order}, {DENSE} planes "
        f"one after the other; reading their memory alone takes {fastest(words.sum, DENSE):.2f} µs",
        [
            Row(
                "pycocotools",
                fastest(
                    lambda: [
                        coco.encode(np.asfortranarray(plane))
                        for plane in bytes_of_planes
                    ],
                    DENSE,
                ),
            ),
            Row(
                "rlemasklib",
                fastest(lambda: [RLEMask.from_array(plane) for plane in planes], DENSE),
            ),
            Row(
                "maskwise, `Masks.from_dense`",
                fastest(lambda: Masks.from_dense(planes), DENSE),
            ),
        ],
        {"pycocotools": 15, "rlemasklib": 2},
    )


def boundaries() -> Table:
    """Boundary IoU from run lengths; the band is 2 % of the diagonal."""
    a, b = mask_pairs(BOUNDARIES, HEIGHT, WIDTH)
    left = _dicts(a)
    right = _dicts(b)
    assert np.allclose(
        boundary_iou(a, b),
        [_dense_boundary_iou(x, y) for x, y in zip(left, right)],
        atol=1e-12,
    )
    return Table(
        f"Boundary IoU, {WIDTH} x {HEIGHT}",
        [
            Row(
                "boundary-iou-api's method: decode, cv2.erode",
                _over_pairs(_dense_boundary_iou, left, right),
            ),
            Row(
                "maskwise, `boundary_iou`",
                fastest(lambda: boundary_iou(a, b), BOUNDARIES),
            ),
        ],
        {"boundary-iou-api's method: decode, cv2.erode": 50},
    )


def two_threads() -> Table:
    """Measured as wall time."""
    a, b = mask_pairs(10 * PAIRS, HEIGHT, WIDTH)
    walls = []
    for threads in (1, 2):
        best = float("inf")
        for _ in range(12):
            before = time.perf_counter()
            pair_areas(a, b, threads=threads)
            best = min(best, time.perf_counter() - before)
        walls.append(best / len(a) * 1e6)
    return Table(
        "Two threads, wall time",
        [Row("maskwise, one thread", walls[0]), Row("maskwise, two threads", walls[1])],
        {"maskwise, one thread": 1.7},
    )


def _dicts(masks: Masks) -> list[Rle]:
    return [
        {"size": [HEIGHT, WIDTH], "counts": counts} for counts in masks.to_strings()
    ]


def _over_pairs(
    work: Callable[[Rle, Rle], object], left: list[Rle], right: list[Rle]
) -> float:
    return fastest(lambda: [work(x, y) for x, y in zip(left, right)], len(left))


def _rlemasklib_iou(a: Rle, b: Rle) -> float:
    return RLEMask.from_dict(a).iou(RLEMask.from_dict(b))


def _hotcoco_iou(a: Rle, b: Rle) -> float:
    return hotcoco.mask.iou([a], [b], [0])


def _dense_boundary(rle: Rle) -> np.ndarray:
    plane = coco.decode(rle)
    distance = int(boundary_width([HEIGHT, WIDTH])[0])
    padded = cv2.copyMakeBorder(plane, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    eroded = cv2.erode(padded, np.ones((3, 3), np.uint8), iterations=distance)
    return plane - eroded[1:-1, 1:-1]


def _dense_boundary_iou(a: Rle, b: Rle) -> float:
    """min(mask IoU, boundary IoU), computed on planes as boundary-iou-api does."""
    band_a = _dense_boundary(a)
    band_b = _dense_boundary(b)
    together = ((band_a * band_b) > 0).sum()
    either = ((band_a + band_b) > 0).sum()
    intersection, union = coco_areas(a, b)
    return min(together / either, intersection / union)

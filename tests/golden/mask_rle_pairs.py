"""Pairs of run-length masks: areas, boxes, sets and IoU, against pycocotools.

Masks of different sizes are refused, where pycocotools answers -1 and an empty mask.
"""

from collections.abc import Callable

from maskwise.errors import MaskError
from maskwise.masks import Masks, iou, pair_areas, pairwise_iou
from tests.golden import Case
from tests.golden.compare import differences

TOLERANCE = 1e-12


def check(case: Case) -> list[str]:
    a, b = (Masks.from_rles([case["input"][key]]) for key in "ab")
    both = Masks.concat([a, b])
    alone = {
        "area": both.area().tolist(),
        "bbox": both.box().tolist(),
        "runs": [runs.tolist() for runs in both.to_runs()],
    }
    if case["input"]["a"]["size"] != case["input"]["b"]["size"]:
        return _check_mismatch(case, a, b, alone)
    together = a & b
    either = a | b
    areas = pair_areas(a, b)
    ratios = {
        "iou_iscrowd0": float(iou(a, b)[0]),
        "iou_iscrowd1": float(iou(a, b, crowd=True)[0]),
    }
    official = (
        alone
        | ratios
        | {"intersection": together.to_rles()[0], "union": either.to_rles()[0]}
    )
    exact = alone | {
        "intersection_area": int(areas.intersection[0]),
        "union_area": int(areas.union[0]),
        "intersection_runs": together.to_runs()[0].tolist(),
        "union_runs": either.to_runs()[0].tolist(),
        "iou_iscrowd0": float(pairwise_iou(a, b)[0, 0]),
        "iou_iscrowd1": float(pairwise_iou(a, b, crowd=[True])[0, 0]),
    }
    problems = differences(official, case["expected"], TOLERANCE, "expected")
    return problems + differences(exact, case["expected_exact"], TOLERANCE, "exact")


def _check_mismatch(
    case: Case, a: Masks, b: Masks, alone: dict[str, object]
) -> list[str]:
    wanted = [
        {key: case[block][key] for key in alone if key in case[block]}
        for block in ("expected", "expected_exact")
    ]
    problems = [
        line for block in wanted for line in differences(alone, block, TOLERANCE)
    ]
    works: dict[str, Callable[[], object]] = {
        "intersection": lambda: a & b,
        "union": lambda: a | b,
        "iou": lambda: iou(a, b),
        "pairwise_iou": lambda: pairwise_iou(a, b),
    }
    return problems + [
        f"{name}: sizes differ, yet it was computed"
        for name, work in works.items()
        if not _refuses(work)
    ]


def _refuses(work: Callable[[], object]) -> bool:
    try:
        work()
    except MaskError:
        return True
    return False

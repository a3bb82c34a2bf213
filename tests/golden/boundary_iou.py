"""Boundary bands and boundary IoU, against boundary-iou-api."""

import numpy as np

from maskwise.masks import (
    Masks,
    boundary_areas,
    boundary_iou,
    boundary_width,
    iou,
    pairwise_boundary_iou,
)
from tests.golden import Case
from tests.golden.compare import differences

TOLERANCE = 1e-12


def check(case: Case) -> list[str]:
    given = case["input"]
    ratio = given["dilation_ratio"]
    crowd = bool(given["iscrowd"])
    pred, gt = (Masks.from_rles([given[key]]) for key in ("pred", "gt"))
    width = boundary_width(pred.size, ratio)
    bands = [masks.boundary(width) for masks in (pred, gt)]
    areas = boundary_areas(pred, gt, ratio=ratio)
    ratios = {
        "boundary_iou": float(iou(*bands, crowd=crowd)[0]),
        "mask_iou": float(iou(pred, gt, crowd=crowd)[0]),
        "combined": float(boundary_iou(pred, gt, ratio=ratio, crowd=crowd)[0]),
    }
    official = ratios | {
        "pred_boundary": bands[0].to_rles()[0],
        "gt_boundary": bands[1].to_rles()[0],
    }
    exact = ratios | {
        "dilation": int(width[0]),
        "boundary_area": [int(areas.a[0]), int(areas.b[0])],
        "boundary_intersection": int(areas.intersection[0]),
        "boundary_union": int(areas.a[0] if crowd else areas.union[0]),
    }
    problems = differences(official, case["expected"], TOLERANCE, "expected")
    problems += differences(exact, case["expected_exact"], TOLERANCE, "exact")
    pairwise = pairwise_boundary_iou(pred, gt, ratio=ratio, crowd=crowd)
    if not np.isclose(
        pairwise[0, 0], case["expected"]["combined"], rtol=0, atol=TOLERANCE
    ):
        problems.append(
            f"pairwise combined: got {pairwise[0, 0]}, wanted {case['expected']['combined']}"
        )
    return problems

"""Polygons and boxes to masks, against pycocotools and an independent rasteriser."""

import hashlib
from typing import Any

import numpy as np

from maskwise.errors import MaskError
from maskwise.masks import Masks
from tests.golden import Case
from tests.golden.compare import differences


def check(case: Case) -> list[str]:
    if "error" in case["expected"]:
        return _check_refused(case["input"])
    parts, merged = _draw(case["input"])
    shared = {
        "area": parts.area().tolist(),
        "bbox": parts.box().tolist(),
        "merged_area": int(merged.area()[0]),
        "merged_bbox": merged.box()[0].tolist(),
    }
    planes = parts.to_dense()
    union = merged.to_dense()[0]
    official = {
        **shared,
        "parts": parts.to_rles(),
        "merged": merged.to_rles()[0],
        "sum_max": int(planes.sum(0).max(initial=0)),
    }
    exact = {
        **shared,
        "parts_runs": [runs.tolist() for runs in parts.to_runs()],
        "merged_sha256_rowmajor": hashlib.sha256(
            np.ascontiguousarray(union, np.uint8).tobytes()
        ).hexdigest(),
    }
    problems = differences(official, case["expected"], path="expected")
    return problems + differences(exact, case["expected_exact"], path="exact")


def _draw(given: dict[str, Any]) -> tuple[Masks, Masks]:
    """One mask a polygon or box, and their union."""
    size = (given["height"], given["width"])
    if "bboxes" in given:
        parts = Masks.from_boxes(given["bboxes"], size)
        return parts, parts.merge([0, len(parts)], size)
    return Masks.draw_polygons(given["polygons"], size), Masks.from_polygons(
        [given["polygons"]], [size]
    )


def _check_refused(given: dict[str, Any]) -> list[str]:
    try:
        Masks.from_polygons([given["polygons"]], [(given["height"], given["width"])])
    except MaskError:
        return []
    return ["drawn, though the official code refuses it"]

"""Dense planes to run lengths, against pycocotools."""

import numpy as np

from maskwise.masks import Masks
from tests.golden import Case
from tests.golden.compare import differences


def check(case: Case) -> list[str]:
    rows = [[pixel == "1" for pixel in row] for row in case["input"]["rows"]]
    plane = np.array(rows, bool).reshape(
        1, case["input"]["height"], case["input"]["width"]
    )
    problems = []
    for order in ("C", "F"):
        stored = np.asfortranarray(plane[0])[None] if order == "F" else plane
        masks = Masks.from_dense(stored)
        area = int(masks.area()[0])
        box = masks.box()[0].tolist()
        official = {"rle": masks.to_rles()[0], "area": area, "bbox": box}
        exact = {"runs": masks.to_runs()[0].tolist(), "area": area, "bbox": box}
        problems += differences(
            official, case["expected"], path=f"expected ({order} order)"
        )
        problems += differences(
            exact, case["expected_exact"], path=f"exact ({order} order)"
        )
        if not np.array_equal(masks.to_dense()[0], plane[0]):
            problems.append(f"decoding gives other pixels ({order} order)")
    return problems

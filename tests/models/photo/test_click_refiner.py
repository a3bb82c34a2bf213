"""Click-to-refine with the real weights, on a real photograph."""

import numpy as np
import pytest

from maskwise.images import open_image
from maskwise.masks import Mask
from maskwise.models.photo.click_refiner import ClickRefiner, load_click_refiner
from maskwise.review.refine import Click
from tests.shared import shared


@pytest.fixture(scope="module")
def refiner() -> ClickRefiner:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWISE_WEIGHTS", str(shared("weights")))
        return load_click_refiner()


def test_a_damaged_mask_is_completed_and_a_negative_click_removes_a_part(
    refiner: ClickRefiner,
) -> None:
    image = open_image(shared("data", "tiny_coco", "val2017", "000000331352.jpg"))
    width, height = image.size
    middle = Click(width / 2, height / 2, True)
    whole = refiner.refine(image, None, [middle])
    assert whole.size == (height, width)
    assert whole.to_dense()[height // 2, width // 2]
    plane = whole.to_dense().copy()
    plane[:, width // 2 :] = False
    half = Mask.from_dense(plane)
    right = np.argwhere((whole - half).to_dense()).mean(0)
    refined = refiner.refine(
        image, half, [middle, Click(float(right[1]), float(right[0]), True)]
    )
    assert refined.iou(whole) > half.iou(whole)
    smaller = refiner.refine(
        image, whole, [Click(float(right[1]), float(right[0]), False)]
    )
    assert not smaller.to_dense()[int(right[0]), int(right[1])]

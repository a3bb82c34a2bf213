import numpy as np
import pytest

from maskwise.models.tiny.detections import DetectedObjects, no_objects
from maskwise.models.tiny.features import object_features
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    MAX_PARTS,
    PAIRWISE_FEATURES,
    UNARY_FEATURES,
    UNARY_MEASURES,
)


def two_squares() -> DetectedObjects:
    """A square of 4 x 4 pixels in an image of 8 x 8; a quarter of it is behind another one to the lower right."""
    amodal = np.zeros((2, 8, 8), bool)
    amodal[0, 0:4, 0:4] = True
    amodal[1, 2:6, 2:6] = True
    visible = amodal.copy()
    visible[0] &= ~amodal[1]
    part = amodal.astype(np.uint8)
    part[0, 2:4, 0:4] = 2
    return DetectedObjects(
        visible, amodal, part, np.eye(2, sum(ATTRIBUTE_SIZES), dtype=np.float32)
    )


def test_occlusion_and_position_of_two_objects() -> None:
    unary, pairwise = object_features(two_squares())
    occludes, occluded_by, right, below, overlap, in_front = pairwise[1, 0]
    assert (occludes, occluded_by, overlap, in_front) == (0.25, 0.0, 0.25, 1.0)
    assert right > 0
    assert below > 0
    measures = unary[0, sum(ATTRIBUTE_SIZES) :]
    assert measures[2:8].tolist() == [0.25, 0.25, 0, 0, 0.5, 0.5]
    assert measures[8:11] == pytest.approx([0.5, (12 / 64) ** 0.5, 0.25])
    # The first part is visible; four of the eight pixels of the second part are occluded.
    assert measures[UNARY_MEASURES:][:2] == pytest.approx(
        [(8 / 64) ** 0.5, (4 / 64) ** 0.5]
    )
    assert measures[UNARY_MEASURES + MAX_PARTS :][:2] == pytest.approx([0, 0.5])


def test_no_objects_have_empty_features() -> None:
    unary, pairwise = object_features(no_objects())
    assert unary.shape == (0, UNARY_FEATURES)
    assert pairwise.shape == (0, 0, PAIRWISE_FEATURES)

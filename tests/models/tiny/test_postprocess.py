import numpy as np
import pytest

from maskwise.models.tiny.networks import RoIPredictions
from maskwise.models.tiny.postprocess import (
    assemble_objects,
    decode_boxes,
    drop_duplicates,
    mask_nms,
)

SIDE = 40


def peaks_to_boxes(peaks: dict[tuple[int, int], float]) -> np.ndarray:
    heatmap = np.zeros((10, 10), np.float32)
    for place, value in peaks.items():
        heatmap[place] = value
    return decode_boxes(heatmap, np.full((4, 10, 10), 6.0, np.float32), SIDE)


def solid(
    boxes: list[tuple[float, float, float, float]], strength: list[float]
) -> tuple[RoIPredictions, np.ndarray]:
    """Mugs that fill their boxes, visible and amodal, and their masks, which serve as the final ones too. The upper
    half is the first part, the lower half the second.
    """
    masks = np.zeros((len(boxes), 4, 28, 28))
    for plane, value in zip(masks, strength):
        plane[:2] = value
        plane[2, :14] = 1
        plane[3, 14:] = 1
    classes = np.full((len(boxes), 3), -5.0, np.float32)
    classes[:, 0] = 5
    fractions = np.array(boxes, np.float32) / np.float32(SIDE)
    rois = RoIPredictions(
        masks.astype(np.float32), classes, classes, classes, fractions
    )
    return rois, rois.masks


def test_local_maxima_of_the_heatmap_are_objects() -> None:
    boxes = peaks_to_boxes({(2, 3): 0.9, (2, 4): 0.8, (7, 7): 0.95, (5, 0): 0.1})
    # Cell (row 7, column 7) of four pixels has its center at 30; the distances are 6 on every side.
    assert boxes.tolist() == [[24, 24, 36, 36], [8, 4, 20, 16]]


def test_boxes_are_clipped_to_the_image() -> None:
    assert peaks_to_boxes({(0, 9): 0.9}).tolist() == [[32, 0, 40, 8]]


def test_a_pixel_is_visible_in_one_object_and_amodal_masks_stay_whole() -> None:
    rois, masks = solid([(0, 0, 20, 20), (10, 0, 40, 20)], [3, 2])
    objects = assemble_objects(rois, masks, SIDE)
    front, behind = objects.visible
    assert not (front & behind).any()
    assert front.sum() == 20 * 20
    assert behind.sum() == 20 * 20
    assert objects.amodal[1].sum() == 30 * 20
    assert (objects.amodal[1] & ~behind == front & objects.amodal[1]).all()


def test_parts_cover_the_object_and_belong_to_its_category() -> None:
    rois, masks = solid([(0, 0, 20, 20)], [3])
    two = assemble_objects(rois, masks, SIDE)
    assert [(two.part[0] == k).sum() for k in (1, 2)] == [200, 200]
    assert (two.part[0] > 0).sum() == two.amodal[0].sum()


def test_nms_keeps_the_detection_with_the_higher_score() -> None:
    rois, _ = solid([(0, 0, 20, 20), (1, 0, 21, 20), (24, 0, 40, 20)], [2, 3, 1])
    boxes = rois.boxes * SIDE
    kept, kept_boxes = drop_duplicates(rois, boxes, SIDE)
    assert kept_boxes.tolist() == boxes[[0, 2]].tolist()
    assert [len(array) for array in kept] == [2] * len(kept)
    assert kept.masks[:, 0, 0, 0].tolist() == [2, 1]


@pytest.mark.parametrize("box", [(-8, -8, -1, -1), (5, 5, 5, 5), (39.5, 39.5, 60, 60)])
def test_boxes_outside_the_image_and_empty_boxes_are_handled(
    box: tuple[float, float, float, float],
) -> None:
    rois, masks = solid([box], [3])
    objects = assemble_objects(rois, masks, SIDE)
    assert objects.visible.shape == (len(objects.attributes), SIDE, SIDE)


def test_mask_nms_compares_with_the_smaller_of_two_masks() -> None:
    masks = np.zeros((3, 1, 12), bool)
    masks[0, 0, :6] = masks[1, 0, 4:6] = masks[2, 0, 3:11] = True
    assert mask_nms(masks).tolist() == [0, 2]

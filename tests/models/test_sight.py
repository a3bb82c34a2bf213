import numpy as np
import pytest

from maskwise.models.sight import Looked, Seen, draw_objects, find_boxes, match_masks

SIDE = 40


def heat_map(peaks: dict[tuple[int, int], float]) -> Seen:
    heat = np.zeros((10, 10), np.float32)
    for place, value in peaks.items():
        heat[place] = value
    return Seen(heat, np.full((4, 10, 10), 6.0, np.float32))


def looked(masks: np.ndarray, category: list[int]) -> Looked:
    kinds = np.full((len(masks), 3), -5.0, np.float32)
    kinds[np.arange(len(masks)), category] = 5
    return Looked(masks.astype(np.float32), kinds, kinds, kinds)


def solid(boxes: list[tuple[float, float, float, float]], strength: list[float]) -> tuple[Looked, np.ndarray]:
    """Objects that fill their boxes, visible and amodal, of two parts: the upper half and the lower."""
    masks = np.zeros((len(boxes), 4, 28, 28))
    for plane, value in zip(masks, strength):
        plane[:2] = value
        plane[2, :14], plane[3, 14:] = 1, 1
    return looked(masks, [0] * len(boxes)), np.array(boxes, np.float32)


def test_the_hottest_cell_of_a_neighbourhood_is_an_object() -> None:
    boxes = find_boxes(heat_map({(2, 3): 0.9, (2, 4): 0.8, (7, 7): 0.95, (5, 0): 0.1}), SIDE)
    # Cell (row 7, column 7) of four pixels has its middle at 30; the distances are 6 on every side.
    assert boxes.tolist() == [[24, 24, 36, 36], [8, 4, 20, 16]]


def test_boxes_stay_in_the_frame() -> None:
    assert find_boxes(heat_map({(0, 9): 0.9}), SIDE).tolist() == [[32, 0, 40, 8]]


def test_a_pixel_is_seen_once_and_what_is_behind_stays_whole() -> None:
    sure, boxes = solid([(0, 0, 20, 20), (10, 0, 40, 20)], [3, 2])
    objects = draw_objects(sure, boxes, side=SIDE, parts_of=lambda category: 2)
    front, behind = objects.visible
    assert not (front & behind).any()
    assert front.sum() == 20 * 20
    assert behind.sum() == 20 * 20
    assert objects.amodal[1].sum() == 30 * 20
    assert (objects.amodal[1] & ~behind == front & objects.amodal[1]).all()


def test_parts_cover_the_whole_and_are_those_of_the_category() -> None:
    sure, boxes = solid([(0, 0, 20, 20)], [3])
    two = draw_objects(sure, boxes, side=SIDE, parts_of=lambda category: 2)
    assert [(two.part[0] == k).sum() for k in (1, 2)] == [200, 200]
    one = draw_objects(sure, boxes, side=SIDE, parts_of=lambda category: 1)
    assert (one.part[0] == one.amodal[0]).all()


def test_of_two_finds_of_one_object_the_first_is_kept() -> None:
    sure, boxes = solid([(0, 0, 20, 20), (1, 0, 21, 20)], [2, 3])
    objects = draw_objects(sure, boxes, side=SIDE, parts_of=lambda category: 2)
    assert len(objects.kinds) == 1
    assert objects.visible[0, :, 20].sum() == 0


@pytest.mark.parametrize("box", [(-8, -8, -1, -1), (5, 5, 5, 5), (39.5, 39.5, 60, 60)])
def test_a_box_with_next_to_nothing_inside_does_no_harm(box: tuple[float, float, float, float]) -> None:
    sure, boxes = solid([box], [3])
    objects = draw_objects(sure, boxes, side=SIDE, parts_of=lambda category: 2)
    assert objects.visible.shape == (len(objects.kinds), SIDE, SIDE)


def test_masks_are_matched_best_first_and_once() -> None:
    def bar(first: int, stop: int) -> np.ndarray:
        plane = np.zeros((1, 10), bool)
        plane[0, first:stop] = True
        return plane

    truth = np.stack([bar(0, 4), bar(4, 8)])
    found = np.stack([bar(0, 3), bar(0, 4), bar(5, 8), bar(9, 10)])
    assert match_masks(found, truth) == [-1, 0, 1, -1]
    assert match_masks(found[:0], truth) == []
    assert match_masks(found, truth[:0]) == [-1] * 4

"""Boxes and windows of an image."""

import numpy as np

from maskwise.models.photo.box import Box, mask_box, shared_height, shared_width
from maskwise.models.photo.detector import _is_complete, make_tiles
from maskwise.models.photo.window import Window


def test_a_box_has_a_size_a_center_and_an_area() -> None:
    box = Box(10, 20, 40, 60)
    assert (box.width, box.height, box.area) == (30, 40, 1200)
    assert (box.center_x, box.center_y) == (25, 40)
    assert Box(5, 5, 5, 5).area > 0


def test_shared_sides_are_negative_for_a_gap() -> None:
    assert shared_width(Box(0, 0, 10, 10), Box(6, 0, 20, 10)) == 4
    assert shared_width(Box(0, 0, 10, 10), Box(13, 0, 20, 10)) == -3
    assert shared_height(Box(0, 0, 10, 10), Box(0, 2, 10, 5)) == 3


def test_the_box_of_a_mask_ends_just_outside_it() -> None:
    mask = np.zeros((20, 30), bool)
    mask[2:5, 7:11] = True
    assert mask_box(mask) == (7, 2, 11, 5)
    assert mask_box(~mask & mask) is None


def test_a_window_is_clipped_to_at_least_one_pixel() -> None:
    assert Window(-5, -5, 50, 50).clip((20, 30)) == (0, 0, 30, 20)
    assert Window(30, 20, 30, 20).clip((20, 30)) == (30, 20, 31, 21)


def test_a_window_is_the_same_part_at_another_resolution() -> None:
    window = Window(10, 20, 30, 40)
    assert window.rescale((100, 100), (50, 200)) == (20, 10, 60, 20)
    assert window.intersect(Window(0, 30, 20, 60)) == (10, 30, 20, 40)
    assert window.slices == (slice(20, 40), slice(10, 30))


def test_a_window_at_the_border_is_pasted_as_far_as_it_fits() -> None:
    crop = np.ones((96, 96), np.float32)
    pasted = Window(29, 19, 31, 21).paste(crop, (20, 30))
    assert pasted.shape == (20, 30)
    assert pasted.sum() == 1


def test_tiles_overlap_and_reach_every_corner() -> None:
    tiles = make_tiles(100, 50, 0.6, 2)
    assert tiles == [
        (0, 0, 60, 30),
        (40, 0, 100, 30),
        (0, 20, 60, 50),
        (40, 20, 100, 50),
    ]


def test_tiles_are_evenly_spaced() -> None:
    tiles = make_tiles(100, 50, 0.4, 3)
    assert len(tiles) == 9
    assert [left for left, top, _, _ in tiles if top == 0] == [0, 30, 60]
    assert tiles[-1] == (60, 30, 100, 50)


def test_boxes_at_the_inner_border_of_a_tile_may_be_cut() -> None:
    whole = (0, 0, 100, 50)
    tile = (0, 0, 60, 30)
    boxes = np.array(
        [
            [0, 0, 20, 20],  # touches the border of the image only
            [30, 5, 60, 20],  # touches the right border of the tile
            [30, 5, 50, 30],  # touches its lower border
            [30, 5, 50, 20],
        ],
        np.float32,
    )
    assert _is_complete(boxes, tile, whole).tolist() == [True, False, False, True]
    assert _is_complete(boxes, whole, whole).all()

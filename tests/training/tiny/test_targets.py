"""Detector batches: the targets of drawn objects."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.models.tiny.spec import IMAGE_SIZE, STRIDE
from maskwise.training.tiny.targets import (
    BOX_CELL_WEIGHT,
    ROIS_PER_IMAGE,
    DetectorBatch,
    make_detector_batch,
    sample_masks,
)
from tests.training.tiny.squares import square_example

CELLS = IMAGE_SIZE // STRIDE


class Unflipped(np.random.Generator):
    """Random numbers without a flip: the first integer below 2 is 0."""

    def integers(self, *args, **options):  # type: ignore[override]
        if args == (2,):
            return np.int64(0)
        return super().integers(*args, **options)


def make_batch(*boxes: tuple[int, int, int, int]) -> DetectorBatch:
    random = Unflipped(np.random.PCG64(0))
    return make_detector_batch([square_example(*boxes)], random)


def test_the_heatmap_is_one_at_the_center_of_each_object() -> None:
    batch = make_batch((20, 20, 60, 60), (80, 100, 120, 140))
    centers = (batch.heatmap[0, 0] == 1).nonzero().tolist()
    # The mean of the pixels 20 to 59 is 39.5, whose nearest pixel is in cell 9.
    assert centers == [[9, 9], [29, 24]]
    assert batch.heatmap.shape == (1, 1, CELLS, CELLS)
    assert ((batch.heatmap >= 0) & (batch.heatmap <= 1)).all()


def test_every_visible_cell_knows_the_box_and_the_labels() -> None:
    batch = make_batch((20, 20, 60, 60))
    row = column = 7
    # The middle of this cell is pixel 30.
    assert batch.box[0, :, row, column].tolist() == [10, 10, 30, 30]
    assert batch.cell_labels[0, :, row, column].tolist() == [3, 1]
    assert batch.box_weight[0, 0, row, column] >= BOX_CELL_WEIGHT
    assert batch.box_weight[0, 0, 0, 0] == 0
    assert batch.cell_labels[0, :, 0, 0].tolist() == [-1, -1]


def test_an_object_in_front_takes_the_cells_it_covers() -> None:
    batch = make_batch((20, 20, 60, 60), (40, 20, 80, 60))
    # Pixel 50 shows the second object, whose box begins at 40.
    assert batch.box[0, 0, 7, 12].item() == 10


def test_rois_repeat_where_an_image_has_few_objects() -> None:
    batch = make_batch((20, 20, 60, 60))
    assert batch.rois.boxes.shape == (1, ROIS_PER_IMAGE, 4)
    assert batch.roi_masks.shape == (ROIS_PER_IMAGE, 3, IMAGE_SIZE, IMAGE_SIZE)
    assert batch.roi_labels.tolist() == [[3, 1, 0]] * ROIS_PER_IMAGE


def test_a_roi_may_be_the_box_that_the_detector_predicts_at_the_center() -> None:
    batch = make_batch((20, 20, 60, 60))
    cells = batch.rois.cells[0][batch.rois.detected[0]]
    assert 0 < len(cells) <= ROIS_PER_IMAGE
    assert cells.tolist() == [[9, 9]] * len(cells)


def test_masks_of_a_roi_are_its_own_and_those_of_the_others() -> None:
    batch = make_batch((20, 20, 60, 60), (40, 20, 80, 60))
    for (visible, parts, others), box in zip(batch.roi_masks, batch.roi_boxes):
        is_front = box[0] > 0.2
        assert visible.sum() == (40 * 40 if is_front else 20 * 40)
        assert (parts > 0).sum() == 40 * 40
        # Some of the others are left out.
        assert others.sum() in (0, 20 * 40 if is_front else 40 * 40)


def test_masks_are_sampled_inside_boxes_and_are_zero_outside_the_image() -> None:
    masks = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    masks[0, 0, 2:4, 4:8] = 3
    inside = sample_masks(masks, torch.tensor([[0.5, 0.25, 1.0, 0.75]]), 4)
    assert inside[0, 0].tolist() == [[3] * 4, [3] * 4, [0] * 4, [0] * 4]
    right_half_outside = torch.tensor([[0.5, 0.25, 1.5, 0.5]])
    assert sample_masks(masks, right_half_outside, 2)[0, 0].tolist() == [[3, 0]] * 2


def test_flipped_images_have_flipped_targets() -> None:
    example = square_example((20, 20, 60, 60))
    seeds = range(20)
    centers = set()
    for seed in seeds:
        batch = make_detector_batch([example], np.random.default_rng(seed))
        row, column = (batch.heatmap[0, 0] == 1).nonzero()[0].tolist()
        centers.add((row, column))
    assert {column for _, column in centers} <= {9, 29, 30}
    assert len(centers) == 2, "some images are mirrored, others are not"

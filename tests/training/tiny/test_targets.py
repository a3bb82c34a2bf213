"""Detector batches: the targets of drawn objects."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.models.tiny.spec import IMAGE_SIZE, MASK_SIZE, STRIDE
from maskwise.training.tiny.targets import (
    BOX_CELL_WEIGHT,
    ROIS_PER_IMAGE,
    DetectorBatch,
    make_detector_batch,
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
    assert len(batch.rois) == 1
    assert batch.rois[0].shape == (ROIS_PER_IMAGE, 4)
    assert batch.roi_masks.shape == (ROIS_PER_IMAGE, 3, MASK_SIZE, MASK_SIZE)
    assert batch.roi_labels.tolist() == [[3, 1, 0]] * ROIS_PER_IMAGE


def test_masks_of_a_roi_lie_inside_its_box() -> None:
    batch = make_batch((20, 20, 60, 60))
    visible, amodal, parts = batch.roi_masks[0]
    assert (visible <= amodal).all()
    assert ((parts > 0) == (amodal > 0)).all()
    # The box has a margin, so that the object does not fill it.
    assert 0.5 < amodal.float().mean() < 1


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

import numpy as np
import pytest
from scipy import ndimage

from maskwise.models.photo.morphology import dilate, find_depths


@pytest.mark.parametrize("density", [0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (40, 23), (30, 64)])
def test_masks_are_as_with_scipy(shape: tuple[int, int], density: float) -> None:
    mask = np.random.default_rng(3).random(shape) < density
    depths = ndimage.distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]
    assert np.allclose(find_depths(mask), depths)
    for steps in (1, 3):
        grown = ndimage.binary_dilation(mask, iterations=steps)
        assert (dilate(mask, steps) == grown).all()


def test_an_empty_mask_has_no_depth_and_does_not_grow() -> None:
    mask = np.zeros((4, 5), np.bool_)
    assert not find_depths(mask).any()
    assert not dilate(mask, 2).any()

"""Corruptions and crops: what they change, and that masks move with the pixels."""

import numpy as np
import pytest

from maskwise.errors import MaskwiseError
from maskwise.masks import Mask
from maskwise.probes.corruptions import CORRUPTIONS, corrupt
from maskwise.probes.crops import MOST_LOST, REMOVED, crop
from maskwise.schema import Region


def picture(height: int = 112, width: int = 150) -> np.ndarray:
    """Stripes, a gradient and a bright square: something for every corruption to change."""
    rows, columns = np.mgrid[:height, :width]
    pixels = np.stack(
        [rows * 5 % 256, columns * 4 % 256, (rows + columns) % 2 * 180], -1
    )
    pixels[10:20, 12:30] = (250, 240, 20)
    return pixels.astype(np.uint8)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_depends_on_its_random_numbers_only_and_grows(name: str) -> None:
    pixels = picture()
    distances = []
    for severity in (1, 5):
        first = corrupt(pixels, name, severity, np.random.default_rng(3))
        again = corrupt(pixels, name, severity, np.random.default_rng(3))
        assert (first.pixels == again.pixels).all()
        assert first.pixels.shape == pixels.shape
        assert first.pixels.dtype == np.uint8
        distances.append(np.abs(first.pixels - pixels.astype(int)).mean())
    assert 0 < distances[0] < distances[1]


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("size", [(1, 1), (2, 7), (300, 9)])
def test_images_of_any_size_are_corrupted(name: str, size: tuple[int, int]) -> None:
    changed = corrupt(picture(*size), name, 5, np.random.default_rng(0))
    assert changed.pixels.shape == (*size, 3)


def test_a_mask_moves_as_the_pixels_it_covers() -> None:
    """The image is the mask itself, so that the moved mask can be seen in the moved image."""
    mask = np.zeros((60, 60), np.bool_)
    mask[20:40, 15:45] = True
    pixels = np.repeat(mask[..., None], 3, -1).astype(np.uint8) * 255
    changed = corrupt(pixels, "elastic", 5, np.random.default_rng(1))
    assert changed.move_mask is not None
    moved = changed.move_mask(mask)
    assert (moved != mask).any()
    # Pixels are interpolated, masks are not: they may differ along the outline only.
    seen = changed.pixels[..., 0] > 127
    assert (moved != seen).sum() < 0.05 * mask.sum()


def test_only_the_elastic_change_moves_pixels() -> None:
    moving = [
        name
        for name in CORRUPTIONS
        if corrupt(picture(), name, 1, np.random.default_rng(0)).move_mask is not None
    ]
    assert moving == ["elastic"]


@pytest.mark.parametrize(("name", "severity"), [("rain", 1), ("fog", 0), ("fog", 6)])
def test_unknown_corruptions_and_severities_are_refused(
    name: str, severity: int
) -> None:
    with pytest.raises(MaskwiseError):
        corrupt(picture(), name, severity, np.random.default_rng(0))


def test_a_crop_keeps_the_regions_and_their_masks_fit_it() -> None:
    pixels = picture()
    square = np.zeros((112, 150), np.bool_)
    square[10:20, 12:30] = True
    region = Region(id="1", name="square", visible=Mask.from_dense(square))
    changed = crop(pixels, [region], 5, np.random.default_rng(0))
    assert changed is not None
    assert changed.move_mask is not None
    assert changed.pixels.shape == (84, 112, 3)
    moved = changed.move_mask(square)
    assert moved.sum() >= (1 - MOST_LOST) * square.sum()
    assert (changed.pixels[moved] == (250, 240, 20)).all()


def test_no_crop_where_every_window_would_cut_a_region_off() -> None:
    corners = []
    for number, corner in enumerate([(0, 0), (0, 149), (111, 0), (111, 149)]):
        mask = np.zeros((112, 150), np.bool_)
        mask[corner] = True
        corners.append(
            Region(id=str(number), name="dot", visible=Mask.from_dense(mask))
        )
    assert crop(picture(), corners, 1, np.random.default_rng(0)) is None
    assert REMOVED[0] > 0

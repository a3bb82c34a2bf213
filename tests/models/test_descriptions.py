import numpy as np
import pytest

from maskwise.models.descriptions import MEASURES, Objects, describe
from maskwise.models.tiny import KINDS, MOST_PARTS, no_objects


def two_squares() -> Objects:
    """A square of 4 x 4 pixels in a frame of 8, a quarter of it behind another of the same size to the lower right."""
    amodal = np.zeros((2, 8, 8), bool)
    amodal[0, 0:4, 0:4] = True
    amodal[1, 2:6, 2:6] = True
    visible = amodal.copy()
    visible[0] &= ~amodal[1]
    part = amodal.astype(np.uint8)
    part[0, 2:4, 0:4] = 2
    return Objects(visible, amodal, part, np.eye(2, sum(KINDS), dtype=np.float32))


def test_who_hides_whom_and_where_they_lie() -> None:
    single, pair = describe(two_squares(), MOST_PARTS)
    hides, hidden_by, right, below, overlap, in_front = pair[1, 0]
    assert (hides, hidden_by, overlap, in_front) == (0.25, 0.0, 0.25, 1.0)
    assert right > 0
    assert below > 0
    measures = single[0, sum(KINDS) :]
    assert measures[2:8].tolist() == [0.25, 0.25, 0, 0, 0.5, 0.5]
    assert measures[8:11] == pytest.approx([0.5, (12 / 64) ** 0.5, 0.25])
    # The first part is seen whole, the second, below, lacks half of its eight pixels.
    assert measures[MEASURES:][:2] == pytest.approx([(8 / 64) ** 0.5, (4 / 64) ** 0.5])
    assert measures[MEASURES + MOST_PARTS :][:2] == pytest.approx([0, 0.5])


def test_nothing_found_is_described_by_nothing() -> None:
    single, pair = describe(no_objects(), MOST_PARTS)
    assert single.shape == (0, sum(KINDS) + MEASURES + 2 * MOST_PARTS)
    assert pair.shape == (0, 0, 6)

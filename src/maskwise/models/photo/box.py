"""An axis-parallel rectangle in an image."""

from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray

MIN_BOX_AREA = 1e-6
"""Area of an empty box, so that shares of it can be computed."""


class Box(NamedTuple):
    """In pixels of the image, from its top left corner; right and bottom lie just outside the box."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Negative where the sides are reversed."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Negative where the sides are reversed."""
        return self.bottom - self.top

    @property
    def center_x(self) -> float:
        """Halfway between left and right."""
        return (self.left + self.right) / 2

    @property
    def center_y(self) -> float:
        """Halfway between top and bottom."""
        return (self.top + self.bottom) / 2

    @property
    def area(self) -> float:
        """Pixels; never 0."""
        return max(MIN_BOX_AREA, self.width * self.height)


def shared_width(first: Box, second: Box) -> float:
    """Width of the columns that two boxes share; negative: the gap between them."""
    return min(first.right, second.right) - max(first.left, second.left)


def shared_height(first: Box, second: Box) -> float:
    """Height of the rows that two boxes share; negative: the gap between them."""
    return min(first.bottom, second.bottom) - max(first.top, second.top)


def mask_box(mask: BoolArray) -> Box | None:
    """The box of a mask, bool [height, width]; None if it is empty."""
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    if not len(rows):
        return None
    return Box(
        left=float(columns[0]),
        top=float(rows[0]),
        right=float(columns[-1] + 1),
        bottom=float(rows[-1] + 1),
    )

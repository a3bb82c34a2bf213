"""Refine a mask by clicks: the interface that a promptable segmentation model fills in."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from PIL import Image

from maskwise.masks import Mask


class Click(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A click in pixels, from the upper left corner of the image. positive: the point belongs to the object."""

    x: float
    y: float
    positive: bool = True


class Refiner(Protocol):
    """A promptable segmentation model."""

    def refine(
        self, image: Image.Image, mask: Mask | None, points: Sequence[Click]
    ) -> Mask:
        """The mask of the object that the clicks describe, starting from `mask` where it is given."""
        ...

"""The part of an image around an object, at the resolution of the completion network."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, UInt8Array
from maskwise.models.photo.box import Box, mask_box

CROP_SIZE = 96
"""Side of crops of the image and of masks, fixed by the trained network."""

FEATURE_SIZE = 24
"""Side of crops of the image embedding."""

CONTEXT = 0.5
"""What is added to a box on every side, relative to its longer side."""


class Window(Box):
    """A box whose content is cropped to a square: its sides are scaled independently."""

    @classmethod
    def of(cls, mask: BoolArray) -> "Window":
        """The box of a mask (bool [height, width], not empty)."""
        box = mask_box(mask)
        assert box is not None, "an empty mask has no box"
        return cls(*box)

    @classmethod
    def around(cls, mask: BoolArray, context: float = CONTEXT) -> "Window":
        """The box of a mask with its context, inside the image."""
        return cls.of(mask).expand(context).clip(mask.shape)

    def expand(self, context: float) -> "Window":
        """A larger window, by `context` times the longer side on every side."""
        margin = context * max(self.width, self.height)
        return Window(
            left=self.left - margin,
            top=self.top - margin,
            right=self.right + margin,
            bottom=self.bottom + margin,
        )

    def clip(self, shape: tuple[int, ...]) -> "Window":
        """The part inside an image of this shape (height, width), at least one pixel."""
        height, width = shape[:2]
        left = max(0.0, self.left)
        top = max(0.0, self.top)
        right = max(left + 1, min(width, self.right))
        bottom = max(top + 1, min(height, self.bottom))
        return Window(float(left), float(top), float(right), float(bottom))

    def rescale(self, shape: tuple[int, ...], other: tuple[int, ...]) -> "Window":
        """The same part of an image of shape (height, width) when that image has another shape."""
        scale_y = other[0] / shape[0]
        scale_x = other[1] / shape[1]
        return Window(
            left=self.left * scale_x,
            top=self.top * scale_y,
            right=self.right * scale_x,
            bottom=self.bottom * scale_y,
        )

    def intersect(self, other: "Window") -> "Window":
        """What two windows that meet have in common."""
        return Window(
            left=max(self.left, other.left),
            top=max(self.top, other.top),
            right=min(self.right, other.right),
            bottom=min(self.bottom, other.bottom),
        )

    @property
    def slices(self) -> tuple[slice, slice]:
        """The rows and columns of an array that it spans, rounded."""
        rows = slice(round(self.top), round(self.bottom))
        columns = slice(round(self.left), round(self.right))
        return rows, columns

    def crop(self, image: Image.Image, size: int = CROP_SIZE) -> UInt8Array:
        """uint8 [size, size] or [size, size, 3]."""
        resized = image.resize((size, size), Image.Resampling.BILINEAR, box=self)
        return np.asarray(resized)

    def crop_mask(self, mask: BoolArray, size: int = CROP_SIZE) -> BoolArray:
        """bool [size, size]."""
        gray = Image.fromarray(mask.astype(np.uint8) * 255)
        return self.crop(gray, size) >= 128  # half of white

    def crop_features(
        self,
        features: Float32Array | NDArray[np.float16],
        longest_side: float,
        size: int = FEATURE_SIZE,
    ) -> Float32Array:
        """float32 [channels, size, size] of a feature map [channels, cells, cells].

        longest_side: of the image, which fills the map.
        """
        cells = features.shape[-1]
        scale = cells / longest_side
        rows = _interpolation(self.top * scale, self.bottom * scale, cells, size)
        columns = _interpolation(self.left * scale, self.right * scale, cells, size)
        return rows @ features.astype(np.float32) @ columns.T

    def paste(self, crop: Float32Array, shape: tuple[int, ...]) -> Float32Array:
        """A crop float32 [CROP_SIZE, CROP_SIZE] in an image of this shape; 0 outside the window."""
        left, top, right, bottom = (round(side) for side in self)
        width = max(1, right - left)
        height = max(1, bottom - top)
        resized = Image.fromarray(crop).resize(
            (width, height), Image.Resampling.BILINEAR
        )
        pasted = np.zeros(shape, np.float32)
        # A window of one pixel at the border may reach beyond the image.
        inside = np.asarray(resized)[: shape[0] - top, : shape[1] - left]
        pasted[top : top + height, left : left + width] = inside
        return pasted


def _interpolation(start: float, stop: float, cells: int, size: int) -> Float32Array:
    """float32 [size, cells]: bilinear weights of the cells at `size` places from start to stop."""
    # The center of a cell is half a cell from its start.
    fractions = (np.arange(size) + 0.5) / size
    places = start + fractions * (stop - start) - 0.5
    places = places.clip(0, cells - 1)
    distance = np.abs(places[:, None] - np.arange(cells))
    weights: Float32Array = np.maximum(0, 1 - distance).astype(np.float32)
    return weights

"""The part of an image around an object, at the resolution of the completion network."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, UInt8Array

CROP_SIZE = 96
"""Side of crops of the image and of masks."""

FEATURE_SIZE = 24
"""Side of crops of the image embedding."""

CONTEXT = 0.5
"""What is added to a box on every side, relative to its longer side."""


class Window(NamedTuple):
    """A rectangle of an image, in pixels. A crop of it is a square: its sides are scaled independently."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of(cls, mask: BoolArray) -> "Window":
        """The box of a mask (bool [height, width], not empty)."""
        rows = np.flatnonzero(mask.any(1))
        columns = np.flatnonzero(mask.any(0))
        return cls(
            float(columns[0]),
            float(rows[0]),
            float(columns[-1] + 1),
            float(rows[-1] + 1),
        )

    @classmethod
    def around(cls, mask: BoolArray, context: float = CONTEXT) -> "Window":
        """The box of a mask with its context, inside the image."""
        return cls.of(mask).expand(context).clip(mask.shape)

    def expand(self, context: float) -> "Window":
        """A larger window, by `context` times the longer side on every side."""
        margin = context * max(self.right - self.left, self.bottom - self.top)
        return Window(
            self.left - margin,
            self.top - margin,
            self.right + margin,
            self.bottom + margin,
        )

    def clip(self, shape: tuple[int, ...]) -> "Window":
        """The part inside an image of this shape (height, width)."""
        left = max(0.0, self.left)
        top = max(0.0, self.top)
        return Window(
            float(left),
            float(top),
            float(max(left + 1, min(shape[1], self.right))),
            float(max(top + 1, min(shape[0], self.bottom))),
        )

    def rescale(self, shape: tuple[int, ...], other: tuple[int, ...]) -> "Window":
        """The same part of an image of shape (height, width) when that image has another shape."""
        down = other[0] / shape[0]
        across = other[1] / shape[1]
        return Window(
            self.left * across, self.top * down, self.right * across, self.bottom * down
        )

    def intersect(self, other: "Window") -> "Window":
        """What two windows that meet have in common."""
        return Window(
            max(self.left, other.left),
            max(self.top, other.top),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        )

    @property
    def slices(self) -> tuple[slice, slice]:
        """The rows and columns of an array that it spans, rounded."""
        return slice(round(self.top), round(self.bottom)), slice(
            round(self.left), round(self.right)
        )

    def crop(self, image: Image.Image, size: int = CROP_SIZE) -> UInt8Array:
        """uint8 [size, size] or [size, size, 3]."""
        return np.asarray(
            image.resize((size, size), Image.Resampling.BILINEAR, box=self)
        )

    def crop_mask(self, mask: BoolArray, size: int = CROP_SIZE) -> BoolArray:
        """bool [size, size]."""
        return self.crop(Image.fromarray(mask.astype(np.uint8) * 255), size) >= 128

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
        right = max(right, left + 1)
        bottom = max(bottom, top + 1)
        resized = Image.fromarray(crop).resize(
            (right - left, bottom - top), Image.Resampling.BILINEAR
        )
        pasted = np.zeros(shape, np.float32)
        pasted[top:bottom, left:right] = np.asarray(resized)[
            : shape[0] - top, : shape[1] - left
        ]
        return pasted


def _interpolation(start: float, stop: float, cells: int, size: int) -> Float32Array:
    """float32 [size, cells]: bilinear weights of the cells at `size` places from start to stop."""
    places = start + (np.arange(size) + 0.5) / size * (stop - start) - 0.5
    places = places.clip(0, cells - 1)
    distance = np.abs(places[:, None] - np.arange(cells))
    weights: Float32Array = np.maximum(0, 1 - distance).astype(np.float32)
    return weights

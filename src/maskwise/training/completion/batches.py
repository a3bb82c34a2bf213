"""Examples for the completion network: an object and one of its neighbours, with augmentation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from maskwise.arrays import BoolArray, Float32Array
from maskwise.models.convex_hull import fill_hull
from maskwise.models.photo.completion import (
    CONTACT,
    find_touching,
    stack_crops,
    stack_neighbours,
)
from maskwise.models.photo.sam import FEATURE_CHANNELS
from maskwise.models.photo.window import CONTEXT, FEATURE_SIZE, Window
from maskwise.training.completion.composites import STORED_SIZE, ObjectCrop
from maskwise.training.completion.neighbours import draw_neighbour

ENCODED_SHARE = 0.6
"""Share of objects with MobileSAM's features in a batch."""

OCCLUDED_SHARE = 0.6
"""Share of occluded objects among them."""

MIN_RATE = 0.02
"""An object counts as occluded from this occlusion rate on."""

TRUNCATED_SHARE = 0.3
"""How often the image is cut off at a line through the object: objects at the image border are truncated."""


TRUNCATED_DEPTH = (0.02, 0.4)
"""Least and greatest share of the object's box that is cut off."""

MIN_TRUNCATED_AREA = 0.5
"""Share of the visible mask that has to be left: of less, the network could not tell the shape."""

WINDOW_JITTER = 0.1
"""Largest move of a side of the window, as a share of its length: the boxes of proposals are inaccurate too."""

CONTRAST = (0.6, 1.4)
BRIGHTNESS = 0.2
"""Random changes of light, for pixels in -1..1: brightness for each channel, so that color casts occur too."""


class CompletionExample(NamedTuple):
    """An object with n neighbours. crops: float32 [n, CROP_CHANNELS, s, s]; features: float32 [256, s/4, s/4]; amodal:
    bool [s, s].
    """

    crops: Float32Array
    features: Float32Array
    amodal: BoolArray


CompletionBatch = tuple[Tensor, Tensor, Tensor]
"""Examples with one neighbour each, as tensors whose first axis are the examples: crops [b, CROP_CHANNELS, s, s],
features [b, 256, s/4, s/4], and amodal masks [b, s, s], 0 or 1.
"""


class CropPool:
    """The objects to draw from. encoded: with MobileSAM's features. covered: pairs without, see covered_pairs.py."""

    def __init__(
        self, encoded: Sequence[ObjectCrop], covered: Sequence[ObjectCrop]
    ) -> None:
        self.occluded = [crop for crop in encoded if crop.rate >= MIN_RATE]
        self.complete = [crop for crop in encoded if crop.rate < MIN_RATE]
        self.covered = list(covered)

    def draw(self, random: np.random.Generator) -> ObjectCrop:
        """One object."""
        choices = self.complete
        if random.random() < OCCLUDED_SHARE or not self.complete:
            choices = self.occluded
        if not (random.random() < ENCODED_SHARE or not self.covered):
            choices = self.covered
        return choices[int(random.integers(len(choices)))]


def make_batch(
    pool: CropPool, size: int, random: np.random.Generator
) -> CompletionBatch:
    """A batch of augmented examples."""
    examples = [augmented_example(pool.draw(random), random) for _ in range(size)]
    # An augmented example has one neighbour.
    crops = np.stack([example.crops[0] for example in examples])
    features = np.stack([example.features for example in examples])
    amodal = np.stack([example.amodal for example in examples])
    return (
        torch.from_numpy(crops.astype(np.float32)),
        torch.from_numpy(features.astype(np.float32)),
        torch.from_numpy(amodal.astype(np.float32)),
    )


def plain_example(crop: ObjectCrop) -> CompletionExample:
    """An object with all its neighbours, as inference sees it when every annotated object is found."""
    window = network_window(crop, crop.visible)
    labels = [
        crop.neighbours == number for number in np.unique(crop.neighbours) if number
    ]
    shown = window.crop_mask(crop.visible)
    cropped = [window.crop_mask(label) for label in labels]
    near = [cropped[place] for place in find_touching(shown, fill_hull(shown), cropped)]
    return _example(crop, window, shown, stack_neighbours(shown, near))


def augmented_example(
    crop: ObjectCrop, random: np.random.Generator
) -> CompletionExample:
    """One neighbour, another window, an inaccurate visible mask, other light, perhaps mirrored, perhaps truncated."""
    visible = _inaccurate(crop.visible, random)
    neighbour = draw_neighbour(crop, random)
    frame = _frame(visible, neighbour, random)
    window = _jitter(network_window(crop, visible), random).intersect(frame)
    shown = window.crop_mask(visible)
    beside = window.crop_mask(neighbour) & ~shown
    stacked, features, amodal = _example(crop, window, shown, beside[None])
    contrast = random.uniform(*CONTRAST)
    brightness = random.uniform(-BRIGHTNESS, BRIGHTNESS, (3, 1, 1))
    stacked[:, :3] = (stacked[:, :3] * contrast + brightness).clip(-1, 1)
    if random.random() < 0.5:
        stacked = stacked[..., ::-1]
        features = features[..., ::-1]
        amodal = amodal[..., ::-1]
    return CompletionExample(stacked, features, amodal)


def network_window(crop: ObjectCrop, visible: BoolArray) -> Window:
    """The window that inference uses, in pixels of the crop.

    The crop's sides are scaled independently, so that the context is measured in pixels of the image.
    """
    left, top, right, bottom = crop.window.tolist()
    across = (right - left) / STORED_SIZE
    down = (bottom - top) / STORED_SIZE
    box = Window.of(visible)
    whole = Window(
        box.left * across, box.top * down, box.right * across, box.bottom * down
    ).expand(CONTEXT)
    return Window(
        whole.left / across, whole.top / down, whole.right / across, whole.bottom / down
    ).clip(visible.shape)


def _example(
    crop: ObjectCrop, window: Window, visible: BoolArray, neighbours: BoolArray
) -> CompletionExample:
    pixels = window.crop(Image.fromarray(crop.pixels))
    stacked = stack_crops(pixels, visible, fill_hull(visible), neighbours)
    features = np.zeros((FEATURE_CHANNELS, FEATURE_SIZE, FEATURE_SIZE), np.float32)
    if len(crop.features):
        features = window.crop_features(crop.features, STORED_SIZE)
    return CompletionExample(stacked, features, window.crop_mask(crop.amodal) | visible)


def _frame(
    visible: BoolArray, neighbour: BoolArray, random: np.random.Generator
) -> Window:
    """The whole crop, or what is left of it when a line through the object cuts it off.

    The line leaves at least half of the object and its contact with the neighbour.
    """
    whole = Window(0, 0, STORED_SIZE, STORED_SIZE)
    if random.random() >= TRUNCATED_SHARE:
        return whole
    box = Window.of(visible)
    place = int(random.integers(4))
    share = random.uniform(*TRUNCATED_DEPTH)
    # Sides 0 and 2 are left and right, 1 and 3 top and bottom.
    length = box.right - box.left if place % 2 == 0 else box.bottom - box.top
    depth = length * share
    sides = list(whole)
    sides[place] = box[place] + depth if place < 2 else box[place] - depth
    frame = Window(*sides)
    kept = visible[frame.slices]
    contact = ndimage.binary_dilation(visible, iterations=CONTACT) & neighbour
    loses_contact = contact.any() and not contact[frame.slices].any()
    if kept.sum() < MIN_TRUNCATED_AREA * visible.sum() or loses_contact:
        return whole
    return frame


def _jitter(window: Window, random: np.random.Generator) -> Window:
    """The window with every side moved by up to a tenth of its length."""
    width = window.right - window.left
    height = window.bottom - window.top
    left, top, right, bottom = random.uniform(-WINDOW_JITTER, WINDOW_JITTER, 4)
    return Window(
        window.left + left * width,
        window.top + top * height,
        window.right + right * width,
        window.bottom + bottom * height,
    ).clip((STORED_SIZE, STORED_SIZE))


def _inaccurate(mask: BoolArray, random: np.random.Generator) -> BoolArray:
    """A third of the masks one pixel narrower, a third one wider; never empty."""
    change = random.integers(3)
    if change == 0:
        return mask
    grow = ndimage.binary_dilation if change == 1 else ndimage.binary_erosion
    changed: BoolArray = grow(mask)
    return changed if changed.any() else mask

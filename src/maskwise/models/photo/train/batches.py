"""Examples for the completion network: windows in the crops of objects, with augmentation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from maskwise.arrays import BoolArray, Float32Array
from maskwise.models.photo.completion import stack_crop
from maskwise.models.photo.sam import FEATURE_CHANNELS
from maskwise.models.photo.train.composites import STORED_SIZE, ObjectCrop
from maskwise.models.photo.window import CONTEXT, FEATURE_SIZE, Window

OCCLUDED_SHARE = 0.65
"""Share of occluded objects in a batch."""

MIN_RATE = 0.02
"""An object counts as occluded from this occlusion rate on."""

OTHERS_DROPOUT = 0.5
"""How often the network is not told where other objects are: at inference they may not be known."""


class CompletionExample(NamedTuple):
    """crop: float32 [CROP_CHANNELS, s, s]; features: float32 [256, s/4, s/4]; amodal: bool [s, s]."""

    crop: Float32Array
    features: Float32Array
    amodal: BoolArray


class CompletionBatch(NamedTuple):
    """The same as tensors, with the examples as first axis."""

    crop: Tensor
    features: Tensor
    amodal: Tensor


def make_batch(
    occluded: Sequence[ObjectCrop], complete: Sequence[ObjectCrop], size: int, random: np.random.Generator
) -> CompletionBatch:
    """A batch of augmented examples, OCCLUDED_SHARE of them occluded."""
    examples = []
    for _ in range(size):
        choices = occluded if random.random() < OCCLUDED_SHARE or not complete else complete
        examples.append(augmented_example(choices[int(random.integers(len(choices)))], random))
    return stack_examples(examples)


def plain_example(crop: ObjectCrop) -> CompletionExample:
    """An example as inference sees it, without other objects."""
    return _example(crop, crop.visible, None, network_window(crop, crop.visible))


def augmented_example(crop: ObjectCrop, random: np.random.Generator) -> CompletionExample:
    """Another window, an inaccurate visible mask, other light, perhaps mirrored, perhaps without other objects."""
    visible = _inaccurate(crop.visible, random)
    others = None if random.random() < OTHERS_DROPOUT else crop.others
    example = _example(crop, visible, others, _jitter(network_window(crop, visible), random))
    stacked, features, amodal = example
    stacked[:3] = stacked[:3] * random.uniform(0.7, 1.3) + random.uniform(-0.2, 0.2, (3, 1, 1))
    stacked[:3] = stacked[:3].clip(-1, 1)
    if random.random() < 0.5:
        return CompletionExample(stacked[..., ::-1], features[..., ::-1], amodal[..., ::-1])
    return example


def network_window(crop: ObjectCrop, visible: BoolArray) -> Window:
    """The window that inference uses, in pixels of the crop.

    The crop's sides are scaled independently, so that the context is measured in pixels of the image.
    """
    left, top, right, bottom = crop.window.tolist()
    across, down = (right - left) / STORED_SIZE, (bottom - top) / STORED_SIZE
    box = Window.of(visible)
    whole = Window(box.left * across, box.top * down, box.right * across, box.bottom * down).expand(CONTEXT)
    return Window(whole.left / across, whole.top / down, whole.right / across, whole.bottom / down).clip(
        visible.shape
    )


def stack_examples(examples: Sequence[CompletionExample]) -> CompletionBatch:
    """Tensors of examples."""
    crops, features, amodal = (np.stack(arrays).astype(np.float32) for arrays in zip(*examples))
    return CompletionBatch(*(torch.from_numpy(array) for array in (crops, features, amodal)))


def _example(
    crop: ObjectCrop, visible: BoolArray, others: BoolArray | None, window: Window
) -> CompletionExample:
    stacked = stack_crop(window, Image.fromarray(crop.pixels), visible, others)
    features = np.zeros((FEATURE_CHANNELS, FEATURE_SIZE, FEATURE_SIZE), np.float32)
    if len(crop.features):
        features = window.crop_features(crop.features, STORED_SIZE)
    return CompletionExample(stacked, features, window.crop_mask(crop.amodal) | (stacked[3] > 0))


def _jitter(window: Window, random: np.random.Generator) -> Window:
    """The window with every side moved by up to a tenth of its length."""
    width, height = window.right - window.left, window.bottom - window.top
    left, top, right, bottom = random.uniform(-0.1, 0.1, 4)
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

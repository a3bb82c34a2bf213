"""The objects of one image, as the detector found them or as the ground truth has them."""

from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, Float32Array, UInt8Array
from maskwise.models.tiny.spec import ATTRIBUTE_SIZES, IMAGE_SIZE


class DetectedObjects(NamedTuple):
    """n objects in an image of s x s pixels. visible, amodal: bool [n, s, s]. part: uint8 [n, s, s], number of the part
    at each pixel of the amodal mask, from 1; 0 outside. attributes: float32 [n, sum(ATTRIBUTE_SIZES)], probabilities of
    categories, colors and materials, concatenated.
    """

    visible: BoolArray
    amodal: BoolArray
    part: UInt8Array
    attributes: Float32Array

    def mask(self, index: int, part: int) -> BoolArray:
        """The amodal mask of object `index` (part 0) or of one of its parts."""
        mask: BoolArray = self.amodal[index] if part == 0 else self.part[index] == part
        return mask


def no_objects() -> DetectedObjects:
    """An image in which nothing was detected."""
    masks = np.zeros((0, IMAGE_SIZE, IMAGE_SIZE), np.bool_)
    attributes = np.zeros((0, sum(ATTRIBUTE_SIZES)), np.float32)
    return DetectedObjects(masks, masks, masks.astype(np.uint8), attributes)


def occlusion_matrix(objects: DetectedObjects) -> Float32Array:
    """float32 [n, n]: the fraction of object j's amodal mask where object i is visible; the diagonal is 0."""
    visible = flatten(objects.visible)
    amodal = flatten(objects.amodal)
    areas = np.maximum(amodal.sum(1), 1)  # 1 in place of 0, to divide by
    occlusion: Float32Array = visible @ amodal.T / areas[None]
    # What is visible of an object does not hide it.
    np.fill_diagonal(occlusion, 0)
    return occlusion


def flatten(masks: BoolArray) -> Float32Array:
    """Masks [n, s, s] as float32 rows [n, s * s] of 0 and 1."""
    return masks.reshape(len(masks), masks.shape[1] * masks.shape[2]).astype(np.float32)

"""Amodal completion: the whole shape of an object from its visible mask and the image around it.

Something has to be in front of what is hidden. A small network sees a window around the object once for every neighbour
that touches it: the pixels, the visible mask and its convex hull, the neighbour, and MobileSAM's features of that
window. It says whether the neighbour is in front of the object, and where the object continues behind it. What no
neighbour covers is one more neighbour, since not everything in front is found. The visible mask is always inside the
amodal one.
"""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from PIL import Image
from scipy import ndimage

from maskwise.arrays import BoolArray, Float32Array, UInt8Array
from maskwise.models.convex_hull import fill_hull
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.sam import ImageEmbedding
from maskwise.models.photo.window import Window

BUNDLED_NETWORK = Path(str(files("maskwise.models.photo") / "weights" / "completion.onnx"))

CROP_CHANNELS = 6
"""Red, green, blue, visible mask, its convex hull, neighbour."""

MIN_FRONT = 0.65
"""A neighbour with a lower probability is taken to be behind or beside the object."""

HULL_WEIGHT = 0.4
"""Share of the convex hull in the shape of an object, beside the network's."""

MIN_PROBABILITY = 0.5
"""Of hidden pixels. The two values above were chosen on held-out training images: the best IoU of the occluded region
at less than 2 % change of area of complete objects.
"""

CONTACT = 2
"""Greatest distance in pixels of the crop between an object and a neighbour that touches it."""


class CompletionOutput(NamedTuple):
    """For n neighbours. amodal: float32 [n, CROP_SIZE, CROP_SIZE] in 0..1, the object, which counts inside the
    neighbour only. front: float32 [n] in 0..1, the probability that the neighbour hides a part of the object.
    """

    amodal: Float32Array
    front: Float32Array


class CompletionNetwork(Protocol):
    """The network, in any runtime."""

    def complete(self, crops: Float32Array, features: Float32Array) -> CompletionOutput:
        """crops: [n, CROP_CHANNELS, CROP_SIZE, CROP_SIZE]; features: [256, FEATURE_SIZE, FEATURE_SIZE]."""


class OnnxCompletionNetwork:
    """The network of an ONNX file."""

    def __init__(self, path: Path = BUNDLED_NETWORK, *, threads: int | None = None) -> None:
        self.session = open_session(path, threads=threads)
        self.hash = hashlib.sha256(path.read_bytes()).hexdigest()

    def complete(self, crops: Float32Array, features: Float32Array) -> CompletionOutput:
        """See CompletionNetwork."""
        return CompletionOutput(*self.session.run(None, {"crop": crops, "features": features[None]}))


class CompletedMask(NamedTuple):
    """amodal: bool [height, width], contains the visible mask; rate: the occlusion rate, the hidden share of it."""

    amodal: BoolArray
    rate: float


def complete_mask(
    network: CompletionNetwork,
    image: Image.Image,
    embedding: ImageEmbedding,
    visible: BoolArray,
    neighbours: Sequence[BoolArray] = (),
    *,
    min_front: float = MIN_FRONT,
) -> CompletedMask:
    """Complete one object.

    visible: bool [height, width] of the image. neighbours: bool [h, w] of the whole image at any resolution; they may
    overlap and need not touch the object. min_front: lowest probability with which a neighbour is in front.
    """
    if not visible.any():
        return CompletedMask(visible, 0.0)
    window = Window.around(visible)
    features = window.crop_features(embedding.features[0], max(embedding.size))
    shown = window.crop_mask(visible)
    hull = fill_hull(shown)
    cropped = [window.rescale(visible.shape, one.shape).crop_mask(one) for one in neighbours]
    near = select_neighbours(shown, hull, cropped)
    output = network.complete(stack_crops(window.crop(image), shown, hull, near), features)
    hidden = window.paste(merge_neighbours(output, near, hull, min_front), visible.shape) > MIN_PROBABILITY
    amodal = visible | hidden
    return CompletedMask(amodal, 1 - float(visible.sum() / amodal.sum()))


def select_neighbours(visible: BoolArray, hull: BoolArray, neighbours: Sequence[BoolArray]) -> BoolArray:
    """bool [n, s, s]: those of the neighbours, bool [s, s] each, that touch the object or reach into its hull, without
    the object itself, and as the last one everything that none of them covers.
    """
    place = ndimage.binary_dilation(visible, iterations=CONTACT) | hull
    outside = [one & ~visible for one in neighbours]
    near = [one for one in outside if (one & place).any()]
    rest = ~np.any([visible, *near], 0)
    return np.stack([*near, rest])


def stack_crops(
    pixels: UInt8Array, visible: BoolArray, hull: BoolArray, neighbours: BoolArray
) -> Float32Array:
    """float32 [n, CROP_CHANNELS, s, s], one crop per neighbour: colours in -1..1, masks 0 or 1.

    pixels: uint8 [s, s, 3]; visible, hull: bool [s, s]; neighbours: bool [n, s, s].
    """
    colours = pixels.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
    shared = np.concatenate([colours, np.stack([visible, hull]).astype(np.float32)])
    repeated = np.broadcast_to(shared, (len(neighbours), *shared.shape))
    return np.concatenate([repeated, neighbours[:, None].astype(np.float32)], 1)


def merge_neighbours(
    output: CompletionOutput, neighbours: BoolArray, hull: BoolArray, min_front: float = MIN_FRONT
) -> Float32Array:
    """float32 [s, s]: the probability that a pixel belongs to the object but is hidden; the mean over the neighbours
    that cover it, of which those in front tell the shape and the others say 0.

    neighbours: bool [n, s, s]; hull: bool [s, s] of the visible mask.
    """
    shape = (1 - HULL_WEIGHT) * output.amodal + HULL_WEIGHT * hull
    front = neighbours & (output.front >= min_front)[:, None, None]
    hidden: Float32Array = np.where(front, shape, 0).sum(0) / neighbours.sum(0).clip(min=1)
    return hidden.astype(np.float32)

"""Amodal completion: the whole shape of an object from its visible mask and the image around it.

A small network sees a window around the object: the pixels, the visible mask and its convex hull, what else was found
there, and MobileSAM's features of that window. It gives the amodal mask and the occlusion rate. An object whose rate
is low is left as it is. The visible mask is always inside the amodal one.

Where other objects are known, the network sees the window twice, without and with them, and the mean of both counts.
Hidden pixels then lie on other objects: something has to be in front of what is hidden.
"""

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array
from maskwise.models.convex_hull import fill_hull
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.sam import ImageEmbedding
from maskwise.models.photo.window import Window

BUNDLED_NETWORK = Path(str(files("maskwise.models.photo") / "weights" / "completion.onnx"))

CROP_CHANNELS = 6
"""Red, green, blue, visible mask, its convex hull, other objects."""

MIN_RATE = 0.08
"""An object with a lower predicted occlusion rate is taken to be completely visible."""

MIN_PROBABILITY = 0.5


class CompletionOutput(NamedTuple):
    """amodal: float32 [CROP_SIZE, CROP_SIZE] in 0..1; rate: predicted occlusion rate in 0..1."""

    amodal: Float32Array
    rate: float


class CompletionNetwork(Protocol):
    """The network, in any runtime."""

    def complete(self, crop: Float32Array, features: Float32Array) -> CompletionOutput:
        """crop: [CROP_CHANNELS, CROP_SIZE, CROP_SIZE]; features: [256, FEATURE_SIZE, FEATURE_SIZE]."""


class OnnxCompletionNetwork:
    """The network of an ONNX file."""

    def __init__(self, path: Path = BUNDLED_NETWORK, *, threads: int | None = None) -> None:
        self.session = open_session(path, threads=threads)
        self.hash = hashlib.sha256(path.read_bytes()).hexdigest()

    def complete(self, crop: Float32Array, features: Float32Array) -> CompletionOutput:
        """See CompletionNetwork."""
        amodal, rate = self.session.run(None, {"crop": crop[None], "features": features[None]})
        return CompletionOutput(amodal[0], float(rate[0]))


class CompletedMask(NamedTuple):
    """amodal: bool [height, width], contains the visible mask; rate: the occlusion rate that the network predicts."""

    amodal: BoolArray
    rate: float


def complete_mask(
    network: CompletionNetwork,
    image: Image.Image,
    embedding: ImageEmbedding,
    visible: BoolArray,
    others: BoolArray | None = None,
) -> CompletedMask:
    """Complete one object.

    visible: bool [height, width] of the image. others: pixels of other objects, where known.
    """
    if not visible.any():
        return CompletedMask(visible, 0.0)
    window = Window.around(visible)
    features = window.crop_features(embedding.features[0], max(embedding.size))
    given = [None] if others is None else [None, others]
    outputs = [network.complete(stack_crop(window, image, visible, one), features) for one in given]
    rate = float(np.mean([output.rate for output in outputs]))
    if rate < MIN_RATE:
        return CompletedMask(visible, rate)
    amodal: Float32Array = np.stack([output.amodal for output in outputs]).mean(0)
    hidden = window.paste(amodal, visible.shape) > MIN_PROBABILITY
    return CompletedMask(visible | (hidden if others is None else hidden & others), rate)


def stack_crop(
    window: Window, image: Image.Image, visible: BoolArray, others: BoolArray | None
) -> Float32Array:
    """float32 [CROP_CHANNELS, CROP_SIZE, CROP_SIZE]: colours in -1..1, masks 0 or 1."""
    colours = window.crop(image).transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
    shown = window.crop_mask(visible)
    outside = np.zeros_like(shown) if others is None else window.crop_mask(others & ~visible)
    masks = np.stack([shown, fill_hull(shown), outside]).astype(np.float32)
    return np.concatenate([colours, masks])

"""Amodal completion: the whole shape of an object from its visible mask and the image around it.

Something has to be in front of what is hidden. A small network sees a window around the object once for every neighbour
that touches it: the pixels, the visible mask and its convex hull, the neighbour, and MobileSAM's features of that
window. It says whether the neighbour is in front of the object, and where the object continues behind it. What no
neighbour covers is one more neighbour, since not everything in front is found. The visible mask is always inside the
amodal one.

Of two objects that touch, one is in front: the network is also asked whether the object hides the neighbour, and the
likelier answer counts (as the order in Zhan et al. 2020, Self-Supervised Scene De-occlusion).
"""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, UInt8Array
from maskwise.models.convex_hull import fill_hull
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.morphology import dilate
from maskwise.models.photo.sam import ImageEmbedding
from maskwise.models.photo.window import Window

BUNDLED_NETWORK = Path(
    str(files("maskwise.models.photo") / "weights" / "completion.onnx")
)

CROP_CHANNELS = 6
"""Red, green, blue, visible mask, its convex hull, neighbour."""

MIN_ORDER = 0.6
"""A neighbour is in front if this is the probability of that order, of the two that are possible, or more."""

MIN_FRONT = 0.2
"""Lowest probability with which what no neighbour covers hides a part of the object."""

HULL_WEIGHT = 0.4
"""Share of the convex hull in the shape of an object, beside the network's."""

MIN_PROBABILITY = 0.5
"""Of hidden pixels."""

MIN_RATE = 0.06
"""An object of which less is hidden is taken to be complete."""

CONTACT = 2
"""Greatest distance in pixels of the crop between an object and a neighbour that touches it."""

MIN_AREA = 50
"""Of a neighbour, in pixels of the image, that could be hidden itself."""


class CompletionNetwork(Protocol):
    """The network, in any runtime."""

    def complete(
        self, crops: Float32Array, features: Float32Array
    ) -> tuple[Float32Array, Float32Array]:
        """For n neighbours the object, float32 [n, CROP_SIZE, CROP_SIZE] in 0..1, which counts inside the neighbour
        only, and the probability that the neighbour hides a part of the object, float32 [n] in 0..1.

        crops: [n, CROP_CHANNELS, CROP_SIZE, CROP_SIZE]; features: [256, FEATURE_SIZE, FEATURE_SIZE].
        """


class OnnxCompletionNetwork:
    """The network of an ONNX file."""

    def __init__(
        self, path: Path = BUNDLED_NETWORK, *, threads: int | None = None
    ) -> None:
        self.session = open_session(path, threads=threads, frugal=True)
        self.hash = hashlib.sha256(path.read_bytes()).hexdigest()

    def complete(
        self, crops: Float32Array, features: Float32Array
    ) -> tuple[Float32Array, Float32Array]:
        """See CompletionNetwork."""
        inputs = {"crop": crops, "features": features[None]}
        amodal, front = self.session.run(None, inputs)
        return amodal, front


def complete_mask(
    network: CompletionNetwork,
    image: Image.Image,
    embedding: ImageEmbedding,
    visible: BoolArray,
    neighbours: Sequence[BoolArray] = (),
    *,
    min_order: float = MIN_ORDER,
    min_front: float = MIN_FRONT,
) -> BoolArray:
    """The amodal mask of one object, bool [height, width]: contains the visible one, and equals it if little is hidden.

    visible: bool [height, width] of the image. neighbours: bool [h, w] of the whole image at any resolution; they may
    overlap and need not touch the object. min_order, min_front: of `judge_order`.
    """
    if not visible.any():
        return visible
    window = Window.around(visible)
    shown = window.crop_mask(visible)
    hull = fill_hull(shown)
    crops = []
    for neighbour in neighbours:
        scaled = window.rescale(visible.shape, neighbour.shape)
        crops.append(scaled.crop_mask(neighbour))
    touching = find_touching(shown, hull, crops)
    near = stack_neighbours(shown, [crops[place] for place in touching])
    shapes, front_probabilities = _ask_network(
        network, image, embedding, window, shown=shown, neighbours=near
    )
    # The other way round: does the object hide the neighbour?
    reverse = [
        hides(network, image, embedding, visible, neighbours[place])
        for place in touching
    ]
    front = judge_order(
        front_probabilities, np.array(reverse, np.float32), min_order, min_front
    )
    hidden_crop = merge_neighbours(shapes, near, hull, front)
    hidden = window.paste(hidden_crop, visible.shape)
    amodal = visible | (hidden > MIN_PROBABILITY)
    occlusion_rate = 1 - float(visible.sum() / amodal.sum())
    if occlusion_rate < MIN_RATE:
        return visible
    return amodal


def hides(
    network: CompletionNetwork,
    image: Image.Image,
    embedding: ImageEmbedding,
    visible: BoolArray,
    neighbour: BoolArray,
) -> float:
    """The probability that an object hides a part of its neighbour; 0 if nothing else of the neighbour shows.

    visible: bool [height, width] of the image; neighbour: bool [h, w] at any resolution.
    """
    enlarged = np.asarray(Image.fromarray(neighbour).resize(visible.shape[::-1]))
    rest = enlarged & ~visible
    if rest.sum() < MIN_AREA:
        return 0.0
    window = Window.around(rest)
    shown = window.crop_mask(rest)
    other = window.crop_mask(visible)
    _, front = _ask_network(
        network,
        image,
        embedding,
        window,
        shown=shown,
        neighbours=(other & ~shown)[None],
    )
    return float(front[0])


def judge_order(
    front: Float32Array,
    reverse: Float32Array,
    min_order: float = MIN_ORDER,
    min_front: float = MIN_FRONT,
) -> BoolArray:
    """bool [n + 1]: which of n neighbours, and whether what none of them covers, is in front of the object.

    front: float32 [n + 1], the probabilities of that; reverse: float32 [n], that the object is in front of a neighbour.
    min_order: lowest probability of the order of two objects; min_front: of what no neighbour covers.
    """
    # The mean of two independent statements about the same order, as log odds.
    log_odds = (_log_odds(front[:-1]) - _log_odds(reverse)) / 2
    order = 1 / (1 + np.exp(-log_odds))
    return np.append(order >= min_order, front[-1] >= min_front)


def order_probability(first: float, second: float) -> float:
    """The probability that the first of two objects is in front. first, second: that it hides a part of the other."""
    odds = _log_odds(np.array([first, second], np.float32))
    return float(1 / (1 + np.exp(-(odds[0] - odds[1]) / 2)))


def _log_odds(probability: Float32Array) -> Float32Array:
    """Finite also for 0 and 1."""
    log_odds: Float32Array = np.log((probability + 1e-3) / (1 - probability + 1e-3))
    return log_odds


def _ask_network(
    network: CompletionNetwork,
    image: Image.Image,
    embedding: ImageEmbedding,
    window: Window,
    *,
    shown: BoolArray,
    neighbours: BoolArray,
) -> tuple[Float32Array, Float32Array]:
    """What the network says of an object in a window. shown: bool [s, s]; neighbours: bool [n, s, s]."""
    features = window.crop_features(embedding.features[0], max(embedding.size))
    return network.complete(
        stack_crops(window.crop(image), shown, fill_hull(shown), neighbours), features
    )


def find_touching(
    visible: BoolArray, hull: BoolArray, neighbours: Sequence[BoolArray]
) -> list[int]:
    """Which of the neighbours, bool [s, s] each, touch the object or reach into its hull."""
    grown = dilate(visible, CONTACT)
    reach = (grown | hull) & ~visible
    return [
        number
        for number, neighbour in enumerate(neighbours)
        if (neighbour & reach).any()
    ]


def stack_neighbours(visible: BoolArray, neighbours: Sequence[BoolArray]) -> BoolArray:
    """bool [n + 1, s, s]: the neighbours without the object, and at the end everything that none of them covers."""
    uncovered = ~np.any([visible, *neighbours], 0)
    others = [neighbour & ~visible for neighbour in neighbours]
    return np.stack([*others, uncovered])


def stack_crops(
    pixels: UInt8Array, visible: BoolArray, hull: BoolArray, neighbours: BoolArray
) -> Float32Array:
    """float32 [n, CROP_CHANNELS, s, s], one crop per neighbour: colors in -1..1, masks 0 or 1.

    pixels: uint8 [s, s, 3]; visible, hull: bool [s, s]; neighbours: bool [n, s, s].
    """
    colors = pixels.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
    shared = np.concatenate([colors, np.stack([visible, hull]).astype(np.float32)])
    repeated = np.broadcast_to(shared, (len(neighbours), *shared.shape))
    return np.concatenate([repeated, neighbours[:, None].astype(np.float32)], 1)


def merge_neighbours(
    amodal: Float32Array, neighbours: BoolArray, hull: BoolArray, front: BoolArray
) -> Float32Array:
    """float32 [s, s]: the probability that a pixel belongs to the object but is hidden; the mean over the neighbours
    that cover it, of which those in front tell the shape and the others say 0.

    amodal: float32 [n, s, s], of the network; neighbours: bool [n, s, s]; hull: bool [s, s] of the visible mask; front:
    bool [n].
    """
    shape = (1 - HULL_WEIGHT) * amodal + HULL_WEIGHT * hull
    in_front = neighbours & front[:, None, None]
    total = np.where(in_front, shape, 0).sum(0)
    covering = neighbours.sum(0).clip(
        min=1
    )  # 1 where none covers a pixel, to divide by
    hidden: Float32Array = (total / covering).astype(np.float32)
    return hidden

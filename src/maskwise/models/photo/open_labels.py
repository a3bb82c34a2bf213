"""Labels of proposals for words that are not among the detector's categories: an optional stage.

A network that compares images with texts sees a square around each proposal. The words that are asked for compete with
the 80 COCO categories and a few words for what is nothing in particular. The thresholds below are set by hand: they
were not measured, since the networks were tested with random weights.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array
from maskwise.language.word_forms import with_article
from maskwise.models.photo.box import Box
from maskwise.models.photo.vocabulary import COCO_CATEGORIES

TEMPLATE = "a photo of {}."
"""The wording that CLIP's authors recommend for labels."""

OTHER_LABELS = ("background", "a texture", "a part of something", "many things")
"""What a proposal may be that shows no object of a name."""

MARGIN = 0.1
"""Width of what is shown around a proposal, relative to the longer side of its box."""

PADDING_COLOR = (122, 117, 104)
"""CLIP's mean color, for the part of a square outside the image: 0 after normalisation."""

MAX_SIDE = 448
"""Longest side of a square that is kept until the network sees it: twice the input of CLIP. Squares of a photograph of
12 megapixels would take 70 MB each."""

MIN_PROBABILITY = 0.3
"""Lowest probability of a label. A synonym or a kind among the 80 categories may take half of it."""

MAX_SHARED = 0.5
"""Of two proposals that share more of the smaller one's pixels, only the one with the higher probability has the label:
the other shows a part of the same thing, or the thing with more around it."""


class ImageTextNetwork(Protocol):
    """A network that compares images with texts. The product of an image's and a text's vector is a logit."""

    name: str

    def embed_images(self, images: Sequence[Image.Image]) -> Float32Array:
        """float32 [n, d]."""

    def embed_texts(self, texts: Sequence[str]) -> Float32Array:
        """float32 [n, d]."""


class OpenLabeler:
    """Compares proposals with any words. The vector of every text is made once."""

    def __init__(self, network: ImageTextNetwork) -> None:
        self.network = network
        self._others: Float32Array | None = None
        self._labels: dict[str, Float32Array] = {}

    @property
    def name(self) -> str:
        """How runs refer to it."""
        return self.network.name

    def embed_boxes(self, image: Image.Image, boxes: Sequence[Box]) -> Float32Array:
        """float32 [n, d]: what is inside each box and a little around it."""
        squares = []
        for box in boxes:
            square = crop_square(image, box)
            square.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.BICUBIC)
            squares.append(square)
        return self.network.embed_images(squares)

    def probabilities(self, vectors: Float32Array, label: str) -> Float32Array:
        """float32 [n] in 0..1: that each image is best described by a label, of all labels that compete.

        vectors: [n, d] of `embed_boxes`. label: a noun without an article.
        """
        if self._others is None:
            names = [with_article(name) for name in COCO_CATEGORIES]
            texts = [TEMPLATE.format(name) for name in (*names, *OTHER_LABELS)]
            self._others = self.network.embed_texts(texts)
        if label not in self._labels:
            text = TEMPLATE.format(with_article(label))
            self._labels[label] = self.network.embed_texts([text])
        logits = vectors @ np.concatenate([self._labels[label], self._others]).T
        shifted = np.exp(logits - logits.max(1, keepdims=True))
        probabilities: Float32Array = shifted[:, 0] / shifted.sum(1)
        return probabilities


def select_labelled(
    probabilities: Float32Array, masks: Sequence[BoolArray]
) -> dict[int, float]:
    """The positions of the masks that have a label, with its probability; of masks that overlap the likeliest one."""
    selected: dict[int, float] = {}
    for row in np.argsort(-probabilities, kind="stable").tolist():
        if probabilities[row] < MIN_PROBABILITY:
            break
        if not any(_share(masks[row], masks[other]) > MAX_SHARED for other in selected):
            selected[row] = float(probabilities[row])
    return selected


def _share(first: BoolArray, second: BoolArray) -> float:
    """The share of the smaller of two masks that lies inside the other one; 0 if it is empty."""
    smaller = min(int(first.sum()), int(second.sum()))
    return int((first & second).sum()) / max(1, smaller)


def crop_square(image: Image.Image, box: Box) -> Image.Image:
    """The square around a box, with a margin; what lies outside the image has PADDING_COLOR."""
    side = max(box.width, box.height) * (1 + 2 * MARGIN)
    side = max(1, round(side))
    left = round(box.center_x - side / 2)
    top = round(box.center_y - side / 2)
    square = Image.new("RGB", (side, side), PADDING_COLOR)
    square.paste(image, (-left, -top))
    return square

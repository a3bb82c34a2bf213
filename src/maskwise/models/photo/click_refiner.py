"""Refine a mask by clicks with MobileSAM, for the review page."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np
from PIL import Image

from maskwise.arrays import Float32Array
from maskwise.masks import Mask
from maskwise.models.photo.sam import LOGITS_SIZE, ImageEmbedding, MobileSam
from maskwise.models.photo.weights import load_sam
from maskwise.review.refine import Click

KEPT_EMBEDDINGS = 8
"""Images whose embedding is kept, so that further clicks take only the decoder."""

CERTAIN = 10.0
"""Logit of a pixel inside the mask to start from; outside it is negative."""


class ClickRefiner:
    """A `maskwise.review.refine.Refiner`. Threads may share it; they take turns."""

    def __init__(self, sam: MobileSam) -> None:
        self.sam = sam
        self._embeddings: OrderedDict[str, ImageEmbedding] = OrderedDict()
        self._lock = Lock()

    def refine(
        self, image: Image.Image, mask: Mask | None, points: Sequence[Click]
    ) -> Mask:
        """The mask of the object that the clicks describe, starting from `mask` where it is given and not empty."""
        with self._lock:
            embedding = self._embed(image)
            start = None if mask is None or not mask.area else _to_logits(mask)
            decoded = self.sam.decode(
                embedding,
                points=np.array([(point.x, point.y) for point in points], np.float32),
                positive=np.array([point.positive for point in points], np.bool_),
                mask=start,
            )
        logits = Image.fromarray(decoded.logits).resize(
            image.size, Image.Resampling.BILINEAR
        )
        return Mask.from_dense(np.asarray(logits) > 0)

    def _embed(self, image: Image.Image) -> ImageEmbedding:
        # By content: every request opens the image again.
        key = hashlib.blake2b(image.tobytes()).hexdigest()
        if key not in self._embeddings:
            self._embeddings[key] = self.sam.encode(image)
            if len(self._embeddings) > KEPT_EMBEDDINGS:
                self._embeddings.popitem(last=False)
        self._embeddings.move_to_end(key)
        return self._embeddings[key]


def load_click_refiner() -> ClickRefiner:
    """With the weights of MobileSAM; DownloadError says what to run if they are missing."""
    return ClickRefiner(load_sam())


def _to_logits(mask: Mask) -> Float32Array:
    """float32 [1, 1, LOGITS_SIZE, LOGITS_SIZE]: the mask as the decoder takes it, padded at the right or the bottom."""
    longest = max(mask.size)
    height, width = (max(1, round(side / longest * LOGITS_SIZE)) for side in mask.size)
    dense = Image.fromarray(mask.to_dense().astype(np.float32))
    shares = np.asarray(dense.resize((width, height), Image.Resampling.BOX))
    logits = np.full((1, 1, LOGITS_SIZE, LOGITS_SIZE), -CERTAIN, np.float32)
    # A cell that the mask half covers gets 0.
    logits[0, 0, :height, :width] = (2 * shares - 1) * CERTAIN
    return logits

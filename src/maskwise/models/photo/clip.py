"""CLIP: images and texts as vectors of one space, so that any words can label a proposal (Radford et al. 2021).

Two ONNX files and the authors' vocabulary. An image is 3 x 224 x 224, normalised; a text is a row of token ids. The
scale that CLIP learned is part of the text vectors: the product of an image's and a text's vector is a logit.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from maskwise.arrays import Float32Array
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.clip_tokenizer import ClipTokenizer

INPUT_SIZE = 224
# Mean and standard deviation of the pixels that CLIP was trained on.
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)

IMAGES_AT_ONCE = 8
"""Images in one run of the network, which limits its memory."""


class Clip:
    """The networks of CLIP. Files are opened when they are first used: most questions need none of them."""

    name = "clip"

    def __init__(
        self,
        image_network: Path,
        text_network: Path,
        vocabulary: Path,
        *,
        threads: int | None = None,
    ) -> None:
        self.image_network = image_network
        self.text_network = text_network
        self.vocabulary = vocabulary
        self.threads = threads

    @cached_property
    def _image_session(self) -> onnxruntime.InferenceSession:
        return open_session(self.image_network, threads=self.threads, frugal=True)

    @cached_property
    def _text_session(self) -> onnxruntime.InferenceSession:
        return open_session(self.text_network, threads=self.threads, frugal=True)

    @cached_property
    def _tokenizer(self) -> ClipTokenizer:
        return ClipTokenizer(self.vocabulary)

    def embed_images(self, images: Sequence[Image.Image]) -> Float32Array:
        """float32 [n, d], each of length 1. images: RGB, at least one; squares are not distorted."""
        vectors = []
        for start in range(0, len(images), IMAGES_AT_ONCE):
            batch = images[start : start + IMAGES_AT_ONCE]
            pixels = np.stack([to_clip_input(image) for image in batch])
            vectors.append(self._image_session.run(None, {"pixels": pixels})[0])
        return np.concatenate(vectors)

    def embed_texts(self, texts: Sequence[str]) -> Float32Array:
        """float32 [n, d], each as long as CLIP's scale."""
        # A text is read from left to right up to its end: what fills up a row changes nothing.
        tokens = self._tokenizer.encode(texts)
        vectors: Float32Array = self._text_session.run(None, {"tokens": tokens})[0]
        return vectors


def to_clip_input(image: Image.Image) -> Float32Array:
    """float32 [3, INPUT_SIZE, INPUT_SIZE], normalised."""
    resized = image.resize((INPUT_SIZE, INPUT_SIZE), Image.Resampling.BICUBIC)
    pixels = np.asarray(resized, np.float32) / np.float32(255)
    return ((pixels - MEAN) / STD).transpose(2, 0, 1)

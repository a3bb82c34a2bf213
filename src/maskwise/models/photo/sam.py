"""MobileSAM: an image is encoded once, then boxes, points and masks prompt it.

Zhang et al. 2023, "Faster Segment Anything"; input and output as in segment-anything (Kirillov et al. 2023).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array
from maskwise.models.onnx_graph import Node, add_outputs, read_nodes
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.box import Box

INPUT_SIZE = 1024
"""Longest side of the encoder's input."""

GRID_SIZE = 64
"""Side of the embedding."""

FEATURE_CHANNELS = 256
"""Channels of the embedding."""

LOGITS_SIZE = 256
"""Side of the mask logits."""

OUTPUTS = ("iou_predictions", "low_res_masks")
"""Of the decoder: score and logits of the best mask."""

LEVELS = 3
"""Masks of a point: SAM takes it for ambiguous, and gives the whole, a part and a part of that."""

MAX_NODES = 8
"""Nodes between an output of the decoder and the tensor with all masks."""

# Mean and standard deviation of the pixels that the encoder was trained on.
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)

OUTSIDE = 0.0
POINT = 1.0
TOP_LEFT = 2.0
BOTTOM_RIGHT = 3.0
PADDING = -1.0
"""Labels of a prompt's points: outside and inside the object, corners of its box, and one that fills up a prompt
without a box.
"""


class ImageEmbedding(NamedTuple):
    """features: float32 [1, FEATURE_CHANNELS, GRID_SIZE, GRID_SIZE], of the image scaled to INPUT_SIZE and padded at
    the right or the bottom. size: width and height of the image.
    """

    features: Float32Array
    size: tuple[int, int]

    @property
    def scale(self) -> float:
        """Pixels of the encoder's input per pixel of the image."""
        return INPUT_SIZE / max(self.size)


class MaskLogits(NamedTuple):
    """One decoded mask. logits: float32 [h, w], the part of the decoder's low-resolution output that shows the image;
    above 0 is inside. raw: float32 [1, 1, LOGITS_SIZE, LOGITS_SIZE], all of it, to prompt again. score: predicted IoU.
    """

    logits: Float32Array
    raw: Float32Array
    score: float


class MobileSam:
    """The two networks of MobileSAM."""

    def __init__(
        self, encoder: Path, decoder: Path, *, threads: int | None = None
    ) -> None:
        self.encoder = open_session(encoder, threads=threads, frugal=True)
        model = decoder.read_bytes()
        self.all_masks = find_all_masks(read_nodes(model))
        hidden = [name for name in self.all_masks if name not in OUTPUTS]
        extended = add_outputs(model, hidden)
        self.decoder = open_session(
            extended, threads=threads, name=str(decoder), frugal=True
        )

    def encode(self, image: Image.Image) -> ImageEmbedding:
        """image: RGB, any size."""
        input_name = self.encoder.get_inputs()[0].name
        outputs = self.encoder.run(None, {input_name: to_encoder_input(image)})
        return ImageEmbedding(features=outputs[0], size=image.size)

    def decode(
        self,
        embedding: ImageEmbedding,
        *,
        box: Box | None = None,
        points: Float32Array | None = None,
        positive: BoolArray | None = None,
        mask: Float32Array | None = None,
    ) -> MaskLogits:
        """The best mask of one prompt.

        box: in pixels of the image. points: float32 [n, 2] of x, y. positive: bool [n], whether each point lies inside
        the object; by default all do. mask: `raw` of an earlier result.
        """
        corners, labels = _prompt_points(box, points, positive)
        return self._decode(embedding, corners, labels, mask=mask, outputs=OUTPUTS)[0]

    def decode_levels(
        self, embedding: ImageEmbedding, point: tuple[float, float]
    ) -> list[MaskLogits]:
        """What a point may mean: SAM's masks of the whole, a part and a part of that, in no certain order.

        Only the best of them if the decoder's file does not contain the others.
        """
        corners, labels = _prompt_points(None, np.array([point], np.float32), None)
        masks = self._decode(embedding, corners, labels, outputs=self.all_masks)
        # The first of several masks is the one for prompts that are not ambiguous.
        return masks[-LEVELS:]

    def _decode(
        self,
        embedding: ImageEmbedding,
        corners: Float32Array,
        labels: Float32Array,
        *,
        mask: Float32Array | None = None,
        outputs: tuple[str, str],
    ) -> list[MaskLogits]:
        """The masks of one prompt in the order of the decoder. outputs: the tensors with their scores and logits."""
        has_mask = mask is not None
        if mask is None:
            mask = np.zeros((1, 1, LOGITS_SIZE, LOGITS_SIZE), np.float32)
        inputs = {
            "image_embeddings": embedding.features,
            "point_coords": (corners * embedding.scale)[None].astype(np.float32),
            "point_labels": labels[None],
            "mask_input": mask,
            "has_mask_input": np.array([has_mask], np.float32),
            # The decoder also enlarges the mask to the size named here; the smallest one costs least.
            "orig_im_size": np.array([1.0, 1.0], np.float32),
        }
        scores, raw = self.decoder.run(list(outputs), inputs)
        width, height = self.logits_size(embedding)
        masks = []
        for level, score in enumerate(scores[0]):
            shown = raw[0, level, :height, :width]
            masks.append(MaskLogits(shown, raw[:, level : level + 1], float(score)))
        return masks

    def logits_size(self, embedding: ImageEmbedding) -> tuple[int, int]:
        """Width and height of the logits of an image."""
        width, height = embedding.size
        longest = max(embedding.size)
        logits_width = max(1, round(width / longest * LOGITS_SIZE))
        logits_height = max(1, round(height / longest * LOGITS_SIZE))
        return logits_width, logits_height


def find_all_masks(nodes: Mapping[str, Node]) -> tuple[str, str]:
    """The tensors with the scores and logits of all masks of a prompt, from which the decoder takes the best.

    segment-anything's export takes it by flattening them. The outputs themselves where this is not so.
    """
    scores, logits = (_before_flatten(nodes, name) for name in OUTPUTS)
    if scores is None or logits is None:
        return OUTPUTS
    return scores, logits


def _before_flatten(nodes: Mapping[str, Node], name: str) -> str | None:
    """The tensor that was flattened, a few nodes before this one."""
    for _ in range(MAX_NODES):
        op_type, inputs = nodes.get(name, ("", ()))
        if not inputs:
            return None
        name = inputs[0]
        if op_type == "Flatten":
            return name
    return None


def to_encoder_input(image: Image.Image) -> Float32Array:
    """float32 [1, 3, INPUT_SIZE, INPUT_SIZE]: longest side scaled to INPUT_SIZE, normalised, padded with zeros."""
    scale = INPUT_SIZE / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(resized, np.float32)
    padded = np.zeros((1, 3, INPUT_SIZE, INPUT_SIZE), np.float32)
    padded[0, :, :height, :width] = ((pixels - MEAN) / STD).transpose(2, 0, 1)
    return padded


def _prompt_points(
    box: Box | None, points: Float32Array | None, positive: BoolArray | None
) -> tuple[Float32Array, Float32Array]:
    """float32 [n, 2] and [n]: points and their labels, in pixels of the image."""
    if points is None:
        points = np.zeros((0, 2), np.float32)
    if positive is None:
        positive = np.ones(len(points), np.bool_)
    point_labels = np.where(positive, POINT, OUTSIDE)
    if box is None:
        # segment-anything requires a padding point in a prompt without a box.
        corners = [(0.0, 0.0)]
        corner_labels = [PADDING]
    else:
        corners = [(box.left, box.top), (box.right, box.bottom)]
        corner_labels = [TOP_LEFT, BOTTOM_RIGHT]
    all_points = np.concatenate([points, np.array(corners, np.float32)])
    labels = np.concatenate([point_labels, corner_labels]).astype(np.float32)
    return all_points, labels

"""Prompts of MobileSAM and its outputs, with a session that records what it is given."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.models.photo.box import Box
from maskwise.models.photo.saliency import INPUT_SIZE, SaliencyNetwork
from maskwise.models.photo.sam import (
    FEATURE_CHANNELS,
    GRID_SIZE,
    LOGITS_SIZE,
    OUTPUTS,
    ImageEmbedding,
    MobileSam,
    to_encoder_input,
)


class Decoder:
    """Gives `count` masks; the score of mask k is k / 10."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.inputs: dict[str, np.ndarray] = {}

    def run(self, names: list[str], inputs: dict[str, np.ndarray]) -> list[Any]:
        self.inputs = inputs
        scores = np.arange(self.count, dtype=np.float32)[None] / 10
        logits = np.zeros((1, self.count, LOGITS_SIZE, LOGITS_SIZE), np.float32)
        logits += np.arange(self.count)[None, :, None, None]
        return [scores, logits]


def make_sam(masks: int = 1) -> tuple[MobileSam, Decoder]:
    sam = object.__new__(MobileSam)
    decoder = Decoder(masks)
    sam.decoder = decoder
    sam.all_masks = OUTPUTS
    return sam, decoder


@pytest.fixture
def embedding() -> ImageEmbedding:
    shape = (1, FEATURE_CHANNELS, GRID_SIZE, GRID_SIZE)
    return ImageEmbedding(np.zeros(shape, np.float32), (512, 256))


def test_a_box_is_given_by_its_corners(embedding: ImageEmbedding) -> None:
    sam, decoder = make_sam()
    sam.decode(embedding, box=Box(10, 20, 30, 40))
    # The encoder's input is 1024 pixels wide, twice as wide as the image.
    corners = decoder.inputs["point_coords"]
    assert corners.tolist() == [[[20, 40], [60, 80]]]
    assert decoder.inputs["point_labels"].tolist() == [[2, 3]]
    assert decoder.inputs["has_mask_input"] == 0


def test_points_have_labels_and_a_padding_point(embedding: ImageEmbedding) -> None:
    sam, decoder = make_sam()
    points = np.array([[1, 2], [3, 4]], np.float32)
    sam.decode(embedding, points=points, positive=np.array([True, False]))
    corners = decoder.inputs["point_coords"]
    assert corners.tolist() == [[[2, 4], [6, 8], [0, 0]]]
    assert decoder.inputs["point_labels"].tolist() == [[1, 0, -1]]


def test_a_mask_may_prompt_again(embedding: ImageEmbedding) -> None:
    sam, decoder = make_sam()
    first = sam.decode(embedding, box=Box(0, 0, 10, 10))
    sam.decode(embedding, box=Box(0, 0, 10, 10), mask=first.raw)
    assert decoder.inputs["has_mask_input"] == 1
    assert decoder.inputs["mask_input"] is first.raw


def test_logits_show_the_image_without_padding(embedding: ImageEmbedding) -> None:
    sam, _ = make_sam()
    decoded = sam.decode(embedding, box=Box(0, 0, 10, 10))
    assert decoded.logits.shape == (LOGITS_SIZE // 2, LOGITS_SIZE)
    assert decoded.raw.shape == (1, 1, LOGITS_SIZE, LOGITS_SIZE)


def test_a_point_has_three_levels_without_the_unambiguous_mask(
    embedding: ImageEmbedding,
) -> None:
    sam, _ = make_sam(masks=4)
    levels = sam.decode_levels(embedding, (5, 5))
    assert [level.score for level in levels] == pytest.approx([0.1, 0.2, 0.3])
    assert [int(level.logits[0, 0]) for level in levels] == [1, 2, 3]


def test_a_decoder_with_one_mask_gives_one_level(embedding: ImageEmbedding) -> None:
    sam, _ = make_sam(masks=1)
    assert len(sam.decode_levels(embedding, (5, 5))) == 1


@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (1, 3000), (40, 30)])
def test_any_size_fits_the_encoder(size: tuple[int, int]) -> None:
    tensor = to_encoder_input(Image.new("RGB", size, "white"))
    assert tensor.shape == (1, 3, 1024, 1024)
    assert tensor.max() > 0


class SaliencySession:
    def __init__(self, output: np.ndarray) -> None:
        self.output = output

    def get_inputs(self) -> list[Any]:
        return [type("Input", (), {"name": "image"})()]

    def run(self, names: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        assert inputs["image"].shape == (1, 3, INPUT_SIZE, INPUT_SIZE)
        return [self.output[None, None]]


def test_saliency_fills_the_range_from_0_to_1() -> None:
    network = object.__new__(SaliencyNetwork)
    network.session = SaliencySession(np.array([[2.0, 3.0], [4.0, 6.0]], np.float32))
    saliency = network.predict(Image.new("RGB", (20, 10)))
    assert saliency.tolist() == [[0, 0.25], [0.5, 1]]


def test_an_image_without_contrast_has_no_saliency() -> None:
    network = object.__new__(SaliencyNetwork)
    network.session = SaliencySession(np.full((2, 2), 3, np.float32))
    assert not network.predict(Image.new("RGB", (20, 10))).any()

"""Candidates of an image, and which of them a question means."""

import numpy as np
from PIL import Image

from maskwise.models.tiny.detections import DetectedObjects, no_objects
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.features import ObjectFeatures
from maskwise.models.tiny.grounding import (
    list_candidates,
    select_targets,
    target_probabilities,
)
from maskwise.models.tiny.networks import DetectorMaps, RoIPredictions
from maskwise.models.tiny.preprocess import resize_image, to_network_input
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    IMAGE_SIZE,
    MAX_PARTS,
    TARGET_THRESHOLD,
)


def attributes(category: str, color: str) -> np.ndarray:
    row = np.zeros(sum(ATTRIBUTE_SIZES), np.float32)
    row[CATEGORY_NAMES.index(category)] = 1
    row[ATTRIBUTE_SIZES[0] + COLOR_NAMES.index(color)] = 1
    return row


def mug_behind_box() -> DetectedObjects:
    """A mug on the left without a visible handle, and a box on the right in front of it."""
    amodal = np.zeros((2, IMAGE_SIZE, IMAGE_SIZE), bool)
    amodal[0, 40:80, 20:60] = True
    amodal[1, 40:80, 50:110] = True
    visible = amodal.copy()
    visible[0] &= ~amodal[1]
    part = amodal.astype(np.uint8)
    part[0, 40:80, 52:60] = 2  # the handle of the mug, behind the box
    rows = np.stack([attributes("mug", "red"), attributes("box", "blue")])
    return DetectedObjects(visible, amodal, part, rows)


class FixedNetworks:
    """Gives the same logits for every question."""

    def __init__(self, logits: np.ndarray) -> None:
        self.logits = logits

    def detect(self, image: np.ndarray) -> DetectorMaps:
        raise NotImplementedError

    def predict_rois(
        self, fine: np.ndarray, coarse: np.ndarray, boxes: np.ndarray
    ) -> RoIPredictions:
        raise NotImplementedError

    def predict_masks(
        self,
        image: np.ndarray,
        fine: np.ndarray,
        coarse: np.ndarray,
        *,
        boxes: np.ndarray,
        rois: RoIPredictions,
    ) -> np.ndarray:
        raise NotImplementedError

    def ground(self, tokens: np.ndarray, features: ObjectFeatures) -> np.ndarray:
        return np.repeat(self.logits[None], len(tokens), axis=0)


def encode(*targets: tuple[int, int]) -> EncodedImage:
    logits = np.full((2, 1 + MAX_PARTS), -10, np.float32)
    for target in targets:
        logits[target] = 10
    return EncodedImage(FixedNetworks(logits), mug_behind_box(), (320, 160))


def test_objects_and_their_parts_are_candidates_from_front_to_back() -> None:
    candidates = list_candidates(mug_behind_box())
    assert [candidate.name for candidate in candidates.values()] == [
        "blue box",
        "body of the blue box",
        "red mug",
        "body of the red mug",
        "handle of the red mug",
    ]
    assert candidates[0, 2].visible_area == 0
    assert candidates[0, 0].center_x < candidates[1, 0].center_x


def test_no_objects_have_no_candidates() -> None:
    assert list_candidates(no_objects()) == {}


def test_candidates_from_the_threshold_on_are_targets() -> None:
    candidates = list_candidates(mug_behind_box())
    probabilities = np.zeros((2, 1 + MAX_PARTS), np.float32)
    probabilities[1, 0] = TARGET_THRESHOLD
    probabilities[0, 0] = TARGET_THRESHOLD - 0.01
    probabilities[1, 3] = 1  # a part that the box does not have
    assert select_targets(candidates, probabilities) == [(1, 0)]


def test_without_objects_or_questions_there_are_no_probabilities() -> None:
    encoded = encode()
    empty = EncodedImage(encoded.networks, no_objects(), (10, 10))
    assert empty.probabilities(["the mug"]).shape == (1, 0, 1 + MAX_PARTS)
    nothing = target_probabilities(encoded.networks, encoded.features, [])
    assert nothing.shape == (0, 2, 1 + MAX_PARTS)


def test_targets_are_named_from_left_to_right() -> None:
    prediction = encode((1, 0), (0, 0)).ask("everything")
    assert prediction.answer is not None
    assert prediction.answer.text == "They are the red mug and the blue box."
    assert [region.name for region in prediction.regions] == ["red mug", "blue box"]


def test_a_hidden_target_is_left_out_where_the_visible_mask_is_asked_for() -> None:
    handle = encode((0, 2))
    assert handle.ask("the handle of the mug").no_target
    amodal = handle.ask("the whole handle of the mug, hidden parts included")
    assert amodal.mask_type == "amodal"
    (region,) = amodal.regions
    assert region.amodal is not None
    assert region.amodal.size == (160, 320)
    assert region.amodal.area == 40 * 8 * 2  # the image is twice as wide as the model's


def test_images_are_resized_and_scaled_for_the_network() -> None:
    image = Image.new("L", (30, 50), 255)
    pixels = resize_image(image)
    assert pixels.shape == (IMAGE_SIZE, IMAGE_SIZE, 3)
    batch = to_network_input(pixels)
    assert batch.shape == (1, 3, IMAGE_SIZE, IMAGE_SIZE)
    assert (batch.min(), batch.max(), batch.dtype) == (1, 1, np.float32)

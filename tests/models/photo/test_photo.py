import numpy as np
import pytest
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.harness.registry import make_predictor
from maskwise.models.photo.match import MatchChooser
from maskwise.models.photo.model import Photo
from maskwise.models.photo.proposals import MAX_HIDING_PROMPTS
from maskwise.registry import list_models
from tests.models.photo.scene import (
    FakeCompletion,
    draw_scene,
    encoded_scene,
    fake_networks,
)
from tests.shared import shared


def test_predictions_have_masks_phrases_and_a_mask_type() -> None:
    model = Photo(fake_networks(), FakeCompletion(0.0), MatchChooser())
    cup, nothing, whole = model.predict(
        draw_scene(),
        ["the red cup", "the elephant", "the whole dog, hidden parts included"],
    )
    (region,) = cup.regions
    assert region.visible is not None
    assert abs(region.visible.area - 40 * 50) < 200
    assert cup.mask_type == "visible"
    assert cup.answer is not None
    (phrase,) = cup.answer.phrases
    assert cup.answer.text[phrase.start : phrase.stop] == "the cup"
    assert nothing.no_target
    assert not nothing.regions
    assert whole.mask_type == "amodal"


def test_an_image_is_encoded_once_and_masks_are_made_once() -> None:
    model = Photo(fake_networks(), FakeCompletion(), MatchChooser())
    asked = model.encode(draw_scene())
    before = model.networks.sam.decoded  # type: ignore[attr-defined]
    first = asked.answer(["the dog"])
    decoded = model.networks.sam.decoded  # type: ignore[attr-defined]
    assert before < decoded <= before + 1 + MAX_HIDING_PROMPTS
    assert asked.answer(["the dog"]) == first
    assert model.networks.sam.decoded == decoded  # type: ignore[attr-defined]
    assert model.networks.sam.encoded == 1  # type: ignore[attr-defined]


def test_an_object_that_looks_complete_is_left_alone() -> None:
    visible, amodal = encoded_scene(front=0.01).masks((0,))
    assert amodal == visible


def test_the_visible_mask_is_inside_the_amodal_one() -> None:
    visible, amodal = encoded_scene(front=0.9).masks((0,))
    assert (visible - amodal).area == 0
    assert amodal.area > visible.area


def test_merged_proposals_are_one_region() -> None:
    photo = encoded_scene()
    first, _ = photo.masks((0,))
    second, _ = photo.masks((2,))
    merged, _ = photo.masks((0, 2))
    assert merged.area == first.area + second.area


def test_photo_is_a_model_by_name() -> None:
    assert "photo" in list_models()


def test_without_weights_the_message_says_what_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path_factory.mktemp("empty")))
    with pytest.raises(MaskwiseError) as raised:
        make_predictor("photo", threads=3)
    message = str(raised.value)
    for name in (
        "mobile_sam_encoder.onnx",
        "mobile_sam_decoder.onnx",
        "yolox_nano.onnx",
        "u2netp.onnx",
    ):
        assert f"maskwise get {name}" in message


def test_an_unknown_chooser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MaskwiseError, match="expected `match`"):
        make_predictor("photo", chooser="magic")


def test_a_real_photograph(monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared("data", "tiny_coco", "val2017", "000000331352.jpg")
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(shared("weights")))
    with Image.open(path) as image:
        asked = make_predictor("photo").encode(image.convert("RGB"))  # type: ignore[union-attr]
    (prediction,) = asked.answer(["the toilet"])
    (region,) = prediction.regions
    assert region.visible is not None
    assert 0.05 < region.visible.to_dense().mean() < 0.9
    assert np.array_equal(
        region.size, (asked.photo.image.height, asked.photo.image.width)
    )

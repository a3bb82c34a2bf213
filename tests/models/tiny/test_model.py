"""The bundled model as it ships."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.models.tiny import Tiny, load
from maskwise.models.tiny.detections import DetectedObjects
from maskwise.models.tiny.grounding import list_candidates
from maskwise.models.tiny.networks import NETWORKS, OnnxNetworks
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    IMAGE_SIZE,
)
from maskwise.schema import Prediction
from maskwise.world import Scene, make_scene


@pytest.fixture(scope="module")
def model() -> Tiny:
    return load()


@pytest.fixture(scope="module")
def shown() -> Scene:
    return make_scene(21, 4, "val")


def ask(model: Tiny, shown: Scene, *questions: str) -> list[Prediction]:
    return model.predict(Image.fromarray(shown.image), questions)


def test_it_answers_most_questions_of_unseen_scenes(model: Tiny) -> None:
    right = total = 0
    for index in range(6):
        shown = make_scene(22, index, "val")
        for question, prediction in zip(
            shown.questions, ask(model, shown, *[q.text for q in shown.questions])
        ):
            wanted = {shown.nodes[place].name for place in question.targets}
            right += wanted == {region.name for region in prediction.regions}
            total += 1
    assert right / total > 0.7


def test_a_target_has_both_masks_and_a_phrase_of_the_answer(
    model: Tiny, shown: Scene
) -> None:
    names = [
        item.name
        for item in shown.nodes
        if item.part is None and item.visible_area > 200
    ]
    predictions = ask(model, shown, *[f"the {name}" for name in names])
    assert any(prediction.regions for prediction in predictions)
    for prediction in predictions:
        for number, region in enumerate(prediction.regions):
            assert region.visible is not None
            assert region.amodal is not None
            assert region.visible.size == region.amodal.size == (160, 160)
            assert (region.visible - region.amodal).area == 0, (
                "the visible mask is inside the amodal mask"
            )
            assert prediction.answer is not None
            phrase = next(
                phrase
                for phrase in prediction.answer.phrases
                if number in phrase.regions
            )
            assert (
                prediction.answer.text[phrase.start : phrase.stop]
                == f"the {region.name}"
            )


def test_the_words_decide_the_mask_type(model: Tiny, shown: Scene) -> None:
    visible, amodal = ask(
        model,
        shown,
        "Segment the box.",
        "Segment the whole box, including the part that is hidden.",
    )
    assert (visible.mask_type, amodal.mask_type) == ("visible", "amodal")


def test_an_absent_object_gives_no_target(model: Tiny, shown: Scene) -> None:
    (prediction,) = ask(model, shown, "Where is the elephant?")
    assert prediction.no_target
    assert not prediction.regions


def test_questions_asked_one_by_one_get_the_same_answers_as_together(
    model: Tiny, shown: Scene
) -> None:
    questions = [question.text for question in shown.questions]
    encoded = model.encode(Image.fromarray(shown.image))
    apart = [encoded.ask(question) for question in questions]
    together = ask(model, shown, *questions)
    for one, other in zip(apart, together):
        assert one.answer == other.answer
        assert [r.visible for r in one.regions] == [r.visible for r in other.regions]


@pytest.mark.parametrize("size", [(33, 97), (1, 1), (640, 480)])
def test_masks_have_the_size_of_the_image(model: Tiny, size: tuple[int, int]) -> None:
    noise = np.random.default_rng(3).integers(0, 255, (size[1], size[0], 3), np.uint8)
    for image in (Image.fromarray(noise), Image.new("L", size, 200)):
        for prediction in model.predict(image, ["everything here", ""]):
            assert all(
                r.visible is None or r.visible.size == (size[1], size[0])
                for r in prediction.regions
            )


def test_no_questions_give_no_predictions(model: Tiny, shown: Scene) -> None:
    assert ask(model, shown) == []


def test_missing_network_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        MaskwiseError,
        match=r"lacks detector\.onnx, roi_head\.onnx, mask_head\.onnx, grounder\.onnx",
    ):
        OnnxNetworks(tmp_path)


def test_an_invalid_network_file_is_named(tmp_path: Path) -> None:
    for name in NETWORKS:
        (tmp_path / f"{name}.onnx").write_bytes(b"no network")
    with pytest.raises(
        MaskwiseError, match=r"onnxruntime cannot open .*detector\.onnx"
    ):
        load(str(tmp_path))


def test_of_two_equal_objects_in_one_place_the_occluded_one_is_the_back_one() -> None:
    visible = np.zeros((2, IMAGE_SIZE, IMAGE_SIZE), bool)
    visible[0, 60:70, 40:80] = True  # the upper edge of a box
    visible[1, 70:110, 42:82] = True  # the box in front of it
    amodal = visible.copy()
    amodal[0, 60:100, 40:80] = True
    attributes = np.zeros((2, sum(ATTRIBUTE_SIZES)), np.float32)
    attributes[
        :, [CATEGORY_NAMES.index("box"), ATTRIBUTE_SIZES[0] + COLOR_NAMES.index("red")]
    ] = 1
    objects = DetectedObjects(visible, amodal, amodal.astype(np.uint8), attributes)
    candidates = list_candidates(objects)
    assert (candidates[0, 0].name, candidates[1, 0].name) == (
        "back red box",
        "front red box",
    )


def test_weights_and_bundled_data_are_small() -> None:
    package = Path(__file__).parents[3] / "src" / "maskwise"
    shipped = [
        *package.rglob("*.onnx"),
        *package.rglob("*.npz"),
        *(package / "world").rglob("*.arrow"),
    ]
    assert sum(path.stat().st_size for path in shipped) <= 25e6

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ModelError
from maskwise.harness.predictor import GroundTruthPredictor, Predictor
from maskwise.harness.registry import make_predictor
from maskwise.models.convex_hull import fill_hull
from maskwise.registry import MODELS
from maskwise.schema import Prediction, Sample
from maskwise.world import make_scene

BASELINES = [
    name for name, item in MODELS.built_in.items() if "baselines" in item.place
]


def predict(name: str, index: int = 2) -> list[Prediction]:
    shown = make_scene(31, index, "test")
    model = make_predictor(name)
    image = Image.fromarray(shown.image)
    if isinstance(model, Predictor):
        return list(
            model.predict(image, [question.text for question in shown.questions])
        )
    assert isinstance(model, GroundTruthPredictor)
    return list(model.predict_with_ground_truth(image, shown.samples))


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_answers_every_question(name: str) -> None:
    assert len(predict(name)) == len(make_scene(31, 2, "test").questions)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_is_called_by_its_registered_name(name: str) -> None:
    assert getattr(make_predictor(name), "name", None) == name


def test_text_blind_gives_the_same_prediction_for_all_questions() -> None:
    first, *others = predict("text-blind")
    assert all(other == first for other in others)


def test_image_blind_gives_the_same_prediction_for_all_images() -> None:
    model = make_predictor("image-blind")
    assert isinstance(model, Predictor)
    one, other = (
        list(
            model.predict(
                Image.fromarray(make_scene(31, index, "test").image), ["the mug"]
            )
        )
        for index in (0, 1)
    )
    assert one == other


def test_visible_copy_has_no_occluded_pixels_and_convex_hull_contains_the_visible_mask() -> (
    None
):
    for prediction in predict("visible-copy"):
        assert all(region.visible == region.amodal for region in prediction.regions)
    for prediction in predict("convex-hull"):
        for region in prediction.regions:
            assert region.visible is not None
            assert region.amodal is not None
            assert (region.visible - region.amodal).area == 0


def test_stage_oracles_return_the_ground_truth_of_their_stage() -> None:
    samples = make_scene(31, 2, "test").samples
    assert [p.mask_type for p in predict("oracle-mask-type")] == [
        sample.mask_type for sample in samples
    ]
    grounded = predict("oracle-grounder")
    assert any(prediction.regions for prediction in grounded)
    assert all(
        len(one.regions) <= len(sample.targets)
        for one, sample in zip(grounded, samples)
    )
    matched = [
        (region.visible, region.amodal)
        in [(target.visible, target.amodal) for target in sample.targets]
        for prediction, sample in zip(predict("oracle-masks"), samples)
        for region in prediction.regions
    ]
    assert any(matched)


def test_oracle_detector_predicts_the_names_and_masks_of_the_scene() -> None:
    shown = make_scene(31, 2, "test")
    regions = [
        region
        for prediction in predict("oracle-detector")
        for region in prediction.regions
    ]
    true = {(region.name, region.visible, region.amodal) for region in shown.regions}
    assert regions
    assert {(region.name, region.visible, region.amodal) for region in regions} <= true


def test_oracle_detector_refuses_images_that_are_not_world_scenes() -> None:
    model = make_predictor("oracle-detector")
    assert isinstance(model, GroundTruthPredictor)
    sample = Sample(id="s", image_id="000000123.jpg", question="the mug")
    with pytest.raises(ModelError, match="needs an image of the world benchmark"):
        model.predict_with_ground_truth(Image.new("RGB", (8, 8)), [sample])


def test_the_hull_of_a_ring_is_filled_and_a_line_is_its_own_hull() -> None:
    ring = np.zeros((9, 9), bool)
    ring[1:8, 1:8] = True
    ring[3:6, 3:6] = False
    assert fill_hull(ring).sum() == 49
    line = np.zeros((9, 9), bool)
    line[4, 2:7] = True
    assert (fill_hull(line) == line).all()
    assert not fill_hull(np.zeros((4, 4), bool)).any()

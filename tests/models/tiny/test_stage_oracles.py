"""Stage oracles are the bundled model with the ground truth of one stage."""

import pytest
from PIL import Image

from maskwise.errors import ModelError
from maskwise.harness.predictor import GroundTruthPredictor
from maskwise.harness.registry import make_predictor
from maskwise.schema import Prediction, Sample
from maskwise.world import make_scene

ORACLES = ("oracle-detector", "oracle-mask-type", "oracle-grounder", "oracle-masks")


def predict(name: str) -> list[Prediction]:
    shown = make_scene(31, 2, "test")
    model = make_predictor(name)
    assert isinstance(model, GroundTruthPredictor)
    image = Image.fromarray(shown.image)
    return list(model.predict_with_ground_truth(image, shown.samples))


@pytest.mark.parametrize("name", ORACLES)
def test_every_oracle_answers_every_question_under_its_name(name: str) -> None:
    assert len(predict(name)) == len(make_scene(31, 2, "test").questions)
    assert getattr(make_predictor(name), "name", None) == name


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

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ModelError
from maskwise.harness.predictor import GroundTruthPredictor, Predictor
from maskwise.harness.registry import BUILT_IN, load_model
from maskwise.models.controls import convex_hull
from maskwise.schema import Prediction, Sample
from maskwise.world import scene

CONTROLS = [name for name, known in BUILT_IN.items() if "controls" in known.factory]


def replies(name: str, index: int = 2) -> list[Prediction]:
    shown = scene(31, index, "test")
    model, image = load_model(name), Image.fromarray(shown.image)
    if isinstance(model, Predictor):
        return list(model.predict(image, [question.text for question in shown.questions]))
    assert isinstance(model, GroundTruthPredictor)
    return list(model.predict_with_ground_truth(image, shown.samples))


@pytest.mark.parametrize("name", CONTROLS)
def test_every_control_replies_to_every_question(name: str) -> None:
    assert len(replies(name)) == len(scene(31, 2, "test").questions)


def test_blind_to_the_text_means_one_reply_for_all() -> None:
    first, *others = replies("text-blind")
    assert all(other == first for other in others)


def test_blind_to_the_image_means_one_reply_for_all_images() -> None:
    model = load_model("image-blind")
    assert isinstance(model, Predictor)
    one, other = (
        list(model.predict(Image.fromarray(scene(31, index, "test").image), ["the mug"])) for index in (0, 1)
    )
    assert one == other


def test_a_copy_has_no_hidden_part_and_a_hull_keeps_what_is_seen() -> None:
    for reply in replies("visible-copy"):
        assert all(region.visible == region.amodal for region in reply.regions)
    for reply in replies("hull"):
        for region in reply.regions:
            assert region.visible is not None
            assert region.amodal is not None
            assert (region.visible - region.amodal).area == 0


def test_oracles_are_told_what_they_say() -> None:
    samples = scene(31, 2, "test").samples
    assert [r.mask_type for r in replies("oracle-type")] == [sample.mask_type for sample in samples]
    chosen = replies("oracle-choice")
    assert any(reply.regions for reply in chosen)
    assert all(len(reply.regions) <= len(sample.targets) for reply, sample in zip(chosen, samples))
    drawn = [
        (region.visible, region.amodal) in [(target.visible, target.amodal) for target in sample.targets]
        for reply, sample in zip(replies("oracle-masks"), samples)
        for region in reply.regions
    ]
    assert any(drawn)


def test_told_every_object_it_draws_them_as_they_are() -> None:
    shown = scene(31, 2, "test")
    regions = [region for reply in replies("oracle-finds") for region in reply.regions]
    true = {(region.name, region.visible, region.amodal) for region in shown.regions}
    assert regions
    assert {(region.name, region.visible, region.amodal) for region in regions} <= true


def test_only_scenes_of_the_world_can_be_told() -> None:
    model = load_model("oracle-finds")
    assert isinstance(model, GroundTruthPredictor)
    sample = Sample(id="s", image_id="000000123.jpg", question="the mug")
    with pytest.raises(ModelError, match="the scenes of the world alone"):
        model.predict_with_ground_truth(Image.new("RGB", (8, 8)), [sample])


def test_the_hull_of_a_ring_is_a_disc_and_of_a_line_itself() -> None:
    ring = np.zeros((9, 9), bool)
    ring[1:8, 1:8] = True
    ring[3:6, 3:6] = False
    assert convex_hull(ring).sum() == 49
    line = np.zeros((9, 9), bool)
    line[4, 2:7] = True
    assert (convex_hull(line) == line).all()
    assert not convex_hull(np.zeros((4, 4), bool)).any()

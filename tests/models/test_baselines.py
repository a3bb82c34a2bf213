"""Baselines wrap any model: what it is asked, or its amodal masks, are changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import maskwise as mw
from maskwise.errors import ModelError, UnknownNameError
from maskwise.harness.predictor import Predictor
from maskwise.harness.registry import make_predictor
from maskwise.masks import Mask
from maskwise.models.baselines import BASELINES
from maskwise.models.convex_hull import fill_hull
from maskwise.schema import (
    Answer,
    PredictedRegion,
    Prediction,
    Turn,
    continue_dialogue,
    earlier_turns,
)
from maskwise.store import Dataset
from maskwise.world import make_scene, write_scenes

QUESTIONS = ["the mug", "the whole mug", "the bowl", "a book"]


class Echo:
    """Repeats the question as a name, and shows an L, visible and amodal."""

    name = "echo"
    weights_hash = "w1"

    def __init__(self) -> None:
        self.encoded = 0
        self.gray: list[bool] = []
        self.closed = False

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return self.encode(image).answer(questions)

    def encode(self, image: Image.Image) -> "EchoEncoding":
        self.encoded += 1
        self.gray.append(len(image.getcolors() or ()) == 1)
        return EchoEncoding(image)

    def close(self) -> None:
        self.closed = True


class EchoEncoding:
    def __init__(self, image: Image.Image) -> None:
        self.image = image

    def answer(self, questions: Sequence[str]) -> list[Prediction]:
        visible = np.zeros((self.image.height, self.image.width), bool)
        visible[:6, :2] = True
        visible[4:6, :6] = True
        region = PredictedRegion(
            visible=Mask.from_dense(visible),
            amodal=Mask.from_dense(np.ones_like(visible)),
        )
        hidden = PredictedRegion(amodal=Mask.from_dense(np.ones_like(visible)))
        regions = (region, hidden)
        return [
            Prediction(answer=mw.Answer(text=question or "-"), regions=regions)
            for question in questions
        ]


def image_of(index: int = 0) -> Image.Image:
    return Image.fromarray(make_scene(31, index, "test").image).resize((32, 24))


def asked(model: mw.LoadedModel, index: int = 0) -> list[str]:
    """The questions that reach the inner model."""
    predictions = model.predict(image_of(index), QUESTIONS)
    return [prediction.answer.text for prediction in predictions if prediction.answer]


def predict(name: str, index: int = 2) -> list[Prediction]:
    """A baseline of `tiny` on a scene."""
    shown = make_scene(31, index, "test")
    model = make_predictor(name)
    assert isinstance(model, Predictor)
    questions = [question.text for question in shown.questions]
    return list(model.predict(Image.fromarray(shown.image), questions))


@pytest.mark.parametrize("name", [*BASELINES, "whole-image"])
def test_every_baseline_answers_every_question(name: str) -> None:
    assert len(predict(name)) == len(make_scene(31, 2, "test").questions)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_identified_by_itself_and_its_model(name: str) -> None:
    model: Any = mw.baseline(Echo(), name).predictor
    assert model.name == f"{name} of echo"
    assert model.weights_hash == "w1"
    assert model.config["baseline"] == name
    assert model.config["model"]["name"] == "echo"
    assert model.config["model"]["source"], "the file of a user's class is hashed"
    assert getattr(make_predictor(name), "name", None) == f"{name} of tiny"


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_has_the_optional_attributes_of_its_model(name: str) -> None:
    class Limited(Echo):
        timeout: float | None = None

        def domain_warning(self, image: Image.Image) -> str:
            return "unlike"

    plain = mw.baseline(Echo(), name)
    assert not hasattr(plain.predictor, "timeout")
    assert plain.encode(image_of()).domain_warning is None
    limited = Limited()
    wrapped: Any = mw.baseline(limited, name)
    wrapped.predictor.timeout = 3.0
    assert limited.timeout == 3.0
    warning = wrapped.encode(image_of()).domain_warning
    assert warning == (None if name == "image-blind" else "unlike")
    wrapped.close()
    assert limited.closed


def test_the_image_is_encoded_once_for_all_questions() -> None:
    echo = Echo()
    encoded = mw.baseline(echo, "text-blind").encode(image_of())
    encoded.ask("the mug")
    encoded.ask(["the bowl", "the mug"])
    assert echo.encoded == 1


def test_text_blind_asks_nothing() -> None:
    assert asked(mw.baseline(Echo(), "text-blind")) == ["-"] * 4
    first, *others = predict("text-blind")
    assert all(other == first for other in others)


def test_image_blind_shows_a_gray_image_and_encodes_it_once() -> None:
    echo = Echo()
    model = mw.baseline(echo, "image-blind")
    assert asked(model, 0) == asked(model, 1) == QUESTIONS
    assert echo.gray == [True]
    model.predict(image_of().resize((8, 8)), QUESTIONS)
    assert echo.gray == [True, True], "another size is another image"


def test_shuffled_questions_of_an_image_all_change_places() -> None:
    model = mw.baseline(Echo(), "shuffled-questions")
    shuffled = asked(model)
    assert sorted(shuffled) == sorted(QUESTIONS)
    assert all(after != before for after, before in zip(shuffled, QUESTIONS))
    assert asked(model) == shuffled == asked(mw.baseline(Echo(), "shuffled-questions"))
    orders = {
        tuple(asked(mw.baseline(Echo(), "shuffled-questions", seed=seed)))
        for seed in range(8)
    }
    assert len(orders) > 1
    assert len({tuple(asked(model, index)) for index in range(8)}) > 1
    (only,) = model.predict(image_of(), ["the mug"])
    assert only.answer == mw.Answer(text="-"), "there is no other question"
    assert model.predict(image_of(), []) == []


def test_shuffled_questions_can_be_drawn_from_a_dataset() -> None:
    model = mw.baseline(Echo(), "shuffled-questions", data="world")
    pool = set(mw.load_dataset("world").samples.question)
    drawn = asked(model)
    assert set(drawn) <= pool
    assert len(set(drawn)) > 1
    alone = [
        prediction.answer.text
        for question in QUESTIONS
        for prediction in model.predict(image_of(), [question])
        if prediction.answer
    ]
    assert alone == drawn, "a question that is asked again alone gets the same one"
    question = sorted(pool)[0]
    (prediction,) = model.predict(image_of(), [question])
    assert prediction.answer != mw.Answer(text=question)


def test_hulls_are_plain_where_the_model_does_not_list_objects() -> None:
    (prediction,) = mw.baseline(Echo(), "convex-hull").predict(image_of(), ["the mug"])
    seen, unseen = prediction.regions
    assert seen.visible is not None
    assert seen.amodal is not None
    assert (
        seen.amodal.to_dense().tolist() == fill_hull(seen.visible.to_dense()).tolist()
    )
    assert seen.visible.area < seen.amodal.area < 36
    assert unseen.visible is None
    assert unseen.amodal is not None
    assert unseen.amodal.area == 0, "nothing is seen, so nothing is completed"


def test_hulls_are_clipped_to_the_objects_that_the_model_lists() -> None:
    class Lists(EchoEncoding):
        def visible_objects(self) -> list[Mask]:
            corner = np.zeros((self.image.height, self.image.width), bool)
            corner[3, 3] = True
            return [Mask.from_dense(corner)]

    class Listing(Echo):
        def encode(self, image: Image.Image) -> EchoEncoding:
            return Lists(image)

    (prediction,) = mw.baseline(Listing(), "convex-hull").predict(image_of(), ["mug"])
    region = prediction.regions[0]
    assert region.visible is not None
    assert region.amodal is not None
    assert (region.amodal - region.visible).area == 1


def test_other_options_are_passed_on_to_the_inner_model() -> None:
    with pytest.raises(mw.MaskwiseError, match="nowhere"):
        make_predictor("text-blind", of="tiny", folder="nowhere")
    with pytest.raises(ModelError, match="its options: folder"):
        make_predictor("text-blind", of="tiny", checkpoint="x")
    with pytest.raises(UnknownNameError, match="tiny"):
        make_predictor("text-blind", of="tinny")
    with pytest.raises(ModelError, match="is given the ground truth"):
        make_predictor("text-blind", of="oracle")
    with pytest.raises(ModelError, match="unexpected keyword argument 'sed'"):
        mw.baseline("tiny", "shuffled-questions", sed=3)
    with pytest.raises(UnknownNameError, match="text-blind"):
        mw.baseline("tiny", "blind")


def test_a_baseline_of_a_named_model_can_be_loaded_by_its_options() -> None:
    loaded = mw.baseline("tiny", "shuffled-questions", seed=5)
    assert loaded.by_name
    assert loaded.spec == "shuffled-questions"
    again: Any = make_predictor(loaded.spec, **loaded.options)
    assert again.config == loaded.predictor.config  # type: ignore[union-attr]
    assert not mw.baseline(Echo(), "text-blind").by_name


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes") / "data"
    write_scenes(folder, 4, 5)
    return folder


def test_an_interrupted_run_of_a_baseline_ends_with_the_same_bytes(
    scenes: Path, tmp_path: Path
) -> None:
    options = {"of": "tiny", "seed": 1}
    name = "shuffled-questions"
    whole = tmp_path / "whole"
    mw.evaluate(name, scenes, whole, options=options, protocols="strict")
    lines = (whole / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    part = tmp_path / "part"
    mw.evaluate(name, scenes, part, options=options, protocols="strict")
    (part / "predictions.jsonl").write_bytes(b"".join(lines[:7]))
    run = mw.evaluate(name, scenes, part, options=options, protocols="strict")
    assert (part / "predictions.jsonl").read_bytes() == b"".join(lines)
    assert run.model_name == "shuffled-questions of tiny"
    with pytest.raises(mw.StoreError, match="seed was 1, is 2"):
        mw.evaluate(name, scenes, part, options={**options, "seed": 2})


def test_a_baseline_evaluates_like_its_name(scenes: Path) -> None:
    data = Dataset.open(scenes)
    by_object = mw.evaluate(mw.baseline("tiny", "text-blind"), data, protocols="strict")
    by_name = mw.evaluate("text-blind", data, protocols="strict")
    assert list(by_object.predictions or ()) == list(by_name.predictions or ())


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


def test_the_hull_of_a_ring_is_filled_and_a_line_is_its_own_hull() -> None:
    ring = np.zeros((9, 9), bool)
    ring[1:8, 1:8] = True
    ring[3:6, 3:6] = False
    assert fill_hull(ring).sum() == 49
    line = np.zeros((9, 9), bool)
    line[4, 2:7] = True
    assert (fill_hull(line) == line).all()
    assert not fill_hull(np.zeros((4, 4), bool)).any()


def test_turn_blind_leaves_earlier_turns_out() -> None:
    class Recalls:
        def predict(self, image: Any, questions: Sequence[str]) -> list[Prediction]:
            counts = [len(earlier_turns(question)) for question in questions]
            return [
                Prediction(answer=Answer(text=str(count)), no_target=True)
                for count in counts
            ]

    asked = continue_dialogue("And its lid?", [Turn(question="the pot")])
    image = Image.new("RGB", (8, 8))
    for model, count in ((Recalls(), "1"), (mw.baseline(Recalls(), "turn-blind"), "0")):
        (prediction,) = model.predict(image, [asked])
        assert str(prediction.answer) == count

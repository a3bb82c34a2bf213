"""Models are loaded, asked and closed in the same way, whatever they are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import maskwise as mw

QUESTION = "the whole cup, hidden part included"


class Square:
    """Predicts the upper left quarter of the image for every question."""

    def __init__(self) -> None:
        self.closed = False

    def predict(
        self, image: Image.Image, questions: Sequence[str]
    ) -> list[mw.Prediction]:
        mask = np.zeros((image.height, image.width), bool)
        mask[: image.height // 2, : image.width // 2] = True
        return [
            mw.Prediction(regions=[mw.PredictedRegion(visible=mask)]) for _ in questions
        ]

    def close(self) -> None:
        self.closed = True


class Broken:
    """Fails on every question."""

    def predict(
        self, image: Image.Image, questions: Sequence[str]
    ) -> list[mw.Prediction]:
        raise ValueError("out of memory")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "scene.png"
    mw.load_dataset("world")[0].image.save(path)
    return path


def test_the_bundled_model_answers_about_a_file(scene: Path) -> None:
    model = mw.load_model("tiny")
    encoded = model.encode(scene)
    prediction = encoded.ask(QUESTION)
    assert prediction.answer is not None
    assert prediction.answer.text
    assert prediction.mask_type == "amodal"
    found = encoded.ask(mw.load_dataset("world")[0].question)
    masks = found.masks("visible").to_dense()
    assert masks.shape[1:] == (encoded.image.height, encoded.image.width)
    assert repr(model) == "LoadedModel('tiny')"
    assert "tiny" in repr(encoded)
    assert (encoded._repr_png_() or b"").startswith(b"\x89PNG")


def test_one_question_or_several(scene: Path) -> None:
    encoded = mw.load_model("tiny").encode(scene)
    several = encoded.ask([QUESTION, "the book"])
    assert several == [encoded.ask(QUESTION), encoded.ask("the book")]
    assert encoded.ask([]) == []


def test_an_image_may_be_a_path_bytes_pil_or_an_array(scene: Path) -> None:
    model = mw.load_model("tiny")
    image = mw.open_image(scene)
    expected = model.ask(scene, QUESTION)
    for given in (str(scene), scene.read_bytes(), image, np.asarray(image)):
        assert model.ask(given, QUESTION) == expected


def test_a_prediction_draws_itself_on_the_image(scene: Path, tmp_path: Path) -> None:
    prediction = mw.load_model("tiny").ask(scene, QUESTION)
    prediction.plot().save(tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as image:
        assert image.width >= 640
    assert (prediction._repr_png_() or b"").startswith(b"\x89PNG")


def test_an_object_with_predict_is_a_model(scene: Path) -> None:
    square = Square()
    with mw.load_model(square) as model:
        prediction = model.ask(scene, "anything")
        assert len(prediction.masks("visible")) == 1
    assert square.closed


def test_a_model_may_have_an_encode_of_its_own(scene: Path) -> None:
    class Encoding(Square):
        def encode(self, image: Image.Image) -> int:
            return 1

    with mw.load_model(Encoding()) as model:
        assert len(model.ask(scene, "anything").masks("visible")) == 1


@pytest.mark.parametrize(
    "given", [3, None, ["scene.png"], np.zeros((4, 4)), np.zeros((4, 4, 3))]
)
def test_other_images_are_refused_with_a_sentence(given: Any) -> None:
    with pytest.raises(mw.ImageError, match="expected"):
        mw.load_model(Square()).encode(given)


@pytest.mark.parametrize("given", [3, None, object(), Square])
def test_other_models_are_refused_with_a_sentence(given: Any) -> None:
    with pytest.raises(
        mw.ModelError, match=r"expected the name of a model or an object with predict"
    ):
        mw.load_model(given)


@pytest.mark.parametrize("given", [3, None, [3], "", ["  "]])
def test_other_questions_are_refused_with_a_sentence(scene: Path, given: Any) -> None:
    with pytest.raises(mw.ModelError, match="question"):
        mw.load_model(Square()).ask(scene, given)


def test_what_a_model_raises_becomes_a_model_error(scene: Path) -> None:
    with pytest.raises(mw.ModelError, match="ValueError: out of memory"):
        mw.load_model(Broken()).ask(scene, "anything")


def test_an_oracle_cannot_be_asked(scene: Path) -> None:
    with pytest.raises(mw.ModelError, match="needs the ground truth"):
        mw.load_model("oracle").encode(scene)


def test_options_need_a_name() -> None:
    with pytest.raises(
        mw.ModelError, match="options are for a model that is loaded by name"
    ):
        mw.load_model(Square(), noise=3)
    with pytest.raises(mw.UnknownNameError, match="tiny"):
        mw.load_model("tinny")

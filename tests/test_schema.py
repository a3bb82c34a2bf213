"""Records accept what people have, refuse what is invalid with a sentence, and show themselves shortly."""

from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

from maskwise.errors import RecordError
from maskwise.masks import Mask
from maskwise.schema import (
    Answer,
    Phrase,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
    Turn,
    attach,
    continue_dialogue,
)

SQUARE = np.zeros((4, 6), bool)
SQUARE[1:3, 1:3] = True
MASK = Mask.from_dense(SQUARE)
REGION = Region(id="r", name="cup", visible=MASK, amodal=MASK)
FOUND = PredictedRegion(visible=MASK, score=0.5, name="cup")


def test_a_model_may_repeat_a_question_of_a_dialogue() -> None:
    turns = [Turn(question="the cup", answer="It is the cup.")]
    question = continue_dialogue("and the one behind it?", turns)
    region = PredictedRegion(visible=MASK, name=question)
    prediction = Prediction(answer=Answer(text=question), regions=[region])
    decoded = msgspec.json.decode(msgspec.json.encode(prediction))
    assert decoded["answer"]["text"] == "and the one behind it?"
    assert decoded["regions"][0]["name"] == "and the one behind it?"
    with pytest.raises(RecordError, match="expected a text, found"):
        PredictedRegion(visible=MASK, name=3)


def test_a_prediction_needs_no_sample_and_takes_lists() -> None:
    prediction = Prediction(regions=[FOUND])
    assert prediction.sample == ""
    assert prediction.regions == (FOUND,)
    assert hash(prediction) == hash(Prediction(regions=(FOUND,)))
    assert (
        msgspec.json.decode(msgspec.json.encode(prediction), type=Prediction)
        == prediction
    )


def test_phrases_answers_and_targets_take_lists() -> None:
    answer = Answer(text="A cup.", phrases=[Phrase(start=2, stop=5, regions=[0])])
    assert answer.phrases[0].regions == (0,)
    assert Sample(
        id="s", image_id="p", question="?", targets=[REGION], answer=answer
    ).targets == (REGION,)


@pytest.mark.parametrize(
    "value",
    [
        SQUARE,
        SQUARE.astype(np.uint8) * 255,
        SQUARE.tolist(),
        {"size": [4, 6], "counts": MASK.counts},
    ],
    ids=["bool", "uint8", "nested lists", "COCO RLE"],
)
def test_masks_are_converted(value: Any) -> None:
    assert PredictedRegion(visible=value).visible == MASK
    assert Region(id="r", name="cup", amodal=value).amodal == MASK


def test_an_answer_may_be_text() -> None:
    prediction = Prediction(answer="A cup.")  # type: ignore[arg-type]
    assert prediction.answer == Answer(text="A cup.")
    assert str(prediction.answer) == "A cup."


def test_numpy_scores_are_numbers() -> None:
    found = PredictedRegion(visible=MASK, score=np.float32(0.25))  # type: ignore[arg-type]
    assert type(found.score) is float
    assert found.score == 0.25


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Prediction(regions=FOUND),
            "regions must be a list .* not a value of type PredictedRegion",
        ),
        (
            lambda: Prediction(regions=[MASK]),
            "regions must be of type PredictedRegion, not .* Mask",
        ),
        (lambda: Prediction(regions=3), "regions must be a list"),
        (lambda: Prediction(sample=7), "expected a text, found a value of type int"),
        (lambda: Prediction(answer=7), "answer must be an Answer or a text"),
        (
            lambda: Prediction(mask_type="hidden"),
            "mask_type must be one of visible, amodal, both",
        ),
        (lambda: PredictedRegion(visible="cup"), "visible is not a mask"),
        (lambda: PredictedRegion(visible=np.zeros(5)), "visible is not a mask"),
        (lambda: PredictedRegion(visible={"size": [4, 6]}), "visible is not a mask"),
        (PredictedRegion, "needs a visible or an amodal mask"),
        (lambda: PredictedRegion(visible=MASK, score="high"), "score must be a number"),
        (lambda: PredictedRegion(visible=MASK, score=1.5), "not between 0 and 1"),
        (lambda: Region(id="", name="cup", visible=MASK), "needs an id"),
        (
            lambda: Region(id="r", name=None, visible=MASK),
            "region 'r': expected a text",
        ),
        (
            lambda: Sample(id="s", image_id="p", question=None),
            "sample 's': expected a text, found None",
        ),
        (
            lambda: Answer(text="a", phrases=[Phrase(start=0, stop=9, regions=())]),
            "outside the answer",
        ),
        (
            lambda: Prediction(
                answer=Answer(
                    text="a", phrases=(Phrase(start=0, stop=1, regions=(2,)),)
                ),
                regions=[FOUND],
            ),
            "refers to region 2, but there are 1",
        ),
        (
            lambda: Region(
                id="r", name="cup", visible=MASK, amodal=np.ones((2, 2), bool)
            ),
            r"masks of different sizes \(height, width\)",
        ),
    ],
)
def test_invalid_fields_are_named(make: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        make()


def test_masks_of_a_prediction() -> None:
    hidden = PredictedRegion(amodal=MASK)
    prediction = Prediction(regions=[FOUND, hidden], mask_type="amodal")
    assert prediction.masks("amodal").to_dense().tolist() == [SQUARE.tolist()]
    assert len(prediction.masks()) == 1
    assert len(Prediction().masks("visible")) == 0
    with pytest.raises(RecordError, match="'visible' or 'amodal'"):
        prediction.masks("hidden")  # type: ignore[arg-type]


def test_reprs_are_short() -> None:
    question = "Which " + "very " * 100 + "large cup?"
    sample = Sample(id="s", image_id="p", question=question, targets=[REGION] * 50)
    prediction = Prediction(
        sample="s", answer="A cup.", mask_type="both", regions=[FOUND] * 50
    )  # type: ignore[arg-type]
    assert repr(REGION) == "Region('r', 'cup', 6 x 4, visible 4 px, amodal 4 px)"
    assert repr(FOUND) == "PredictedRegion('cup', 6 x 4, visible 4 px, score=0.5)"
    assert repr(prediction) == "Prediction('s', 'A cup.', mask_type='both', 50 regions)"
    assert repr(Prediction(error="no memory")) == "Prediction(error='no memory')"
    assert len(repr(sample)) < 250


def test_a_prediction_draws_itself() -> None:
    prediction = Prediction(regions=[FOUND])
    image = Image.new("RGB", (6, 4), "navy")
    assert prediction.plot().size == prediction.plot(image).size
    shown = attach(
        Prediction(regions=[FOUND]), image=image, question="Where is the cup?"
    )
    assert shown == prediction
    assert shown.plot().height > prediction.plot(image).height, (
        "the question is written below"
    )
    assert (shown._repr_png_() or b"").startswith(b"\x89PNG")
    assert REGION._repr_png_().startswith(b"\x89PNG")
    assert Prediction()._repr_png_() is None


def test_drawing_says_what_is_missing() -> None:
    with pytest.raises(RecordError, match="give the image"):
        Prediction().plot()
    with pytest.raises(RecordError, match="expects a PIL image"):
        Prediction(regions=[FOUND]).plot("scene.jpg")  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="was not read from a dataset"):
        Sample(id="s", image_id="p", question="?").plot()


def test_the_repr_of_a_sample_counts_unnamed_targets() -> None:
    region = Region(id="r", name="", visible=Mask.empty(2, 2))
    sample = Sample(id="s", image_id="i", question="what?", targets=(region,))
    assert "targets=[unnamed]" in repr(sample)
    assert "targets=[]" in repr(msgspec.structs.replace(sample, targets=()))

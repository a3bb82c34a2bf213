"""Predictions in every form that people have, in Python and as the JSON of command and HTTP models."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

import maskwise as mw
from maskwise.harness.wire_format import decode_response, response_to_predictions
from maskwise.predictions.conversion import to_prediction
from tests.harness.fakes import write_dataset

SIZE = (4, 6)
INSIDE = np.zeros(SIZE, bool)
INSIDE[1:3, 2:5] = True
MASK = mw.Mask.from_dense(INSIDE)
RUNS = [9, 2, 2, 2, 2, 2, 5]
"""INSIDE as uncompressed COCO run lengths: column by column, background first."""


def png(pixels: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def detections(**more: Any) -> SimpleNamespace:
    """As supervision has them."""
    return SimpleNamespace(
        xyxy=np.zeros((2, 4)), mask=np.stack([INSIDE, INSIDE]), **more
    )


ONE_MASK = {
    "an array": INSIDE,
    "a list of arrays": [INSIDE],
    "arrays in an array": INSIDE[None],
    "run lengths": {"size": [4, 6], "counts": RUNS},
    "a list of run lengths": [{"size": [4, 6], "counts": RUNS}],
    "an image": Image.fromarray(INSIDE),
    "masks": mw.Masks.from_masks([MASK]),
    "a dict of masks": {"masks": [INSIDE]},
    "a prediction": mw.Prediction(regions=(mw.PredictedRegion(visible=MASK),)),
    "a dict like a prediction": {"regions": [{"visible": INSIDE}]},
    "a region with a mask": {"regions": [{"mask": INSIDE}]},
    "a PNG": {"regions": [{"visible": {"png": png(INSIDE)}}]},
    "a PNG of gray levels": {
        "regions": [{"visible": {"png": png(INSIDE.astype(np.uint8))}}]
    },
    "polygons": {"masks": [[[1.5, 0.5, 4.5, 0.5, 4.5, 2.5, 1.5, 2.5]]]},
    "a box": {"regions": [{"box": [2, 1, 5, 3], "as_mask": True}]},
    "points": {
        "regions": [
            {
                "points": [[x + 0.5, y + 0.5] for x in (2, 3, 4) for y in (1, 2)],
                "as_mask": True,
            }
        ]
    },
}


@pytest.mark.parametrize("form", ONE_MASK)
def test_every_form_of_a_mask_is_the_same_prediction(form: str) -> None:
    prediction = to_prediction(ONE_MASK[form], size=SIZE)
    assert [region.visible for region in prediction.regions] == [MASK]
    assert not prediction.no_target


class Returning:
    """A model that returns what it was given, for every question."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Any]:
        return [self.value for _ in questions]


@pytest.mark.parametrize("form", ONE_MASK)
def test_a_model_may_return_every_form(form: str) -> None:
    model = mw.load_model(Returning(ONE_MASK[form]))
    image = Image.new("RGB", (6, 4))
    (region,) = model.ask(image, "the box?").regions
    assert region.visible == MASK


def test_scoring_and_returning_give_the_same(tmp_path: Path) -> None:
    data = mw.load_dataset(write_dataset(tmp_path / "truth", 4))
    strip = np.zeros((12, 16), bool)
    strip[:, :5] = True
    returned = mw.evaluate(Returning([strip]), data, protocols="strict")
    scored = mw.score([[strip]] * len(data), data, protocols="strict")
    assert returned["strict"]["giou"] == scored["strict"]["giou"] > 0


def test_tensors_are_masks() -> None:
    torch = pytest.importorskip("torch")
    prediction = to_prediction(torch.from_numpy(INSIDE)[None], size=SIZE)
    assert prediction.regions[0].visible == MASK


def test_detections_keep_confidence_and_class_names() -> None:
    item = detections(
        confidence=np.array([0.5, 0.25]), data={"class_name": np.array(["cup", "lid"])}
    )
    prediction = to_prediction(item)
    assert [region.score for region in prediction.regions] == [0.5, 0.25]
    assert [region.name for region in prediction.regions] == ["cup", "lid"]
    assert to_prediction(detections(confidence=None, data={})).regions[0].score == 1


def test_a_dict_has_scores_names_and_an_answer() -> None:
    item = {
        "masks": [INSIDE, INSIDE],
        "scores": np.array([0.5, 0.75]),
        "labels": ["cup", "lid"],
        "answer": "the cup and its lid",
        "mask_type": "amodal",
    }
    prediction = to_prediction(item, mask_type="amodal")
    assert prediction.regions[1].amodal == MASK
    assert prediction.regions[1].score == 0.75
    assert prediction.regions[0].name == "cup"
    assert prediction.answer is not None
    assert prediction.answer.text == "the cup and its lid"


@pytest.mark.parametrize("nothing", [[], np.zeros((0, 4, 6), bool)])
def test_no_masks_say_that_there_is_no_target(nothing: Any) -> None:
    assert to_prediction(nothing, size=SIZE).no_target
    assert to_prediction({"no_target": True}).no_target
    assert not to_prediction({"masks": nothing}).no_target, "a dict says it itself"


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (None, "found None; a model that finds nothing returns an empty list"),
        ("a cup", "expected an array of bools or numbers, got str$"),
        ({"mask": INSIDE}, "a prediction has the unknown key 'mask'; known: answer"),
        ({"masks": [INSIDE], "scores": []}, "0 scores for 1 masks"),
        ({"regions": [{"box": [0, 0, 1, 1]}]}, '"as_mask": true says that it stands'),
        ({"regions": [{"box": [0, 1], "as_mask": True}]}, r"a box is \[x0, y0, x1, y1"),
        ({"regions": [{"points": [1], "as_mask": True}]}, r"points are \[\[x, y\], .*"),
        ({"regions": [{"visible": {"png": "%"}}]}, "not valid base64"),
        ({"regions": [{"visible": {"png": "AAAA"}}]}, "a PNG cannot be read"),
        ({"regions": [{"visible": {"png": 7}}]}, "a PNG is bytes or base64"),
        ({"regions": [{"polygon": []}]}, "a region has the unknown key 'polygon'"),
        (INSIDE[:2], r"expected a mask of height and width \(4, 6\), got \(2, 6\)"),
    ],
)
def test_other_values_are_refused_with_a_sentence(item: Any, said: str) -> None:
    with pytest.raises(mw.MaskwiseError, match=said):
        to_prediction(item, size=SIZE)
    with pytest.raises(mw.ModelError, match=said):
        mw.load_model(Returning(item)).ask(Image.new("RGB", (6, 4)), "the box?")


def test_a_box_needs_the_size_of_the_image() -> None:
    with pytest.raises(mw.RecordError, match="needs the size of the image"):
        to_prediction({"regions": [{"box": [0, 0, 1, 1], "as_mask": True}]})


# -- the JSON of command and HTTP models -----------------------------------------------


def receive(*predictions: Any) -> list[mw.Prediction]:
    text = msgspec.json.encode({"id": "1", "predictions": predictions})
    return response_to_predictions(decode_response(text), len(predictions), SIZE)


@pytest.mark.parametrize(
    "form",
    ["a PNG", "a PNG of gray levels", "a box", "points", "polygons"],
)
def test_responses_may_have_other_forms_of_masks(form: str) -> None:
    (prediction,) = receive({**ONE_MASK[form], "answer": {"text": "it"}})
    assert [region.visible for region in prediction.regions] == [MASK]
    assert prediction.answer == mw.Answer(text="it")


def test_responses_may_have_uncompressed_run_lengths() -> None:
    rle = {"size": [4, 6], "counts": RUNS}
    (prediction,) = receive({"regions": [{"amodal": rle, "score": 0.5}]})
    assert prediction.regions == (mw.PredictedRegion(amodal=MASK, score=0.5),)
    (prediction,) = receive({"masks": [rle], "scores": [0.5], "names": ["cup"]})
    assert prediction.regions[0].name == "cup"


def test_a_malformed_prediction_fails_alone() -> None:
    good = {"no_target": True}
    bad = {"regions": [{"box": [0, 0, 1, 1]}]}
    first, second, third = receive(good, bad, {"regions": 7})
    assert first.no_target
    assert second.error is not None
    assert '"as_mask": true' in second.error
    assert third.error is not None
    assert "malformed" in third.error

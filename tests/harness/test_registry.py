"""Models are found by name, factory or entry point; what is none is said plainly."""

import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ModelError, UnknownNameError
from maskwise.harness.oracle import Oracle
from maskwise.harness.predictor import (
    GroundTruthPredictor,
    Predictor,
    call_model,
    describe_model,
    find_predict_mode,
)
from maskwise.harness.registry import make_predictor, parse_options
from maskwise.registry import MODELS, list_models
from maskwise.schema import Answer, PredictedRegion, Prediction, Sample
from tests.harness.fakes import FAKES, Moody, Painter, Pupil, Tuned, strip

IMAGE = Image.new("RGB", (16, 12))


def samples(*questions: str) -> list[Sample]:
    return [
        Sample(id=f"s{k}", image_id="p", question=text)
        for k, text in enumerate(questions)
    ]


def test_every_model_with_a_name_has_a_line() -> None:
    listed = list_models()
    assert set(MODELS.built_in) <= set(listed)
    assert all(listed.values())


def test_a_model_of_another_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("theirs", f"{FAKES}:Painter", "maskwise.models")]
    monkeypatch.setattr("maskwise.registry.entry_points", lambda group: points)
    monkeypatch.setattr(MODELS, "_plug_ins", None)
    assert list_models()["theirs"] == f"from {FAKES}:Painter"
    assert isinstance(make_predictor("theirs", weights="w3"), Painter)


def test_any_factory_is_a_model() -> None:
    model = make_predictor(f"{FAKES}:Painter", weights="w3")
    assert isinstance(model, Predictor)
    facts = describe_model(model, f"{FAKES}:Painter", {"weights": "w3"})
    assert (facts.name, facts.weights_hash, facts.uses_ground_truth) == (
        "painter",
        "w3",
        False,
    )


def test_a_module_beside_the_user_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_me.py").write_text(
        "class Mine:\n    def predict(self, image, questions):\n        return []\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert type(make_predictor("beside_me:Mine")).__name__ == "Mine"


@pytest.mark.parametrize(
    ("spec", "options", "said"),
    [
        ("nobody", {}, "known: .*oracle.*tiny"),
        ("tests.nowhere:Model", {}, "No module named 'tests.nowhere'"),
        (f"{FAKES}:Nobody", {}, "Nobody"),
        (f"{FAKES}:WIDTH", {}, "is a int, not a factory"),
        (f"{FAKES}:strip", {"width": 3}, r"a Mask has no predict\(image, questions\)"),
        (f"{FAKES}:Painter", {"wieghts": "w3"}, "its options: weights, sleep, calls"),
        ("oracle", {"drop": 2}, "drop=2 is not a probability"),
        ("oracle", {"noise": "much"}, "option noise is 'much'; expected float"),
        ("oracle", {"seed": -1}, "seed=-1 is not an integer, 0 or more"),
        ("sys:exit", {}, "could not be opened: SystemExit"),
        ("sam3", {}, "`maskwise adapters` says what to install"),
        ("sa2va", {}, "`maskwise adapters` says what to install"),
    ],
)
def test_what_is_no_model_is_said_plainly(
    spec: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises((ModelError, UnknownNameError), match=said):
        make_predictor(spec, **options)


def test_options_are_json_where_they_can_be() -> None:
    given = [
        "noise=2",
        "drop=0.5",
        "fast=true",
        "folder=/data/x=y",
        "none=null",
        "empty=",
    ]
    assert parse_options(given) == {
        "noise": 2,
        "drop": 0.5,
        "fast": True,
        "folder": "/data/x=y",
        "none": None,
        "empty": "",
    }
    with pytest.raises(ModelError, match="KEY=VALUE"):
        parse_options(["noise"])
    with pytest.raises(ModelError, match="KEY=VALUE"):
        parse_options(["no-ise=2"])


def test_a_config_that_is_no_json_is_refused() -> None:
    model = Painter()
    model.config = {"device": object()}  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="config"):
        describe_model(model, "mine", {})


@pytest.mark.parametrize(
    "line", ["raise RuntimeError('no CUDA')", "import sys; sys.exit('no CUDA')", "1 +"]
)
def test_a_module_that_fails_while_it_loads_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "failing_module.py").write_text(line)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(
        ModelError, match=r"cannot load failing_module:Mine: .*(no CUDA|invalid syntax)"
    ):
        make_predictor("failing_module:Mine")


def test_facts_are_what_json_makes_of_them() -> None:
    facts = describe_model(Tuned(), "tuned", {"size": (2, 3)})
    assert facts.config == {"sides": [512, 1024], "rate": None, "7": "seven"}
    assert facts.options == {"size": [2, 3]}
    model = Painter(weights=b"w0")  # type: ignore[arg-type]
    with pytest.raises(
        ModelError, match="weights_hash is of type bytes; expected a string or None"
    ):
        describe_model(model, "mine", {})


class Sayer:
    """Says what it is given."""

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return [self.prediction for _ in questions]


def region(score: object) -> PredictedRegion:
    return PredictedRegion(visible=strip(3), score=score)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"no_target": np.zeros(2)}, r"numpy\.ndarray"),
        ({"answer": Answer(text="half: \ud800")}, "surrogates"),
    ],
)
def test_a_prediction_that_cannot_be_recorded_is_an_error(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ModelError, match=f"cannot be recorded: .*{said}"):
        call_model(
            Sayer(Prediction(sample="", **fields)), "predict", IMAGE, samples("a")
        )


def test_a_prediction_is_what_it_is_once_read_again() -> None:
    """So that engines that send predictions about give the same bytes as those that do not."""
    said = Prediction(
        sample="", regions=[region(1), region(np.float32(0.5))], no_target=np.False_
    )  # type: ignore[arg-type]
    [found] = call_model(Sayer(said), "predict", IMAGE, samples("a"))
    assert found == Prediction(sample="s0", regions=(region(1.0), region(0.5)))
    text = msgspec.json.encode(found)
    assert msgspec.json.encode(msgspec.json.decode(text, type=Prediction)) == text


def test_asking_signs_replies() -> None:
    replies = call_model(Painter(), "predict", IMAGE, samples("a", "b"))
    assert [reply.sample for reply in replies] == ["s0", "s1"]
    with pytest.raises(ModelError, match="1 prediction for 2 questions"):
        call_model(Moody(), "predict", IMAGE, samples("few", "b"))
    with pytest.raises(ModelError, match="returned a value of type str"):
        call_model(Moody(), "predict", IMAGE, samples("text"))


def test_ways_of_asking() -> None:
    assert find_predict_mode(Painter()) == "predict"
    assert find_predict_mode(Oracle()) == "predict_with_ground_truth"
    assert find_predict_mode(Pupil(), teacher_forced=True) == "teacher_forced"
    with pytest.raises(ModelError, match="predict_teacher_forced"):
        find_predict_mode(Oracle(), teacher_forced=True)
    assert isinstance(Oracle(), GroundTruthPredictor)
    assert not isinstance(Painter(), GroundTruthPredictor)

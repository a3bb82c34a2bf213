"""The question form of the golden files: one record per question, as `segzero` to `ladder` have it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskwise.protocols.metrics import Scores
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.schema import PredictedRegion, Prediction
from tests.golden.compare import differences
from tests.golden.records import EXACT, OFFICIAL, REPEATED, evaluate, question, rle

Question = Mapping[str, Any]


def read(
    case_input: Mapping[str, Any], *, missing_as_no_mask: bool = False
) -> ScoringInput:
    """The evaluation of a case. missing_as_no_mask: an absent record was given to the official code as no mask."""
    samples = []
    predictions = []
    frames = []
    for turn in range(case_input.get("repeat", 1)):
        for number, asked in enumerate(case_input["questions"]):
            name = f"{turn}-{number}"
            targets = [(rle(target), None) for target in asked["targets"]]
            ignore = rle(asked["ignore"]) if asked["ignore"] else None
            image = f"{turn}-{asked['image']}"
            samples.append(question(name, image, targets, ignore))
            frames.append((asked["height"], asked["width"]))
            prediction = read_prediction(name, asked, missing_as_no_mask)
            if prediction is not None:
                predictions.append(prediction)
    return evaluate(samples, predictions, frames)


def read_prediction(
    name: str, asked: Question, missing_as_no_mask: bool
) -> Prediction | None:
    if asked["preds"] is None:
        return Prediction(sample=name) if missing_as_no_mask else None
    if asked.get("failed"):
        return Prediction(sample=name, error="the answer cannot be parsed")
    regions = tuple(
        PredictedRegion(visible=rle(pred["rle"]), score=pred["score"])
        for pred in asked["preds"]
    )
    return Prediction(sample=name, regions=regions)


def summary(scores: Scores, plain: Scores | None = None) -> dict[str, Any]:
    """The values that every exact block has. plain: the scores without epsilons, where there are any."""
    giou = scores.metrics["giou"]
    ciou = scores.metrics["ciou"]
    values: dict[str, Any] = {
        "giou": giou.value(),
        "ciou": ciou.value(),
        "n": round(float(giou.denominator.sum())),
        "sum_I": int(ciou.numerator.sum()),
        "sum_U": int(ciou.denominator.sum()),
    }
    if "n_acc" in scores.metrics:
        values["n_acc"] = scores.metrics["n_acc"].value()
        values["n_empty_truth"] = int(scores.metrics["n_acc"].denominator.sum())
    if plain is not None:
        values["giou_noeps"] = plain.metrics["giou"].value()
        values["ciou_noeps"] = plain.metrics["ciou"].value()
    return values


def records(scores: Scores) -> list[dict[str, int]]:
    """What the official scripts write per question; questions that are left out have none."""
    ciou = scores.metrics["ciou"]
    counted = np.flatnonzero(scores.metrics["giou"].denominator > 0).tolist()
    return [
        {
            "question": number,
            "intersection": int(ciou.numerator[number]),
            "union": int(ciou.denominator[number]),
        }
        for number in counted
    ]


def percent(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values, metrics times 100."""
    metrics = ("giou", "ciou", "p50", "ap", "ap50")
    return {
        key: 100 * value if key in metrics and value is not None else value
        for key, value in values.items()
    }


def compare_blocks(
    got: Mapping[str, Any],
    case: Mapping[str, Any],
    *,
    float32: bool = False,
    names: Sequence[str] = (),
) -> list[str]:
    """What differs from a case. names: blocks of the case, or none if it has a single one.

    float32: the official code sums in float32. Where it raised an exception there is nothing to compare.
    """
    tolerance = EXACT
    if float32:
        tolerance = REPEATED if "repeat" in case["input"] else OFFICIAL
    problems = []
    for name in names or [""]:
        block = got[name] if name else got
        official = case["expected"][name] if name else case["expected"]
        exact = case["expected_exact"][name] if name else case["expected_exact"]
        if "error" not in official:
            problems += differences(
                undefined_as_nan(block, official),
                official,
                tolerance,
                f"expected.{name}",
            )
        if exact is not None:
            problems += differences(block, exact, EXACT, f"expected_exact.{name}")
    return problems


def undefined_as_nan(
    block: Mapping[str, Any], official: Mapping[str, Any]
) -> dict[str, Any]:
    """An undefined value of ours is None; numpy gives NaN for the mean of nothing."""
    return {
        key: float("nan") if value is None and official.get(key) == "nan" else value
        for key, value in block.items()
    }

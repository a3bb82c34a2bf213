"""ReLA's golden cases through `maskwise.protocols.gres`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.protocols import gres
from maskwise.protocols.metrics import Scores
from maskwise.protocols.scoring_input import ScoringInput
from tests.golden.compare import differences
from tests.golden.records import EXACT, evaluate, prediction_of, question, rle

PERCENT = {
    "gIoU": "giou",
    "cIoU": "ciou",
    "Pr@0.7": "p@0.7",
    "Pr@0.8": "p@0.8",
    "Pr@0.9": "p@0.9",
}
FRACTION = {
    "N_acc": "n_acc",
    "T_acc": "t_acc",
    "N_acc_math": "no_target_accuracy",
    "T_acc_math": "target_accuracy",
}


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"]["samples"])
    scores = gres.score(inputs)
    sources = np.array([sample["source"] for sample in case["input"]["samples"]])
    found: dict[str, Any] = {"per_sample": per_sample(scores), "results": {}}
    for source in dict.fromkeys(sources.tolist()):
        found["results"][source] = metrics(inputs, scores, sources == source)
    found["results"]["full"] = metrics(inputs, scores, np.ones(len(sources), bool))
    expected = {
        key: undefined(value)
        for key, value in case["expected"].items()
        if key != "error"
    }
    return [
        *differences(found, expected, EXACT, "expected"),
        *differences(found, case["expected_exact"], EXACT, "expected_exact"),
    ]


def undefined(tree: Any) -> Any:
    """The official "nan" is 0 / 0, which is undefined (None) here."""
    if isinstance(tree, dict):
        return {key: undefined(value) for key, value in tree.items()}
    return None if tree == "nan" else tree


def read(items: list[Mapping[str, Any]]) -> ScoringInput:
    samples = []
    predictions = []
    frames = []
    for number, item in enumerate(items):
        assert item["gt_nt"] == (not item["gt_instances"])
        targets = [(rle(instance), None) for instance in item["gt_instances"]]
        samples.append(question(str(number), str(number), targets))
        predictions.append(
            prediction_of(str(number), [rle(item["pred"])], no_target=item["pred_nt"])
        )
        frames.append((item["height"], item["width"]))
    return evaluate(samples, predictions, frames)


def per_sample(scores: Scores) -> list[dict[str, float]]:
    giou = scores.metrics["giou"]
    ciou = scores.metrics["ciou"]
    columns = zip(
        ciou.numerator.tolist(), ciou.denominator.tolist(), giou.numerator.tolist()
    )
    return [{"I": shared, "U": union, "IoU": iou} for shared, union, iou in columns]


def metrics(inputs: ScoringInput, scores: Scores, rows: BoolArray) -> dict[str, Any]:
    values = {name: metric.value(rows) for name, metric in scores.metrics.items()}
    percent = {
        key: None if values[ours] is None else 100 * values[ours]
        for key, ours in PERCENT.items()
    }
    n_acc = scores.metrics["no_target_accuracy"]
    t_acc = scores.metrics["target_accuracy"]
    found = int(n_acc.numerator[rows].sum())
    empty = int(n_acc.denominator[rows].sum())
    kept = int(t_acc.numerator[rows].sum())
    targeted = int(t_acc.denominator[rows].sum())
    return {
        **percent,
        **{key: values[ours] for key, ours in FRACTION.items()},
        "counts": {"TP": found, "FN": empty - found, "TN": kept, "FP": targeted - kept},
        "sum_I": int(scores.metrics["ciou"].numerator[rows].sum()),
        "sum_U": int(scores.metrics["ciou"].denominator[rows].sum()),
        "n": int(rows.sum()),
        "n_targeted": targeted,
    }

"""SA-Co's golden cases through `maskwise.protocols.saco`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.protocols import saco
from maskwise.protocols.metrics import Scores
from maskwise.protocols.saco import LMMS_EVAL, SAM3, THRESHOLDS
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.schema import Region, Sample
from tests.golden.questions import Question, compare_blocks, read_prediction
from tests.golden.records import evaluate, rle

AT_LEVELS = {"": slice(None), "@0.5": slice(0, 1), "@0.75": slice(5, 6)}
"""The keys of the official metrics: over all thresholds, and at two of them."""


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    blocks = all_blocks(read(case["input"]))
    official = case["expected"]["sam3"]
    for key, value in blocks["sam3"].items():
        # The official code says -1 where the mean is over nothing.
        if value is None and official.get(key) == -1.0:
            official[key] = None
    return compare_blocks(blocks, case, names=list(blocks))


def all_blocks(inputs: ScoringInput) -> dict[str, dict[str, Any]]:
    cut = inputs.predictions.keep_regions(inputs.predictions.score >= 0.5)
    confident = ScoringInput(inputs.ground_truth, cut)
    return {
        "sam3": sam3_block(saco.score(inputs)),
        "lmms_eval": lmms_block(saco.score(inputs, scorer="lmms_eval")),
        "lmms_eval_score05": lmms_block(saco.score(confident, scorer="lmms_eval")),
    }


def read(case_input: Mapping[str, Any]) -> ScoringInput:
    """The evaluation of a case: the first annotator's targets, and those of the others."""
    samples = []
    predictions = []
    frames = []
    for number, asked in enumerate(case_input["questions"]):
        name = str(number)
        samples.append(read_sample(name, asked))
        frames.append((asked["height"], asked["width"]))
        prediction = read_prediction(name, asked, missing_as_no_mask=True)
        if prediction is not None and prediction.error is not None:
            prediction = replace_error(name)
        if prediction is not None:
            predictions.append(prediction)
    return evaluate(samples, predictions, frames)


def replace_error(name: str) -> Any:
    """The official code is given no detection for a failed answer, as for none."""
    return read_prediction(name, {"preds": []}, missing_as_no_mask=True)


def read_sample(name: str, asked: Question) -> Sample:
    annotators = asked.get("annotators", [asked["targets"]])
    sets = [
        tuple(
            Region(id=f"{name}-{number}-{item}", name="thing", visible=rle(target))
            for item, target in enumerate(targets)
        )
        for number, targets in enumerate(annotators)
    ]
    exhaustive = all(asked.get("exhaustive", [True]))
    return Sample(
        id=name,
        image_id=asked["image"],
        question="?",
        targets=sets[0],
        other_targets=tuple(sets[1:]),
        tags={"exhaustive": "yes" if exhaustive else "no"},
    )


def sam3_block(scores: Scores) -> dict[str, Any]:
    """The metrics under their official names."""
    sums = scores.composites["cgf1"].columns.sum(0, keepdims=True)
    levels = sums[0, : 5 * len(THRESHOLDS)].reshape(5, -1)
    tp, fp, fn, positive_fp, _ = levels
    block: dict[str, Any] = {
        "n": int(scores.metrics["count_accuracy"].denominator.sum()),
        "counts": {
            "TPs": tp.astype(int).tolist(),
            "FPs": fp.astype(int).tolist(),
            "positive_micro_FPs": positive_fp.astype(int).tolist(),
            "FNs": fn.astype(int).tolist(),
        },
        "IL_counts": {
            "TP": int(sums[0, saco.FOUND]),
            "FP": int(sums[0, saco.INVENTED]),
            "TN": int(sums[0, saco.SILENT]),
            "FN": int(sums[0, saco.MISSED]),
        },
        "IL_precision": float(SAM3.presence_precision(sums)[0]),
        "IL_recall": float(SAM3.presence_recall(sums)[0]),
        "IL_F1": float(SAM3.presence_f1(sums)[0]),
        "IL_FPR": float(SAM3.false_positive_rate(sums)[0]),
        "IL_MCC": float(SAM3.mcc(sums)[0]),
        "IL_MCC_noeps": float(LMMS_EVAL.mcc(sums)[0]),
        "positive_micro_F1_noeps": float(LMMS_EVAL.positive_f1(sums)[0]),
        "cgF1_noeps": float(LMMS_EVAL.cgf1(sums)[0]),
    }
    for suffix, level in AT_LEVELS.items():
        part = at_levels(sums, level)
        macro = float(SAM3.macro_f1(part)[0])
        block |= {
            f"cgF1{suffix}": float(SAM3.cgf1(part)[0]),
            f"precision{suffix}": float(SAM3.precision(part)[0]),
            f"recall{suffix}": float(SAM3.recall(part)[0]),
            f"F1{suffix}": float(SAM3.f1(part)[0]),
            f"positive_micro_F1{suffix}": float(SAM3.positive_f1(part)[0]),
            f"positive_micro_precision{suffix}": float(
                SAM3.positive_precision(part)[0]
            ),
            f"positive_macro_F1{suffix}": None if np.isnan(macro) else macro,
        }
    return block


def lmms_block(scores: Scores) -> dict[str, Any]:
    sums = scores.composites["cgf1"].columns.sum(0, keepdims=True)
    macro = float(LMMS_EVAL.macro_f1(sums)[0])
    block: dict[str, Any] = {
        "IL_precision": float(LMMS_EVAL.presence_precision(sums)[0]),
        "IL_recall": float(LMMS_EVAL.presence_recall(sums)[0]),
        "IL_F1": float(LMMS_EVAL.presence_f1(sums)[0]),
        "IL_MCC": float(LMMS_EVAL.mcc(sums)[0]),
        "macro_F1": 0.0 if np.isnan(macro) else macro,
        "count_accuracy": scores.metrics["count_accuracy"].value(),
    }
    for suffix, level in zip(("", "_50", "_75"), AT_LEVELS.values()):
        part = at_levels(sums, level)
        block[f"pmF1{suffix}"] = float(LMMS_EVAL.positive_f1(part)[0])
        block[f"cgF1{suffix}"] = 100 * float(LMMS_EVAL.cgf1(part)[0])
    return block


def at_levels(sums: Any, level: slice) -> Any:
    """The sums with the counts of other thresholds replaced by those of one, so that the mean is its value."""
    count = len(THRESHOLDS)
    levels = sums[:, : 5 * count].reshape(len(sums), 5, count)[:, :, level]
    repeated = np.repeat(levels, count // levels.shape[2], axis=2)
    return np.concatenate(
        [repeated.reshape(len(sums), -1), sums[:, 5 * count :]], axis=1
    )

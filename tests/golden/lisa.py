"""LISA's golden cases through `maskwise.protocols.lisa` (and what MMR and MUSE share with it)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskwise.protocols import lisa
from maskwise.protocols.lisa_counts import (
    FOREGROUND,
    Float32Sums,
    TwoClassCounts,
    sum_in_float32,
)
from maskwise.protocols.metrics import Scores, sums
from maskwise.protocols.scoring_input import ScoringInput
from tests.golden.compare import differences
from tests.golden.records import (
    EXACT,
    OFFICIAL,
    REPEATED,
    evaluate,
    prediction_of,
    question,
    rle,
    threshold,
)


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    images = case["input"]["images"]
    repeat = case["input"].get("repeat", 1)
    inputs = read(images, repeat)
    pair_counts = lisa.pair(inputs.overlaps("requested"))
    scores = lisa.score(inputs)
    exact = exact_block(scores, lisa.score(inputs, epsilon=False), pair_counts)
    exact["per_mask"] = group_by_image(inputs, pair_counts)[: len(images)]
    official = lisa.score(inputs, legacy_float32=True).headline()
    running = run(inputs, pair_counts, scores)
    official_block = {**official, "per_image": per_image(running, "n")[: len(images)]}
    tolerance = OFFICIAL if repeat == 1 else REPEATED
    return [
        *differences(official_block, case["expected"], tolerance, "expected"),
        *differences(exact, case["expected_exact"], EXACT, "expected_exact"),
    ]


def read(images: Sequence[Mapping[str, Any]], repeat: int) -> ScoringInput:
    """Every paired mask is a question of its own, since each has its own ignored pixels. Extra predictions and masks
    without a prediction belong to the last of these questions: neither is ever paired.
    """
    samples = []
    predictions = []
    frames = []
    ready = [split_image(image) for image in images]
    for turn in range(repeat):
        for number, (image, questions) in enumerate(zip(images, ready)):
            for item, (targets, ignore, preds) in enumerate(questions):
                name = f"{turn}-{number}-{item}"
                samples.append(question(name, f"{turn}-{number}", targets, ignore))
                predictions.append(prediction_of(name, preds))
                frames.append((image["height"], image["width"]))
    return evaluate(samples, predictions, frames)


def split_image(image: Mapping[str, Any]) -> list[tuple[list[Any], Any, list[Any]]]:
    """Targets, ignored pixels and predictions of each question of an image."""
    masks = image["masks"]
    preds = [threshold(prediction)[0] for prediction in image["preds"]]
    count = max(1, min(len(masks), len(preds)))
    targets = [(rle(mask["gt"]), None) for mask in masks]
    ignored = [rle(mask["ignore"]) if mask["ignore"] else None for mask in masks]
    questions = [
        ([target], ignore, preds[k : k + 1])
        for k, (target, ignore) in enumerate(zip(targets, ignored))
    ]
    questions = questions[:count]
    questions[-1][0].extend(targets[count:])
    questions[-1][2].extend(preds[count:])
    return questions


def exact_block(
    scores: Scores, plain: Scores, pair_counts: TwoClassCounts
) -> dict[str, Any]:
    return {
        "giou": scores.headline()["giou"],
        "ciou": scores.headline()["ciou"],
        "giou_noeps": plain.headline()["giou"],
        "ciou_noeps": plain.headline()["ciou"],
        "sum_intersection_fg": int(pair_counts.intersection[:, FOREGROUND].sum()),
        "sum_union_fg": int(pair_counts.union[:, FOREGROUND].sum()),
        "N": round(float(scores.metrics["giou"].denominator.sum()), 9),
    }


def group_by_image(
    inputs: ScoringInput, pair_counts: TwoClassCounts
) -> list[list[dict[str, list[int]]]]:
    """The counts of all pairs, image by image."""
    out: list[list[dict[str, list[int]]]] = [
        [] for _ in range(inputs.ground_truth.cluster_count)
    ]
    order = np.argsort(inputs.ground_truth.cluster[pair_counts.sample], kind="stable")
    for row in order.tolist():
        counts = {
            "intersection": pair_counts.intersection[row].tolist(),
            "union": pair_counts.union[row].tolist(),
        }
        out[int(inputs.ground_truth.cluster[pair_counts.sample[row]])].append(counts)
    return out


def run(
    inputs: ScoringInput, pair_counts: TwoClassCounts, scores: Scores
) -> Float32Sums:
    ground_truth = inputs.ground_truth
    weight = np.rint(
        sums(
            ground_truth.cluster,
            scores.metrics["giou"].denominator,
            ground_truth.cluster_count,
        )
    ).astype(np.int64)
    return sum_in_float32(pair_counts, ground_truth.cluster, weight)


def per_image(running: Float32Sums, count: str) -> list[dict[str, Any]]:
    return [
        {
            "intersection": running.intersection[item].tolist(),
            "union": running.union[item].tolist(),
            "acc_iou": running.iou[item].tolist(),
            count: int(running.count[item]),
        }
        for item in range(len(running.count))
    ]

"""GSVA's golden cases through `maskwise.protocols.gsva`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.protocols import gsva
from maskwise.protocols.lisa_counts import FOREGROUND, TwoClassCounts, count_pairs
from maskwise.protocols.metrics import Scores
from maskwise.protocols.scoring_input import ScoringInput
from tests.golden.compare import differences
from tests.golden.records import (
    EXACT,
    OFFICIAL,
    evaluate,
    prediction_of,
    question,
    rle,
    threshold,
)


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    grefcoco = case["input"]["is_grefcoco"]
    inputs = read(case["input"]["images"])
    everything = np.arange(len(inputs))
    pair_counts = count_pairs(inputs.overlaps("requested"), everything, everything)
    scores = gsva.score(inputs, grefcoco=grefcoco)
    plain = gsva.score(inputs, grefcoco=grefcoco, epsilon=False)
    legacy = gsva.score(inputs, grefcoco=grefcoco, legacy_float32=True)
    expected = dict(case["expected"])
    found = {
        **legacy.headline(),
        "N_acc": scores.headline()["n_acc"],
        "T_acc": scores.headline()["t_acc"],
    }
    found |= {"counts": counts(scores), **updates(inputs, scores, pair_counts)}
    if (
        "error" in expected
    ):  # the official code stopped at a division; compare what it had added up
        del expected["error"]
        partial = expected.pop("partial")
        expected |= {key: value for key, value in partial.items() if value is not None}
    exact = {
        "giou": scores.headline()["giou"],
        "ciou": scores.headline()["ciou"],
        "giou_noeps": plain.headline()["giou"],
        "ciou_noeps": plain.headline()["ciou"],
        "N_acc": found["N_acc"],
        "T_acc": found["T_acc"],
        "counts": found["counts"],
        "sum_intersection_fg": int(scores.metrics["ciou"].numerator.sum()),
        "sum_union_fg": int(scores.metrics["ciou"].denominator.sum()),
        "N": int(scores.metrics["giou"].denominator.sum()),
        "per_mask": per_image(case["input"]["images"], pair_counts),
    }
    return [
        *differences(found, expected, OFFICIAL, "expected"),
        *differences(exact, case["expected_exact"], EXACT, "expected_exact"),
    ]


def read(images: list[Mapping[str, Any]]) -> ScoringInput:
    """Every mask is a question of its own, with one target, which may be empty."""
    samples = []
    predictions = []
    frames = []
    for number, image in enumerate(images):
        for item, mask in enumerate(image["masks"]):
            name = f"{number}-{item}"
            samples.append(question(name, str(number), [(rle(mask["gt"]), None)]))
            drawn, _ = threshold(mask["pred"], zero_inside=True)
            predictions.append(prediction_of(name, [drawn], no_target=mask["pred_nt"]))
            frames.append((image["height"], image["width"]))
    return evaluate(samples, predictions, frames)


def counts(scores: Scores) -> dict[str, int]:
    n_acc = scores.metrics["n_acc"]
    t_acc = scores.metrics["t_acc"]
    found = int(n_acc.numerator.sum())
    kept = int(t_acc.numerator.sum())
    return {
        "TP": found,
        "FN": int(n_acc.denominator.sum()) - found,
        "TN": kept,
        "FP": int(t_acc.denominator.sum()) - kept,
    }


def updates(
    inputs: ScoringInput, scores: Scores, pair_counts: TwoClassCounts
) -> dict[str, Any]:
    """What the official meters were given, mask by mask: foreground from the scores, background from the counts."""
    empty = inputs.overlaps("requested").merged.target == 0
    giou = scores.metrics["giou"]
    ciou = scores.metrics["ciou"]
    missed = empty & ~inputs.predictions.no_target & bool(scores.options["grefcoco"])
    background = pair_counts.intersection[:, 0] / (
        pair_counts.union[:, 0] + gsva.PAIR_EPSILON
    )
    contributions = [
        value if hidden else [other, value]
        for value, hidden, other in zip(
            giou.numerator.tolist(), empty.tolist(), background.tolist()
        )
    ]
    assert np.array_equal(
        ciou.numerator[~empty], pair_counts.intersection[~empty, FOREGROUND]
    )
    return {
        "giou_contributions": contributions,
        "intersection_updates": pair_counts.intersection[~empty].tolist(),
        "union_updates": np.stack([pair_counts.union[:, 0], ciou.denominator], 1)[
            ~empty | missed
        ].tolist(),
    }


def per_image(
    images: list[Mapping[str, Any]], pair_counts: TwoClassCounts
) -> list[list[dict[str, list[int]]]]:
    rows = iter(zip(pair_counts.intersection.tolist(), pair_counts.union.tolist()))
    return [
        [
            {"intersection": shared, "union": union}
            for _, (shared, union) in zip(image["masks"], rows)
        ]
        for image in images
    ]

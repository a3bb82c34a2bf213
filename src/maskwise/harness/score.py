"""Score predictions against a dataset under any number of protocols, in one pass.

result = score(Dataset.open("mmr_val"), "run/predictions.jsonl", ["strict", "mmr"], threads=2)
result.scores["strict"].headline()["giou"]
write_run("run", result, ...)                 # maskwise.harness.runs: the folder described in docs/runs.md
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maskwise.errors import ProtocolError
from maskwise.harness.predictions import LoadedPredictions, ReadOptions, read_predictions
from maskwise.protocols import PROTOCOLS, GroundTruth, Metric, Protocol, Scores, ScoringInput, get
from maskwise.protocols.answers import Judge
from maskwise.protocols.metrics import STATUSES, share_columns
from maskwise.protocols.scoring_input import measure_targets
from maskwise.protocols.slices import slice_samples
from maskwise.protocols.stats import Groups, Interval, bootstrap
from maskwise.protocols.strict import BINS
from maskwise.store import MASK_TYPES, Codes, Dataset

Tables = dict[str, dict[str, list[dict[str, Any]]]]
MAIN = ("giou", "ciou")
"""The metrics every protocol has: given for every slice, and in columns of their own in scores.arrow."""


@dataclass(frozen=True)
class IntervalOptions:
    """How intervals are made: bootstrap resamples over images, their seed, and the level."""

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95


@dataclass(frozen=True)
class Result:
    """What came out. `intervals`: by protocol and metric; `slices`: the group of each sample, by slicing; `tables`: the
    figures of each group, by protocol and slicing.
    """

    truth: GroundTruth
    found: LoadedPredictions
    scores: Mapping[str, Scores]
    skipped: Mapping[str, str]
    intervals: Mapping[tuple[str, str], Interval]
    slices: Mapping[str, Codes]
    tables: Tables
    interval_options: IntervalOptions


def score(
    dataset: Dataset,
    predictions: str | Path,
    protocols: Sequence[str] | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    format: str | None = None,
    settings: ReadOptions | None = None,
    judge: Judge | None = None,
    interval_options: IntervalOptions | None = None,
    threads: int = 1,
    say: Callable[[str], None] = lambda stage: None,
) -> Result:
    """Score a file or folder of predictions.

    protocols: names; all of them if None, and then one that cannot score these predictions is skipped with a reason
    rather than an error. options: by protocol. judge: scores whole answers under `strict`. say: told what is being
    done.
    """
    wanted = [get(name) for name in (protocols if protocols is not None else PROTOCOLS)]
    say("reading")
    truth = GroundTruth.from_dataset(dataset, texts=judge is not None)
    with ThreadPoolExecutor(1) as ahead:
        # The kernel works without the interpreter: targets are measured while predictions are parsed.
        targets = ahead.submit(measure_targets, truth)
        found = read_predictions(predictions, truth, format, settings=settings)
    if not found.read:
        raise ProtocolError(
            f"{predictions} holds no predictions; a model that found nothing says so, sample by sample"
        )
    say("measuring")
    evaluation = ScoringInput(truth, found.replies, threads=threads, targets=targets.result())
    scores, skipped = {}, {}
    for protocol in wanted:
        say(protocol.name)
        try:
            scores[protocol.name] = _run(protocol, evaluation, (options or {}).get(protocol.name, {}), judge)
        except ProtocolError as error:
            if protocols is not None:
                raise
            skipped[protocol.name] = str(error)
    say("intervals")
    return summarise(
        evaluation, found, scores, skipped=skipped, interval_options=interval_options or IntervalOptions()
    )


def summarise(
    evaluation: ScoringInput,
    found: LoadedPredictions,
    scores: Mapping[str, Scores],
    *,
    skipped: Mapping[str, str] | None = None,
    interval_options: IntervalOptions,
) -> Result:
    """The result of scores already made: intervals and slices are added."""
    metrics = share_columns(
        {(name, key): metric for name, one in scores.items() for key, metric in one.metrics.items()}
    )
    slices = slice_samples(evaluation)
    with ThreadPoolExecutor(1) as aside:
        intervals = aside.submit(
            bootstrap,
            metrics,
            evaluation.ground_truth.cluster,
            resamples=interval_options.resamples,
            level=interval_options.level,
            seed=interval_options.seed,
            threads=max(1, evaluation.threads - 1),
        )
        tables = _slice_tables(evaluation.ground_truth, slices, metrics, level=interval_options.level)
    return Result(
        evaluation.ground_truth,
        found,
        scores,
        skipped or {},
        intervals.result(),
        slices,
        tables,
        interval_options,
    )


def result_to_json(result: Result) -> dict[str, Any]:
    """The content of `scores.json`; see docs/runs.md."""
    return {
        "format": "maskwise scores 2",
        "predictions": {
            "read": result.found.read,
            "matched": result.found.matched,
            "unknown": result.found.read - result.found.matched,
        },
        "skipped": dict(result.skipped),
        "protocols": {
            name: {
                "rule": PROTOCOLS[name].description,
                "options": dict(scores.options),
                "counts": count_statuses(scores),
                "metrics": {key: _metric_to_json(result, name, key) for key in scores.metrics},
                "slices": result.tables[name],
                **_strict_tables(scores),
            }
            for name, scores in result.scores.items()
        },
    }


def count_statuses(scores: Scores) -> dict[str, Any]:
    """How many samples were scored, failed, missing and excluded, and why."""
    statuses = scores.statuses
    by_status = np.bincount(statuses.status, minlength=len(STATUSES)).tolist()
    by_reason = np.bincount(statuses.reason, minlength=len(statuses.reasons)).tolist()
    reasons = {text: count for text, count in zip(statuses.reasons, by_reason) if text and count}
    return {"samples": len(scores), **dict(zip(STATUSES, by_status)), "reasons": reasons}


def _run(
    protocol: Protocol, evaluation: ScoringInput, options: Mapping[str, Any], judge: Judge | None
) -> Scores:
    known = {"judge": judge} if judge is not None and "judge" in protocol.options else {}
    return protocol.score(evaluation, **options, **known)


def _metric_to_json(result: Result, protocol: str, name: str) -> dict[str, Any]:
    scores = result.scores[protocol]
    metric, interval = scores.metrics[name], result.intervals[protocol, name]
    out = {
        "value": metric.value(),
        "low": interval.low,
        "high": interval.high,
        "unit": metric.unit,
        "numerator": metric.numerator.sum().item(),
        "denominator": metric.denominator.sum().item(),
        "epsilon": metric.epsilon,
    }
    if metric.gate is not None:
        out |= {"gate": metric.gate.sum().item(), "empty": metric.empty}
    if name in scores.legacy:
        out |= {"value": scores.legacy[name], "exact": out["value"]}
    return out


def _slice_tables(
    truth: GroundTruth,
    slices: Mapping[str, Codes],
    metrics: Mapping[tuple[str, str], Metric],
    *,
    level: float,
) -> Tables:
    """By protocol and slicing, one entry a group that has samples, in the order of its names."""
    names = list(dict.fromkeys(name for name, _ in metrics))
    out: Tables = {name: {} for name in names}
    for slicing, codes in slices.items():
        groups = Groups(codes.codes, truth.cluster, len(codes.names))
        samples, images = groups.samples().tolist(), groups.images().tolist()
        for name in names:
            figures = {key: groups.figures(metrics[name, key], level) for key in MAIN}
            out[name][slicing] = [
                {
                    "name": group,
                    "samples": samples[item],
                    "images": images[item],
                    "metrics": {key: _figure(*figures[key][item]) for key in MAIN},
                }
                for item, group in enumerate(codes.names)
                if samples[item]
            ]
    return out


def _figure(value: float | None, interval: Interval) -> dict[str, float | None]:
    return {"value": value, "low": interval.low, "high": interval.high}


def _strict_tables(scores: Scores) -> dict[str, Any]:
    """Confusion of mask types and calibration of scores, where the protocol makes them."""
    if scores.confusion is None or scores.calibration is None:
        return {}
    bins = [
        {
            "low": item / BINS,
            "high": (item + 1) / BINS,
            "count": int(count),
            "score": total / count,
            "precision": hits / count,
            "iou": iou / count,
        }
        for item, (count, total, hits, iou) in enumerate(scores.calibration.tolist())
        if count
    ]
    confusion = {"rows": MASK_TYPES, "columns": (*MASK_TYPES, "none"), "counts": scores.confusion.tolist()}
    return {"confusion": confusion, "calibration": bins}

"""Score predictions against a dataset under any number of protocols, in one pass.

    result = score(Dataset.open("mmr_val"), "run/predictions.jsonl", ["strict", "mmr"], threads=2)
    result.scores["strict"].headline()["giou"]
    write_run("run", result_to_run(result))       # maskwise.runs: the folder described in docs/runs.md

Predictions are a path (docs/predictions.md lists the formats) or a sequence of `Prediction`.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from maskwise import __version__
from maskwise.errors import ProtocolError
from maskwise.masks import kernel_name
from maskwise.predictions import (
    LoadedPredictions,
    detect_format,
    load_predictions,
    read_predictions,
)
from maskwise.protocols import (
    GroundTruth,
    MetricTerms,
    Protocol,
    Scores,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols.answers import Judge
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import Estimate, Interval, estimate
from maskwise.protocols.metrics import STATUSES, share_columns
from maskwise.protocols.prediction_columns import UNSTATED
from maskwise.protocols.scoring_input import measure_targets
from maskwise.protocols.slices import slice_samples
from maskwise.protocols.strict import BINS
from maskwise.registry import DEFAULT_PROTOCOLS
from maskwise.runs import Run
from maskwise.runs.files import hash_path
from maskwise.runs.schema import (
    RUN_FORMAT,
    SCORES_FORMAT,
    CalibrationBin,
    ConfusionMatrix,
    DatasetInfo,
    EvaluationInfo,
    IntervalOptions,
    MetricValue,
    PredictionCounts,
    PredictionsInfo,
    ProtocolInfo,
    ProtocolScores,
    ReadOptions,
    RunFile,
    ScoresFile,
    SliceGroup,
    StatusCounts,
)
from maskwise.runs.tables import (
    MAIN_METRICS,
    ScoredSamples,
    make_metric_table,
    make_score_table,
)
from maskwise.schema import Prediction
from maskwise.store import MASK_TYPES, Codes, Dataset
from maskwise.store.folder import MANIFEST

SliceTables = dict[str, dict[str, list[SliceGroup]]]
NO_TARGETS = "no targets"


@dataclass(frozen=True)
class ScoreInputs:
    """What is scored. predictions: a path or records; format, options: how a path is read."""

    dataset: Dataset
    predictions: Path | tuple[Prediction, ...]
    format: str | None
    options: ReadOptions


@dataclass(frozen=True)
class ScoreResult:
    """The scores of a dataset's predictions.

    intervals: by protocol and metric. slices: the group of each sample, by slice. slice_tables: the groups' metrics, by
    protocol and slice. rules: the description of each protocol.
    """

    inputs: ScoreInputs
    truth: GroundTruth
    found: LoadedPredictions
    scores: Mapping[str, Scores]
    skipped: Mapping[str, str]
    intervals: Mapping[tuple[str, str], Interval]
    slices: Mapping[str, Codes]
    slice_tables: SliceTables
    interval_options: IntervalOptions
    rules: Mapping[str, str]


def score(
    dataset: Dataset,
    predictions: str | Path | Iterable[Prediction],
    protocols: Sequence[str | Protocol] | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    format: str | None = None,
    read_options: ReadOptions | None = None,
    judge: Judge | None = None,
    interval_options: IntervalOptions | None = None,
    threads: int = 1,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> ScoreResult:
    """Score predictions: a file or folder, or records in any order.

    protocols: names, `package.module:function` or Protocol objects; None for all
    built-in ones, and then one that cannot score these predictions is skipped with a
    reason instead of an error. options: by protocol. judge: scores whole answers under
    `strict`. on_stage: called with the current stage.
    """
    rules = protocols if protocols is not None else DEFAULT_PROTOCOLS
    wanted = [find_protocol(rule) for rule in rules]
    inputs = ScoreInputs(
        dataset, _path_or_records(predictions), format, read_options or ReadOptions()
    )
    on_stage("reading")
    truth = GroundTruth.from_dataset(dataset, texts=judge is not None)
    with ThreadPoolExecutor(1) as pool:
        # The kernel releases the interpreter lock: targets are measured while predictions are parsed.
        targets = pool.submit(measure_targets, truth)
        found = _load(inputs, truth)
    if not found.read:
        where = (
            inputs.predictions if isinstance(inputs.predictions, Path) else "the list"
        )
        raise ProtocolError(
            f"{where} contains no predictions; a model that finds nothing says so for each sample"
        )
    on_stage("measuring")
    evaluation = ScoringInput(
        truth, found.predictions, threads=threads, targets=targets.result()
    )
    scores = {}
    skipped = {}
    for protocol in wanted:
        on_stage(protocol.name)
        try:
            scores[protocol.name] = _run(
                protocol, evaluation, (options or {}).get(protocol.name, {}), judge
            )
        except ProtocolError as error:
            if protocols is not None:
                raise
            skipped[protocol.name] = str(error)
    on_stage("intervals")
    return summarize(
        inputs,
        evaluation,
        found,
        scores=scores,
        skipped=skipped,
        rules={protocol.name: protocol.description for protocol in wanted},
        options=interval_options or IntervalOptions(),
    )


def summarize(
    inputs: ScoreInputs,
    evaluation: ScoringInput,
    found: LoadedPredictions,
    *,
    scores: Mapping[str, Scores],
    skipped: Mapping[str, str],
    rules: Mapping[str, str],
    options: IntervalOptions,
) -> ScoreResult:
    """Add intervals and slices to scores."""
    metrics = share_columns(
        {
            (name, key): metric
            for name, one in scores.items()
            for key, metric in one.metrics.items()
        }
    )
    slices = slice_samples(evaluation)
    everything = ImageGroups.single(evaluation.ground_truth.cluster)
    intervals = {
        key: estimate(metric, everything, options.level)[0].interval
        for key, metric in metrics.items()
    }
    tables = _slice_tables(
        evaluation.ground_truth, slices, metrics, level=options.level
    )
    return ScoreResult(
        inputs,
        evaluation.ground_truth,
        found,
        scores,
        skipped,
        intervals,
        slices,
        tables,
        options,
        rules,
    )


def result_to_run(
    result: ScoreResult, *, evaluation: EvaluationInfo | None = None
) -> Run:
    """The run of a result, in memory; `maskwise.runs.write_run` writes it to a folder."""
    inputs = result.inputs
    truth = result.truth
    info = RunFile(
        format=RUN_FORMAT,
        state="scored",
        dataset=describe_dataset(
            inputs.dataset, samples=len(truth), images=truth.cluster_count
        ),
        maskwise=__version__,
        kernel=kernel_name(),
        predictions=_describe_predictions(result),
        protocols=[
            ProtocolInfo(name=name, options=dict(scores.options))
            for name, scores in result.scores.items()
        ],
        intervals=result.interval_options,
        evaluation=evaluation,
    )
    samples = ScoredSamples(truth.ids, truth.image, truth.image_ids, result.slices)
    return Run(
        info,
        result_to_scores(result),
        load_scores=partial(make_score_table, samples, result.scores),
        load_metrics=partial(make_metric_table, samples, result.scores),
        dataset=inputs.dataset,
        predictions=None
        if isinstance(inputs.predictions, Path)
        else inputs.predictions,
    )


def result_to_scores(result: ScoreResult) -> ScoresFile:
    """The content of scores.json."""
    read = result.found.read
    matched = result.found.matched
    return ScoresFile(
        format=SCORES_FORMAT,
        predictions=PredictionCounts(
            read=read,
            matched=matched,
            unknown=read - matched,
            with_mask_type=int((result.found.predictions.mask_type != UNSTATED).sum()),
        ),
        skipped=dict(result.skipped),
        protocols={name: _protocol_scores(result, name) for name in result.scores},
    )


def describe_dataset(dataset: Dataset, *, samples: int, images: int) -> DatasetInfo:
    """What run.json says about a dataset. samples, images: how many of them the run is about."""
    return DatasetInfo(
        path=str(dataset.path.resolve()),
        name=dataset.name,
        sha256=hash_path(dataset.path / MANIFEST),
        samples=samples,
        images=images,
        all_samples=dataset.manifest.counts.get("samples"),
        protocol=dataset.manifest.about.get("protocol"),
    )


def _path_or_records(
    predictions: str | Path | Iterable[Prediction],
) -> Path | tuple[Prediction, ...]:
    return (
        Path(predictions).absolute()
        if isinstance(predictions, str | Path)
        else tuple(predictions)
    )


def _load(inputs: ScoreInputs, truth: GroundTruth) -> LoadedPredictions:
    if isinstance(inputs.predictions, Path):
        return read_predictions(
            inputs.predictions, truth, inputs.format, options=inputs.options
        )
    return load_predictions(inputs.predictions, truth)


def _describe_predictions(result: ScoreResult) -> PredictionsInfo:
    inputs = result.inputs
    if isinstance(inputs.predictions, Path):
        path = str(inputs.predictions.resolve())
        format = inputs.format or detect_format(inputs.predictions)
        sha256 = hash_path(inputs.predictions)
    else:
        path = None
        format = "memory"
        sha256 = _hash_records(inputs.predictions)
    return PredictionsInfo(
        path=path,
        format=format,
        sha256=sha256,
        options=inputs.options,
        teacher_forced=bool(result.found.predictions.forced.any()),
    )


def _hash_records(predictions: Sequence[Prediction]) -> str:
    """SHA-256 of the predictions.jsonl that these records make."""
    whole = hashlib.sha256()
    for prediction in predictions:
        whole.update(msgspec.json.encode(prediction) + b"\n")
    return whole.hexdigest()


def _run(
    protocol: Protocol,
    evaluation: ScoringInput,
    options: Mapping[str, Any],
    judge: Judge | None,
) -> Scores:
    known = (
        {"judge": judge} if judge is not None and "judge" in protocol.options else {}
    )
    return protocol.score(evaluation, **options, **known)


def _protocol_scores(result: ScoreResult, name: str) -> ProtocolScores:
    scores = result.scores[name]
    return ProtocolScores(
        rule=result.rules[name],
        options=dict(scores.options),
        counts=count_statuses(scores),
        metrics={
            key: _metric_value(scores, key, result.intervals[name, key])
            for key in scores.metrics
        },
        slices=result.slice_tables[name],
        confusion=_confusion(scores),
        calibration=_calibration(scores),
    )


def count_statuses(scores: Scores) -> StatusCounts:
    """How many samples are scored, failed, missing and excluded, and why."""
    statuses = scores.statuses
    by_status = np.bincount(statuses.status, minlength=len(STATUSES)).tolist()
    by_reason = np.bincount(statuses.reason, minlength=len(statuses.reasons)).tolist()
    reasons = {
        text: count
        for text, count in zip(statuses.reasons, by_reason)
        if text and count
    }
    return StatusCounts(
        samples=len(scores), **dict(zip(STATUSES, by_status)), reasons=reasons
    )


def _metric_value(scores: Scores, name: str, interval: Interval) -> MetricValue:
    metric = scores.metrics[name]
    exact = scores.metrics[name].value()
    gated = metric.gate is not None
    return MetricValue(
        value=scores.legacy.get(name, exact),
        low=interval.low,
        high=interval.high,
        method=interval.method,
        unit=metric.unit,
        numerator=float(metric.numerator.sum()),
        denominator=float(metric.denominator.sum()),
        epsilon=metric.epsilon,
        exact=exact if name in scores.legacy else None,
        gate=float(metric.gate.sum()) if metric.gate is not None else None,
        empty=metric.empty if gated else None,
    )


def _slice_tables(
    truth: GroundTruth,
    slices: Mapping[str, Codes],
    metrics: Mapping[tuple[str, str], MetricTerms],
    *,
    level: float,
) -> SliceTables:
    """By protocol and slice, one entry per group that has samples, in the order of its names."""
    names = list(dict.fromkeys(name for name, _ in metrics))
    out: SliceTables = {name: {} for name in names}
    for slicing, codes in slices.items():
        groups = ImageGroups(codes.codes, truth.cluster, len(codes.names))
        targets = groups.add(groups.cells(truth.counts)).tolist()
        samples = groups.samples().tolist()
        images = groups.images().tolist()
        for name in names:
            values = {
                key: estimate(metrics[name, key], groups, level) for key in MAIN_METRICS
            }
            out[name][slicing] = [
                SliceGroup(
                    name=str(group),
                    samples=samples[item],
                    images=images[item],
                    metrics={
                        key: _slice_value(key, values[key][item], targets[item])
                        for key in MAIN_METRICS
                    },
                )
                for item, group in enumerate(codes.names)
                if samples[item]
            ]
    return out


def _slice_value(name: str, found: Estimate, targets: float) -> MetricValue:
    """A main metric of a slice. cIoU is undefined without any target: it would be 0 whatever the model does."""
    if name == "ciou" and not targets:
        return MetricValue(
            value=None, low=None, high=None, unit="fraction", method=NO_TARGETS
        )
    interval = found.interval
    return MetricValue(
        value=found.value,
        low=interval.low,
        high=interval.high,
        unit="fraction",
        method=interval.method,
    )


def _confusion(scores: Scores) -> ConfusionMatrix | None:
    """Mask types wanted and predicted, if the protocol counts them."""
    if scores.confusion is None:
        return None
    return ConfusionMatrix(
        rows=MASK_TYPES, columns=(*MASK_TYPES, "none"), counts=scores.confusion.tolist()
    )


def _calibration(scores: Scores) -> list[CalibrationBin]:
    """Bins of the regions' scores that are not empty, if the protocol makes them."""
    if scores.calibration is None:
        return []
    return [
        CalibrationBin(
            low=item / BINS,
            high=(item + 1) / BINS,
            count=int(count),
            score=total / count,
            precision=hits / count,
            iou=iou / count,
        )
        for item, (count, total, hits, iou) in enumerate(scores.calibration.tolist())
        if count
    ]

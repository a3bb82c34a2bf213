"""Score predictions against a dataset under any number of protocols, in one pass, with intervals and slices.

    result = compute_scores("run/predictions.jsonl", Dataset.open("mmr_val"), ["strict", "mmr"], threads=2)
    result.scores["strict"].headline()["giou"]

`maskwise.harness.run_record` makes a run of the result.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwise.arrays import Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.predictions import LoadedPredictions, load_predictions, read_predictions
from maskwise.protocols import (
    GroundTruth,
    MetricTerms,
    Protocol,
    Scores,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    NOT_A_SUM,
    NOT_DEFINED,
    Estimate,
    Interval,
    estimate_composite,
    estimate_each,
    sum_by_image,
)
from maskwise.protocols.metrics import share_columns
from maskwise.protocols.risk_coverage import question_confidence
from maskwise.protocols.scoring_input import measure_targets
from maskwise.protocols.slices import slice_samples
from maskwise.registry import DEFAULT_PROTOCOLS
from maskwise.runs.schema import IntervalOptions, MetricValue, ReadOptions, SliceGroup
from maskwise.runs.tables import MAIN_METRICS
from maskwise.schema import Prediction
from maskwise.store import Codes, Dataset
from maskwise.store.folder import IGNORED_PIXELS, MERGED

logger = logging.getLogger(__name__)

SliceTables = dict[str, dict[str, list[SliceGroup]]]
"""By protocol and slice, the metrics of the slice's groups."""

NO_TARGETS = "no targets"
"""Why a group has no cIoU."""

RULES_WITH_IGNORED_PIXELS = ("lisa", "xsam", "lens", "unipixel")
"""Rules that drop ignored pixels, or count them as background."""


@dataclass(frozen=True)
class ScoreResult:
    """The scores of a dataset's predictions.

    predictions: the path that was read, or the records; format, read_options: how a path is read. loaded: the
    predictions as columns, in the dataset's order. confidence: float64 [samples], as `risk_coverage` takes it.
    scoring_input: the predictions with the overlaps that were measured; None if they were scored in parts. rules:
    the description of each protocol. scores: by protocol. skipped: protocols that could not score these predictions,
    and why. intervals: by protocol and metric. other_metrics: those that are not ratios of two sums, by protocol.
    slices: the group of each sample, by slice.
    """

    dataset: Dataset
    predictions: Path | tuple[Prediction, ...]
    format: str | None
    read_options: ReadOptions
    truth: GroundTruth
    loaded: LoadedPredictions
    confidence: Float64Array
    scoring_input: ScoringInput | None
    rules: Mapping[str, str]
    scores: Mapping[str, Scores]
    skipped: Mapping[str, str]
    interval_options: IntervalOptions
    intervals: Mapping[tuple[str, str], Interval]
    other_metrics: Mapping[str, Mapping[str, Estimate]]
    slices: Mapping[str, Codes]
    slice_tables: SliceTables


def compute_scores(
    predictions: str | os.PathLike[str] | Iterable[Prediction],
    dataset: Dataset,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    format: str | None = None,
    read_options: ReadOptions | None = None,
    interval_options: IntervalOptions | None = None,
    threads: int = 1,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> ScoreResult:
    """Score predictions: a file or folder, or records in any order.

    protocols: names, `package.module:function` or Protocol objects; None for all built-in ones, and then one that
    cannot score these predictions is skipped with a reason instead of an error. options: by protocol. on_stage:
    called with the current stage.
    """
    source = _path_or_records(predictions)
    reading = read_options or ReadOptions()
    rules = DEFAULT_PROTOCOLS if protocols is None else protocols
    wanted = [find_protocol(rule) for rule in rules]
    warn_of_merged_pixels(dataset, [protocol.name for protocol in wanted])
    on_stage("reading")
    truth = GroundTruth.from_dataset(dataset)
    with ThreadPoolExecutor(1) as pool:
        # The kernel releases the interpreter lock: targets are measured while predictions are parsed.
        targets = pool.submit(measure_targets, truth)
        if isinstance(source, Path):
            loaded = read_predictions(source, truth, format, options=reading)
        else:
            loaded = load_predictions(source, truth)
    if not loaded.read:
        where = source if isinstance(source, Path) else "the list"
        raise ProtocolError(
            f"{where} contains no predictions; a model that finds nothing says so for each sample"
        )
    on_stage("measuring")
    scoring_input = ScoringInput(
        truth, loaded.predictions, threads=threads, targets=targets.result()
    )
    scores = {}
    skipped = {}
    for protocol in wanted:
        on_stage(protocol.name)
        protocol_options = (options or {}).get(protocol.name, {})
        try:
            scores[protocol.name] = protocol.score(scoring_input, **protocol_options)
        except ProtocolError as error:
            if protocols is not None:
                raise
            skipped[protocol.name] = str(error)
    on_stage("intervals")
    return summarize_scores(
        dataset,
        source,
        truth=truth,
        loaded=loaded,
        confidence=question_confidence(loaded.predictions),
        scoring_input=scoring_input,
        rules={protocol.name: protocol.description for protocol in wanted},
        scores=scores,
        skipped=skipped,
        slices=slice_samples(scoring_input),
        format=format,
        read_options=reading,
        interval_options=interval_options,
        slicings_at_once=threads,
    )


def summarize_scores(
    dataset: Dataset,
    predictions: Path | tuple[Prediction, ...],
    *,
    truth: GroundTruth,
    loaded: LoadedPredictions,
    confidence: Float64Array,
    rules: Mapping[str, str],
    scores: Mapping[str, Scores],
    skipped: Mapping[str, str],
    slices: Mapping[str, Codes],
    scoring_input: ScoringInput | None = None,
    format: str | None = None,
    read_options: ReadOptions | None = None,
    interval_options: IntervalOptions | None = None,
    slicings_at_once: int = 1,
) -> ScoreResult:
    """The result of scored questions: intervals, and tables by slice. The arguments are fields of `ScoreResult`.

    slicings_at_once: of how many slicings the tables are made at the same time, each of which takes memory.
    """
    metrics = {}
    for name, protocol_scores in scores.items():
        for key, terms in protocol_scores.metrics.items():
            metrics[name, key] = terms
    # Protocols have many columns in common: equal ones are added up once.
    metrics = share_columns(metrics)
    everything = ImageGroups.single(truth.cluster)
    intervals_wanted = interval_options or IntervalOptions()
    level = intervals_wanted.level
    estimates = estimate_each(metrics, everything, level)
    intervals = {key: estimated[0].interval for key, estimated in estimates.items()}
    other_metrics = {
        name: estimate_others(protocol_scores, truth.cluster, level)
        for name, protocol_scores in scores.items()
    }
    # The truth was read while the measuring went on, from files that others may change.
    dataset.check_unchanged()
    return ScoreResult(
        dataset=dataset,
        predictions=predictions,
        format=format,
        read_options=read_options or ReadOptions(),
        truth=truth,
        loaded=loaded,
        confidence=confidence,
        scoring_input=scoring_input,
        rules=rules,
        scores=scores,
        skipped=skipped,
        interval_options=intervals_wanted,
        intervals=intervals,
        other_metrics=other_metrics,
        slices=slices,
        slice_tables=_slice_tables(
            truth, slices, metrics, level=level, threads=slicings_at_once
        ),
    )


def warn_of_merged_pixels(dataset: Dataset, protocols: list[str]) -> None:
    """Warn if a rule that treats ignored pixels apart is used on a copy that has made them target pixels."""
    affected = [name for name in protocols if name in RULES_WITH_IGNORED_PIXELS]
    if affected and dataset.manifest.about.get(IGNORED_PIXELS) == MERGED:
        logger.warning(
            "%s: ignored pixels are %s in this copy, so scores under %s are not those of the original dataset; "
            "they are comparable with segzero, visionreasoner and star",
            dataset.name,
            MERGED,
            ", ".join(affected),
        )


def _path_or_records(
    predictions: str | os.PathLike[str] | Iterable[Prediction],
) -> Path | tuple[Prediction, ...]:
    if isinstance(predictions, str | os.PathLike):
        return Path(predictions).absolute()
    return tuple(predictions)


def estimate_others(
    scores: Scores, cluster: Int64Array, level: float
) -> dict[str, Estimate]:
    """The metrics of a protocol that are not ratios of two sums, with their intervals where there are any.

    cluster: int64 [samples], the image of each sample.
    """
    estimates = {}
    # The composites of a protocol share their columns, so these are added up once.
    sums_of_columns: dict[int, Float64Array] = {}
    for name, composite in scores.composites.items():
        key = id(composite.columns)
        if key not in sums_of_columns:
            sums_of_columns[key] = sum_by_image(composite.columns, cluster)
        estimates[name] = estimate_composite(composite, sums_of_columns[key], level)
    for name, value in scores.plain.items():
        estimates[name] = Estimate(value, Interval(None, None, NOT_A_SUM))
    return estimates


def _slice_tables(
    truth: GroundTruth,
    slices: Mapping[str, Codes],
    metrics: Mapping[tuple[str, str], MetricTerms],
    *,
    level: float,
    threads: int,
) -> SliceTables:
    """By protocol and slice, one entry per group that has samples, in the order of its names."""
    protocols = list(dict.fromkeys(name for name, _ in metrics))
    main_metrics = {
        (name, key): metrics[name, key] for name in protocols for key in MAIN_METRICS
    }

    def tabulate(codes: Codes) -> dict[str, list[SliceGroup]]:
        groups = ImageGroups(codes.codes, truth.cluster, len(codes.names))
        targets = groups.add(groups.cells(truth.counts)).tolist()
        estimates = estimate_each(main_metrics, groups, level)
        return {
            name: _slice_groups(
                codes,
                groups,
                targets,
                {key: estimates[name, key] for key in MAIN_METRICS},
            )
            for name in protocols
        }

    with ThreadPoolExecutor(threads) as pool:
        tables = list(pool.map(tabulate, slices.values()))
    return {
        name: {slicing: table[name] for slicing, table in zip(slices, tables)}
        for name in protocols
    }


def _slice_groups(
    codes: Codes,
    groups: ImageGroups,
    targets: Sequence[float],
    estimates: Mapping[str, Sequence[Estimate]],
) -> list[SliceGroup]:
    """The groups of one slice that have samples. targets: how many each group has; estimates: by metric and group."""
    samples = groups.samples().tolist()
    images = groups.images().tolist()
    return [
        SliceGroup(
            name=str(group),
            samples=samples[item],
            images=images[item],
            metrics={
                key: _slice_value(key, estimates[key][item], targets[item])
                for key in MAIN_METRICS
            },
        )
        for item, group in enumerate(codes.names)
        if samples[item]
    ]


def _slice_value(name: str, estimated: Estimate, targets: float) -> MetricValue:
    """A main metric of a slice. cIoU is undefined without any target: it would be 0 whatever the model does."""
    is_defined = estimated.interval.method != NOT_DEFINED
    if name == "ciou" and is_defined and not targets:
        return MetricValue(
            value=None, low=None, high=None, unit="fraction", method=NO_TARGETS
        )
    interval = estimated.interval
    return MetricValue(
        value=estimated.value,
        low=interval.low,
        high=interval.high,
        unit="fraction",
        method=interval.method,
    )

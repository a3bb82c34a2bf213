"""The same predictions under every published rule: what each would print, and which order of runs depends on it.

    comparison = ladder(["runs/mine", "runs/other"], "reasonseg_val")
    comparison.runs[0].spread["giou"]

`maskwise ladder` and `maskwise.ladder` are this function. All rules share the overlaps of masks and targets.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from maskwise import __version__
from maskwise.arrays import Int64Array
from maskwise.datasets import load_dataset
from maskwise.errors import ProtocolError
from maskwise.harness.metric_values import (
    count_statuses,
    estimate_value,
    metric_value,
)
from maskwise.harness.scoring import ScoreResult, estimate_others
from maskwise.predictions import read_predictions
from maskwise.protocols import (
    GroundTruth,
    PredictionColumns,
    Scores,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import estimate
from maskwise.protocols.published_rules import (
    PublishedRule,
    cite_rule,
    published_rules,
)
from maskwise.protocols.question_rule import ignored_areas
from maskwise.protocols.scoring_input import measure_targets
from maskwise.protocols.significance import compare_metric
from maskwise.report.formatting import number_equal
from maskwise.report.metric_labels import HEADLINE_METRICS
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.runs import Run, load_run
from maskwise.runs.files import PREDICTIONS, RUN, hash_path
from maskwise.runs.ladder import (
    LADDER_FORMAT,
    Ladder,
    LadderDataset,
    LadderRule,
    LadderRun,
    LadderValues,
    RankSwap,
    RuleDifference,
    Spread,
)
from maskwise.runs.tables import MAIN_METRICS
from maskwise.store import Dataset
from maskwise.store.folder import MANIFEST

SKIPPED_OPTIONS: dict[str, dict[str, Any]] = {"sam3i": {"ap": False}}
"""Options that leave out what a ladder does not show and what takes long."""

LEVEL = 0.95
"""Of the intervals."""


@dataclass(frozen=True)
class LadderInput:
    """The predictions of one run on the samples of the ladder."""

    name: str
    inputs: ScoringInput


def ladder(
    runs: "str | os.PathLike[str] | Run | Sequence[str | os.PathLike[str] | Run]",
    data: str | os.PathLike[str] | Dataset | None = None,
    *,
    threads: int = 1,
) -> Ladder:
    """Score predictions under every rule that applies.

    runs: one or several run folders, runs, or paths of predictions (docs/reference/predictions.md). data: as for
    `load_dataset`; not needed for runs, which know their dataset. ProtocolError if runs are not on the same questions.

    Example: ladder("runs/mine", "reasonseg_val").runs[0].values["star"].metrics["giou"].value
    """
    given = [runs] if isinstance(runs, str | os.PathLike | Run) else list(runs)
    if not given:
        raise ProtocolError("a ladder needs at least one run or file of predictions")
    dataset = None if data is None else load_dataset(data)
    opened = [_open(item, dataset) for item in given]
    first_dataset = opened[0][1]
    for _, other_dataset, _ in opened[1:]:
        if other_dataset.samples.id != first_dataset.samples.id:
            raise ProtocolError(
                f"{given[0]} and the others are not on the same questions: "
                f"{len(first_dataset.samples.id)} and {len(other_dataset.samples.id)} samples; score all on one dataset"
            )
    truth = GroundTruth.from_dataset(first_dataset)
    targets = measure_targets(truth)
    ladder_inputs = []
    names = number_equal([name for name, _, _ in opened])
    for name, (_, _, predictions) in zip(names, opened):
        inputs = ScoringInput(truth, predictions, threads=threads, targets=targets)
        ladder_inputs.append(LadderInput(name, inputs))
    described = describe_ladder_dataset(first_dataset, ladder_inputs[0].inputs)
    return ladder_of_inputs(ladder_inputs, described)


def ladder_of_result(result: ScoreResult, name: str) -> Ladder | None:
    """The ladder of scored predictions; None if the dataset has nothing that rules treat differently, or if they were
    scored in parts.
    """
    inputs = result.scoring_input
    if inputs is None:
        return None
    dataset = describe_ladder_dataset(result.dataset, inputs)
    if not dataset.divides_rules:
        return None
    level = result.interval_options.level
    return ladder_of_inputs([LadderInput(name, inputs)], dataset, level)


def ladder_of_inputs(
    ladder_inputs: Sequence[LadderInput], dataset: LadderDataset, level: float = LEVEL
) -> Ladder:
    """The ladder of aligned predictions, all on the same samples."""
    scored = []
    not_applicable: dict[str, str] = {}
    for item in ladder_inputs:
        scores, problems = score_under_rules(item.inputs)
        scored.append(scores)
        not_applicable |= problems
    # A rule is shown if it can score every run: only then do the rows compare.
    rules = [
        rule for name, rule in published_rules().items() if name not in not_applicable
    ]
    cluster = ladder_inputs[0].inputs.ground_truth.cluster
    runs = []
    for item, scores in zip(ladder_inputs, scored):
        values = {
            rule.name: _values_under(scores[rule.name], cluster, level)
            for rule in rules
        }
        runs.append(
            LadderRun(name=item.name, values=values, spread=_spreads(values, rules))
        )
    return Ladder(
        format=LADDER_FORMAT,
        maskwise=__version__,
        level=level,
        dataset=dataset,
        rules=[_describe_rule(rule) for rule in rules],
        not_applicable=not_applicable,
        runs=runs,
        swaps=_swaps([run.name for run in runs], scored, rules, cluster, level),
    )


def score_under_rules(
    inputs: ScoringInput,
) -> tuple[dict[str, Scores], dict[str, str]]:
    """Scores by rule, and why the other rules do not apply."""
    scores = {}
    problems = {}
    has_amodal = bool(inputs.ground_truth.amodal.present.any())
    for name, rule in published_rules().items():
        if rule.needs == "amodal" and not has_amodal:
            problems[name] = "the dataset has no amodal masks"
            continue
        options = {**rule.options, **SKIPPED_OPTIONS.get(rule.protocol, {})}
        try:
            scores[name] = find_protocol(rule.protocol).score(inputs, **options)
        except ProtocolError as error:
            problems[name] = str(error)
    return scores, problems


def describe_ladder_dataset(dataset: Dataset, inputs: ScoringInput) -> LadderDataset:
    """The questions of a dataset, and those that rules treat differently."""
    truth = inputs.ground_truth
    target_area = inputs.overlaps("requested").merged.target
    return LadderDataset(
        name=dataset.name,
        sha256=hash_path(dataset.path / MANIFEST),
        samples=len(truth),
        images=truth.cluster_count,
        ignored=int((ignored_areas(inputs) > 0).sum()),
        empty_truth=int((target_area == 0).sum()),
        several_targets=int((truth.counts > 1).sum()),
    )


def _open(
    item: str | os.PathLike[str] | Run, dataset: Dataset | None
) -> tuple[str, Dataset, PredictionColumns]:
    """The name, the dataset and the predictions of a run or of a file of predictions."""
    is_folder = not isinstance(item, Run) and (Path(item) / RUN).is_file()
    if isinstance(item, Run) or is_folder:
        run = load_run(item)
        paths = RunPaths(truth=None if dataset is None else dataset.path)
        run_data = load_run_data(run, paths)
        return run.name, run_data.dataset, run_data.predictions
    if dataset is None:
        raise ProtocolError(
            f"{item} is a file of predictions, not a run: say which dataset they are for"
        )
    path = Path(item)
    truth = GroundTruth.from_dataset(dataset)
    # The predictions of a run folder all have the same file name.
    name = path.absolute().parent.name if path.name == PREDICTIONS else path.stem
    return name, dataset, read_predictions(path, truth).predictions


def _values_under(scores: Scores, cluster: Int64Array, level: float) -> LadderValues:
    """gIoU, cIoU and the other headline metrics of a rule, with intervals."""
    everything = ImageGroups.single(cluster)
    metrics = {}
    for name, terms in scores.metrics.items():
        if name in MAIN_METRICS or name in HEADLINE_METRICS:
            interval = estimate(terms, everything, level)[0].interval
            metrics[name] = metric_value(scores, name, interval)
    for name, estimated in estimate_others(scores, cluster, level).items():
        if name in HEADLINE_METRICS:
            metrics[name] = estimate_value(estimated)
    return LadderValues(metrics=metrics, counts=count_statuses(scores))


def _spreads(
    values: Mapping[str, LadderValues], rules: Sequence[PublishedRule]
) -> dict[str, Spread]:
    """The extremes of gIoU and cIoU under the rules of published code."""
    spreads = {}
    for metric in MAIN_METRICS:
        by_rule = {}
        for rule in rules:
            value = values[rule.name].metrics[metric].value
            if rule.commit and value is not None:
                by_rule[rule.name] = value
        if len(by_rule) < 2:
            continue
        lowest = min(by_rule, key=by_rule.__getitem__)
        highest = max(by_rule, key=by_rule.__getitem__)
        spreads[metric] = Spread(
            low=by_rule[lowest],
            low_rule=lowest,
            high=by_rule[highest],
            high_rule=highest,
        )
    return spreads


def _swaps(
    names: Sequence[str],
    scored: Sequence[Mapping[str, Scores]],
    rules: Sequence[PublishedRule],
    cluster: Int64Array,
    level: float,
) -> list[RankSwap]:
    """The pairs of runs that change their order between rules."""
    everything = ImageGroups.single(cluster)
    swaps = []
    for a, b in combinations(range(len(names)), 2):
        for metric in MAIN_METRICS:
            differences = {}
            for rule in rules:
                terms_a = scored[a][rule.name].metrics[metric]
                terms_b = scored[b][rule.name].metrics[metric]
                value_a = terms_a.value()
                value_b = terms_b.value()
                if value_a is None or value_b is None:
                    continue
                test = compare_metric(terms_a, terms_b, everything, level)[0]
                differences[rule.name] = RuleDifference(
                    difference=value_b - value_a,
                    low=test.interval.low,
                    high=test.interval.high,
                    p=test.p_value,
                )
            a_better = [
                name for name, item in differences.items() if item.difference < 0
            ]
            b_better = [
                name for name, item in differences.items() if item.difference > 0
            ]
            if a_better and b_better:
                swaps.append(
                    RankSwap(
                        a=names[a],
                        b=names[b],
                        metric=metric,
                        a_better=a_better,
                        b_better=b_better,
                        differences=differences,
                    )
                )
    return swaps


def _describe_rule(rule: PublishedRule) -> LadderRule:
    return LadderRule(
        name=rule.name,
        protocol=rule.protocol,
        options=rule.options,
        source=rule.source,
        text=rule.text,
        sentence=cite_rule(rule.protocol, rule.options),
        comparable_with=rule.comparable_with,
        caution=rule.caution,
    )

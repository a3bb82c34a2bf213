"""Two runs side by side: differences with intervals and p-values, overall and by slice.

gIoU over all samples is the headline: one test, named in advance. All other differences form one family. Their p-values
are adjusted for the number of differences in it (Benjamini and Hochberg), so that a page full of slices of two equal
models shows a significant one in at most 5 % of cases.

Some protocols leave out questions for which a run has no mask (`mmr`, an image without any). Two runs are compared on
the questions with targets that the protocol counts in both, so a run gains nothing by leaving out the hard ones.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from maskwise.arrays import BoolArray
from maskwise.errors import (
    MissingDependencyError,
    ProtocolError,
    StoreError,
    UnknownNameError,
)
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.significance import (
    Comparison,
    adjust_p_values,
    compare_metrics,
)
from maskwise.report.formatting import format_difference, format_p, format_value
from maskwise.report.metric_labels import metric_label
from maskwise.report.protocol_order import states_mask_types
from maskwise.report.sample_selection import largest
from maskwise.runs import Run, load_run
from maskwise.runs.tables import MAIN_METRICS

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "maskwise comparison 3"
HEADLINE = "giou"
SIGNIFICANT = 0.05
MAX_GROUPS = 12
"""Groups of a slicing that are compared: those with most samples."""
MAX_SLICINGS = 16


class MetricChange(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of run A and of run B.

    method: how the interval was made, or why there is none. p_adjusted: p adjusted for the number of differences that
    are compared; None for the headline.
    """

    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    method: str
    p: float | None
    images: int
    unit: str = "fraction"
    p_adjusted: float | None = None

    @property
    def shown_p(self) -> float | None:
        """The p-value a reader sees: the adjusted one, except for the headline."""
        return self.p if self.p_adjusted is None else self.p_adjusted

    @property
    def significant(self) -> bool:
        """Whether the p-value a reader sees is below 0.05."""
        return self.shown_p is not None and self.shown_p < SIGNIFICANT


class SliceChange(msgspec.Struct, frozen=True, kw_only=True):
    """One group of a slicing."""

    name: str
    samples: int
    metrics: dict[str, MetricChange]


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All differences under one protocol.

    samples: questions of the dataset; scored_a, scored_b: those that the protocol counts in run A and in run B;
    compared: those that the differences are about. family: number of differences whose p-values are adjusted together.
    """

    format: str
    a: str
    b: str
    dataset: str
    protocol: str
    options: dict[str, Any]
    cite: str
    samples: int
    scored_a: int
    scored_b: int
    compared: int
    images: int
    level: float
    family: int
    metrics: dict[str, MetricChange]
    slices: dict[str, list[SliceChange]]

    @property
    def notice(self) -> str | None:
        """A sentence if the runs are compared on a part of the questions that one of them was scored on."""
        if self.compared == max(self.scored_a, self.scored_b):
            return None
        return (
            f"Under {self.protocol} {self.scored_a:,} of {self.samples:,} questions count for A and {self.scored_b:,} "
            f"for B. They are compared on the {self.compared:,} that count for both, so these values differ from those "
            "of the runs."
        )

    def to_pandas(self) -> "pd.DataFrame":
        """A data frame with one row per difference: slice and group (empty for all questions), metric, a, b,
        difference, low, high, p, p_adjusted, significant. Needs pandas.
        """
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError:
            raise MissingDependencyError("RunComparison.to_pandas", "pandas") from None
        rows = []
        for name, change in self.metrics.items():
            rows.append(_frame_row("", "", self.compared, name, change))
        for slicing, groups in self.slices.items():
            for group in groups:
                for name, change in group.metrics.items():
                    rows.append(
                        _frame_row(slicing, group.name, group.samples, name, change)
                    )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        giou = self.metrics["giou"].difference
        change = "unknown" if giou is None else f"{giou:+.3f}"
        return f"RunComparison({self.a!r}, {self.b!r}, {self.protocol}, {self.samples} samples, giou {change})"

    def _repr_html_(self) -> str:
        """The differences of all metrics as a table, for notebooks."""
        head = "<tr><th>metric</th><th>A</th><th>B</th><th>B - A</th><th>interval</th><th>p</th></tr>"
        rows = "".join(
            f"<tr><td>{escape(metric_label(name).label)}</td><td>{format_value(change.a, change.unit)}</td>"
            f"<td>{format_value(change.b, change.unit)}</td>"
            f"<td>{format_difference(change.difference, change.unit)}</td>"
            f"<td>{format_difference(change.low, change.unit)} to "
            f"{format_difference(change.high, change.unit)}</td><td>{format_p(change.shown_p)}</td></tr>"
            for name, change in self.metrics.items()
            if change.difference is not None
        )
        notice = "" if self.notice is None else f"<p>{escape(self.notice)}</p>"
        return f"<p>A: {escape(self.a)}, B: {escape(self.b)}</p>{notice}<table>{head}{rows}</table>"


@dataclass(frozen=True)
class RunPair:
    """Two runs that may be compared under a protocol."""

    a: Run
    b: Run
    protocol: str


def compare(
    a: str | os.PathLike[str] | Run,
    b: str | os.PathLike[str] | Run,
    *,
    protocol: str | None = None,
) -> RunComparison:
    """Compare two runs on the same samples: differences (b - a) with intervals and p-values, overall and by slice.

    a, b: runs or their folders. protocol: `strict` if None.

    Example: compare("runs/tiny", "runs/mine").metrics["giou"].difference
    """
    return compare_runs(pair_runs(load_run(a), load_run(b), protocol))


def pair_runs(a: Run, b: Run, protocol: str | None = None) -> RunPair:
    """Check that two runs can be compared: one dataset, and one protocol with the same options."""
    dataset_a = a.info.dataset
    dataset_b = b.info.dataset
    if dataset_a.sha256 == dataset_b.sha256 and a.ids != b.ids:
        raise ProtocolError(
            f"{a.location} has {len(a.ids)} questions of {dataset_a.path}, {b.location} {len(b.ids)}, "
            "and not the same ones: evaluate both with the same --limit and --seed"
        )
    if dataset_a.sha256 != dataset_b.sha256:
        raise ProtocolError(
            f"{a.location} was scored on {dataset_a.path} (sha256 {dataset_a.sha256[:12]}), "
            f"{b.location} on {dataset_b.path} (sha256 {dataset_b.sha256[:12]}): "
            "runs on different datasets cannot be compared; score both on one"
        )
    common = [name for name in a.scores.protocols if name in b.scores.protocols]
    if not common:
        raise ProtocolError(
            f"{a.location} was scored under {', '.join(a.scores.protocols)}, {b.location} under "
            f"{', '.join(b.scores.protocols)}: they share no protocol; score both under one"
        )
    if protocol is not None and protocol not in common:
        raise UnknownNameError("protocol of both runs", protocol, common)
    name = protocol or ("strict" if "strict" in common else common[0])
    options = [run.scores.protocols[name].options for run in (a, b)]
    if options[0] != options[1]:
        raise ProtocolError(
            f"{name} had other options in {a.location} ({_print_options(options[0])}) than in {b.location} "
            f"({_print_options(options[1])}); score both with the same"
        )
    return RunPair(a, b, name)


def compare_runs(pair: RunPair) -> RunComparison:
    """Every metric over all samples, and gIoU and cIoU in every group of every slicing, clustered by image."""
    level = pair.a.info.intervals.level
    shared = shared_samples(pair)
    metrics = [
        comparable_metrics(run, pair.protocol, shared) for run in (pair.a, pair.b)
    ]
    if not (states_mask_types(pair.a) and states_mask_types(pair.b)):
        # The type of a prediction that states none is that of its masks: no decision of the model.
        for run_metrics in metrics:
            run_metrics.pop("mask_type_accuracy", None)
    for run, terms in zip((pair.a, pair.b), metrics, strict=True):
        if HEADLINE not in terms:
            raise ProtocolError(
                f"{run.location} has no gIoU under {pair.protocol}, which leaves out all its questions: nothing can be "
                "compared; choose another protocol"
            )
    everything = ImageGroups.single(pair.a.clusters)
    comparisons = compare_metrics(metrics[0], metrics[1], everything, level)
    overall = {
        name: to_change(comparison, metrics[0][name].unit)
        for name, (comparison,) in comparisons.items()
    }
    slices = {
        slicing: _slice_changes(pair, slicing, metrics, shared, level)
        for slicing in _slicings(pair)
    }
    overall, slices, family = _adjust(overall, slices)
    return RunComparison(
        format=FORMAT,
        a=pair.a.location,
        b=pair.b.location,
        dataset=pair.a.info.dataset.name,
        protocol=pair.protocol,
        options=pair.a.scores.protocols[pair.protocol].options,
        cite=pair.a.scores.protocols[pair.protocol].cite,
        samples=len(pair.a.ids),
        scored_a=int(is_counted(pair.a, pair.protocol).sum()),
        scored_b=int(is_counted(pair.b, pair.protocol).sum()),
        compared=int(
            (
                shared
                & (
                    is_counted(pair.a, pair.protocol)
                    | is_counted(pair.b, pair.protocol)
                )
            ).sum()
        ),
        images=len(np.unique(pair.a.clusters[shared])),
        level=level,
        family=family,
        metrics=overall,
        slices=slices,
    )


def is_counted(run: Run, protocol: str) -> BoolArray:
    """Whether the protocol counts each sample of a run, failed and missing predictions included. bool [samples]."""
    status = run.rows(protocol).status
    names = np.array(status.names, object)
    counted: BoolArray = names[status.codes] != "excluded"
    return counted


def has_targets(run: Run, protocol: str) -> BoolArray:
    """Whether each sample has targets. bool [samples]."""
    targets = run.rows(protocol).slices.get("targets")
    if targets is None:
        raise StoreError(
            f"{run.location}: its tables lack the slicing 'targets'; score the run again"
        )
    names = np.array(targets.names, object)
    known: BoolArray = names[targets.codes] != "0"
    return known


def shared_samples(pair: RunPair) -> BoolArray:
    """The samples that two runs are compared on, bool [samples]: all but the questions with targets that the protocol
    leaves out of one run.

    A question without targets that a protocol leaves out of a run without masks (`muse`) was answered rightly: the
    masks of the other run count.
    """
    counted_a = is_counted(pair.a, pair.protocol)
    counted_b = is_counted(pair.b, pair.protocol)
    is_gap = (counted_a != counted_b) & has_targets(pair.a, pair.protocol)
    shared: BoolArray = ~is_gap
    return shared


def comparable_metrics(
    run: Run, protocol: str, shared: BoolArray
) -> dict[str, MetricTerms]:
    """The metrics that follow from the samples, without those whose value the protocol fixes for lack of samples.

    shared: bool [samples], the samples that count; the terms of the others are 0.
    """
    values = run.scores.protocols[protocol].metrics
    metrics = {
        name: metric
        for name, metric in run.metrics(protocol).items()
        if not values[name].gated
    }
    if shared.all():
        return metrics
    return {
        name: replace(
            metric,
            numerator=np.where(shared, metric.numerator, 0),
            denominator=np.where(shared, metric.denominator, 0),
        )
        for name, metric in metrics.items()
    }


def _slicings(pair: RunPair) -> list[str]:
    slicings = pair.a.scores.protocols[pair.protocol].slices
    return [name for name, groups in slicings.items() if len(groups) > 1][:MAX_SLICINGS]


def _slice_changes(
    pair: RunPair,
    slicing: str,
    metrics: Sequence[Mapping[str, MetricTerms]],
    shared: BoolArray,
    level: float,
) -> list[SliceChange]:
    """The largest groups of a slicing. cIoU is left out where a group has none in the run's own table."""
    codes = pair.a.rows(pair.protocol).slices.get(slicing)
    if codes is None:
        raise StoreError(
            f"{pair.a.location}: its tables lack the slicing {slicing!r}; score the run again"
        )
    groups = ImageGroups(codes.codes, pair.a.clusters, len(codes.names))
    main_metrics = [{name: terms[name] for name in MAIN_METRICS} for terms in metrics]
    comparisons = compare_metrics(main_metrics[0], main_metrics[1], groups, level)
    shared_counts = np.bincount(codes.codes[shared], minlength=len(codes.names))
    out = []
    for group in largest(
        pair.a.scores.protocols[pair.protocol].slices[slicing], MAX_GROUPS
    ):
        if group.name not in codes.names:
            raise StoreError(
                f"{pair.a.location}: its tables lack {slicing} = {group.name!r}; score the run again"
            )
        item = codes.names.index(group.name)
        known = [name for name in MAIN_METRICS if group.metrics[name].value is not None]
        changes = {
            name: to_change(comparisons[name][item], metrics[0][name].unit)
            for name in known
        }
        samples = int(shared_counts[item])
        out.append(SliceChange(name=group.name, samples=samples, metrics=changes))
    return out


def _frame_row(
    slicing: str, group: str, samples: int, metric: str, change: MetricChange
) -> dict[str, Any]:
    return {
        "slice": slicing,
        "group": group,
        "samples": samples,
        "metric": metric,
        "a": change.a,
        "b": change.b,
        "difference": change.difference,
        "low": change.low,
        "high": change.high,
        "p": change.p,
        "p_adjusted": change.p_adjusted,
        "significant": change.significant,
        "method": change.method,
        "unit": change.unit,
    }


def to_change(comparison: Comparison, unit: str) -> MetricChange:
    """A tested difference as reports show it."""
    return MetricChange(
        a=comparison.a,
        b=comparison.b,
        difference=comparison.difference,
        low=comparison.interval.low,
        high=comparison.interval.high,
        method=comparison.interval.method,
        p=comparison.p_value,
        images=comparison.images,
        unit=unit,
    )


def _adjust(
    overall: dict[str, MetricChange], slices: dict[str, list[SliceChange]]
) -> tuple[dict[str, MetricChange], dict[str, list[SliceChange]], int]:
    """The same changes with adjusted p-values, and their number."""
    family = [change for name, change in overall.items() if name != HEADLINE]
    groups = [group for several in slices.values() for group in several]
    family += [change for group in groups for change in group.metrics.values()]
    adjusted = adjust_p_values([change.p for change in family])
    renewed = iter(
        msgspec.structs.replace(change, p_adjusted=p)
        for change, p in zip(family, adjusted, strict=True)
    )
    changed = {
        name: change if name == HEADLINE else next(renewed)
        for name, change in overall.items()
    }
    sliced = {
        slicing: [
            msgspec.structs.replace(
                group, metrics={name: next(renewed) for name in group.metrics}
            )
            for group in several
        ]
        for slicing, several in slices.items()
    }
    return changed, sliced, sum(p is not None for p in adjusted)


def _print_options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "none"

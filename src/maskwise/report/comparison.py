"""Two runs side by side: differences with intervals and p-values, overall and by slice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.errors import ProtocolError, StoreError, UnknownNameError
from maskwise.protocols import Metric
from maskwise.protocols.stats import Comparison, compare_metrics
from maskwise.report.sample_selection import largest
from maskwise.runs import Run
from maskwise.runs.tables import MAIN_METRICS

MAX_GROUPS = 12
"""Groups of a slicing that are compared, those with most samples."""
MAX_SLICINGS = 16


class MetricChange(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of run A and of run B. `p_adjusted`: by Holm's method, over the groups of a slicing."""

    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    images: int
    unit: str = "fraction"
    p_adjusted: float | None = None


class SliceChange(msgspec.Struct, frozen=True, kw_only=True):
    """One group of a slicing."""

    name: str
    samples: int
    metrics: dict[str, MetricChange]


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All that is compared under one protocol."""

    format: str
    a: str
    b: str
    dataset: str
    protocol: str
    options: dict[str, Any]
    samples: int
    images: int
    level: float
    resamples: int
    permutations: int
    metrics: dict[str, MetricChange]
    slices: dict[str, list[SliceChange]]


@dataclass(frozen=True)
class RunPair:
    """Two runs that may be compared under a protocol."""

    a: Run
    b: Run
    protocol: str


def pair_runs(a: Run, b: Run, protocol: str | None = None) -> RunPair:
    """Check that two runs can be compared: one dataset, and one protocol with the same options."""
    one, other = a.info.dataset, b.info.dataset
    if one.sha256 != other.sha256 or a.ids != b.ids:
        raise ProtocolError(
            f"{a.location} was scored on {one.path} (sha256 {one.sha256[:12]}), {b.location} on {other.path} "
            f"(sha256 {other.sha256[:12]}): runs on different datasets cannot be compared; score both on one"
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


@dataclass(frozen=True)
class Task:
    """What to compare: all samples, or one group of a slicing."""

    slicing: str | None = None
    group: str = ""


Track = Callable[[Sequence[Task]], Iterable[Task]]
"""Passes tasks on one by one, and may show how far they are."""


def compare_runs(
    pair: RunPair, *, permutations: int = 2000, threads: int = 1, track: Track = iter
) -> RunComparison:
    """Every figure over all samples, and gIoU and cIoU in every group of every slicing.

    Intervals and p-values are clustered by image (see `protocols.stats`), drawn as run A's intervals were.
    """
    facts, found = pair.a.info.intervals, {}
    metrics = [_comparable(run, pair.protocol) for run in (pair.a, pair.b)]
    for task in track(_plan(pair)):
        whole = task.slicing is None
        chosen = metrics if whole else [{name: run[name] for name in MAIN_METRICS} for run in metrics]
        changes = compare_metrics(
            chosen[0],
            chosen[1],
            pair.a.clusters,
            rows=None if task.slicing is None else _rows_of(pair, task.slicing, task.group),
            resamples=facts.resamples,
            permutations=permutations,
            level=facts.level,
            seed=facts.seed,
            threads=threads,
        )
        found[task] = {name: _change(change, metrics[0][name].unit) for name, change in changes.items()}
    return RunComparison(
        format="maskwise comparison 1",
        a=pair.a.location,
        b=pair.b.location,
        dataset=pair.a.info.dataset.name,
        protocol=pair.protocol,
        options=pair.a.scores.protocols[pair.protocol].options,
        samples=len(pair.a.ids),
        images=int(pair.a.clusters.max(initial=-1)) + 1,
        level=facts.level,
        resamples=facts.resamples,
        permutations=permutations,
        metrics=found.pop(Task()),
        slices=_gather_slices(pair, found),
    )


def _comparable(run: Run, protocol: str) -> dict[str, Metric]:
    """The figures that are what their samples make them, not one a rule prescribes for want of samples."""
    figures = run.scores.protocols[protocol].metrics
    return {name: metric for name, metric in run.metrics(protocol).items() if not figures[name].gated}


def _plan(pair: RunPair) -> list[Task]:
    slicings = pair.a.scores.protocols[pair.protocol].slices
    several = [name for name, groups in slicings.items() if len(groups) > 1][:MAX_SLICINGS]
    groups = [(slicing, group) for slicing in several for group in largest(slicings[slicing], MAX_GROUPS)]
    return [Task(), *(Task(slicing, group.name) for slicing, group in groups)]


def _rows_of(pair: RunPair, slicing: str, group: str) -> NDArray[np.bool_]:
    codes = pair.a.rows(pair.protocol).slices.get(slicing)
    if codes is None or group not in codes.names:
        raise StoreError(f"{pair.a.location}: its tables lack {slicing} = {group!r}; score the run again")
    return codes.codes == codes.names.index(group)


def _change(found: Comparison, unit: str) -> MetricChange:
    return MetricChange(
        a=found.a,
        b=found.b,
        difference=found.difference,
        low=found.interval.low,
        high=found.interval.high,
        p=found.p_value,
        images=found.images,
        unit=unit,
    )


def holm_adjust(values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted so that among many, too, one is seldom small by chance (Holm 1979); None stays None."""
    adjusted: list[float | None] = [None] * len(values)
    known = sorted((value, item) for item, value in enumerate(values) if value is not None)
    highest = 0.0
    for rank, (value, item) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        adjusted[item] = highest
    return adjusted


def _gather_slices(
    pair: RunPair, changes: Mapping[Task, Mapping[str, MetricChange]]
) -> dict[str, list[SliceChange]]:
    """Groups by slicing, with p-values adjusted for the number of groups side by side, figure by figure."""
    found: dict[str, list[SliceChange]] = {}
    for slicing in dict.fromkeys(task.slicing for task in changes if task.slicing is not None):
        tasks = [task for task in changes if task.slicing == slicing]
        adjusted = {name: holm_adjust([changes[task][name].p for task in tasks]) for name in MAIN_METRICS}
        found[slicing] = [
            SliceChange(
                name=task.group,
                samples=int(_rows_of(pair, slicing, task.group).sum()),
                metrics={
                    name: msgspec.structs.replace(changes[task][name], p_adjusted=adjusted[name][item])
                    for name in MAIN_METRICS
                },
            )
            for item, task in enumerate(tasks)
        ]
    return found


def _print_options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "none"

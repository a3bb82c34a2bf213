"""The same evaluation several times: how much a number moves by itself, beside how much it depends on the images.

    repeats = evaluate_repeatedly("tiny", "world", "runs/tiny", repeats=3, vary=Variation("seed", (0, 1, 2)))
    repeats.protocols["strict"]["giou"].deviation

Each repeat is a run of its own in OUT/repeat-1, OUT/repeat-2, ...; OUT/repeats.json has the summary. What is varied is
an option of the model (seed, template, batch_size): the harness passes it on, and a model without such an option
refuses it.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import msgspec
import numpy as np

from maskwise.errors import MaskwiseError
from maskwise.harness.evaluate import evaluate
from maskwise.protocols.intervals import t_quantile
from maskwise.runs import Run
from maskwise.store.atomic import atomic_write

REPEATS_FORMAT = "maskwise repeats 1"
SUMMARY = "repeats.json"


@dataclass(frozen=True)
class Variation:
    """An option of the model and its value in each repeat."""

    name: str
    values: tuple[Any, ...]


class RepeatedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over all repeats.

    deviation: standard deviation between repeats. low, high: the interval over images, mean of the repeats' ends; None
    where a repeat has none. whole_low, whole_high: the interval of the mean over images and repeats together.
    """

    values: list[float]
    mean: float
    deviation: float
    smallest: float
    largest: float
    low: float | None
    high: float | None
    whole_low: float | None
    whole_high: float | None
    unit: str = "fraction"


class RepeatSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`repeats.json`. vary: what differs between the repeats, empty for nothing; protocols: metrics by protocol."""

    format: str
    runs: list[str]
    vary: str
    values: list[Any]
    protocols: dict[str, dict[str, RepeatedMetric]]


def parse_variation(text: str | None, repeats: int) -> Variation | None:
    """`seed` varies an option from 0 to repeats - 1; `batch_size=1,4,16` names a value for each repeat."""
    if text is None:
        return None
    name, _, listed = text.partition("=")
    values: list[Any] = list(range(repeats))
    if listed:
        values = [_parse_value(value) for value in listed.split(",")]
    if len(values) != repeats:
        raise MaskwiseError(
            f"--vary {text} names {len(values)} values for {repeats} repeats; give one for each"
        )
    return Variation(name, tuple(values))


def _parse_value(text: str) -> Any:
    """A number, true or false as such; anything else as text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def evaluate_repeatedly(
    model: str,
    data: Any,
    out: str | os.PathLike[str],
    *,
    repeats: int,
    vary: Variation | None = None,
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> RepeatSummary:
    """Evaluate a model several times and write the summary. arguments: as for `evaluate`.

    An interrupted call continues where it stopped, like every run.
    """
    if repeats < 2:
        raise MaskwiseError(f"--repeat {repeats}: two or more repeats have a variance")
    folder = Path(out)
    runs = []
    for item in range(repeats):
        varied = {} if vary is None else {vary.name: vary.values[item]}
        runs.append(
            evaluate(
                model,
                data,
                folder / f"repeat-{item + 1}",
                options={**(options or {}), **varied},
                **arguments,
            )
        )
    summary = summarise_repeats(runs, vary)
    with atomic_write(folder / SUMMARY) as file:
        file.write(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    return summary


def summarise_repeats(
    runs: Sequence[Run], vary: Variation | None = None
) -> RepeatSummary:
    """Mean and deviation of every metric that all runs have, two or more."""
    protocols: dict[str, dict[str, RepeatedMetric]] = {}
    for protocol, scores in runs[0].scores.protocols.items():
        metrics = {}
        for name in scores.metrics:
            repeated = _summarise_metric(runs, protocol, name)
            if repeated is not None:
                metrics[name] = repeated
        protocols[protocol] = metrics
    return RepeatSummary(
        format=REPEATS_FORMAT,
        runs=[run.location for run in runs],
        vary="" if vary is None else vary.name,
        values=[] if vary is None else list(vary.values),
        protocols=protocols,
    )


def _summarise_metric(
    runs: Sequence[Run], protocol: str, name: str
) -> RepeatedMetric | None:
    """None where the metric is undefined in a run."""
    metrics = [run.scores.protocols[protocol].metrics[name] for run in runs]
    values = [metric.value for metric in metrics if metric.value is not None]
    if len(values) < len(runs):
        return None
    lows = [metric.low for metric in metrics if metric.low is not None]
    highs = [metric.high for metric in metrics if metric.high is not None]
    has_interval = len(lows) == len(runs) == len(highs)
    center = mean(values)
    deviation = stdev(values)
    low = mean(lows) if has_interval else None
    high = mean(highs) if has_interval else None
    whole_low = None
    whole_high = None
    if low is not None and high is not None:
        # The mean of n repeats has the error of the images and, independent of it, that of the repeats.
        freedom = np.array([len(runs) - 1.0])
        quantile = float(t_quantile(freedom, runs[0].info.intervals.level)[0])
        repeat_reach = quantile * deviation / math.sqrt(len(runs))
        whole_low = center - math.hypot(center - low, repeat_reach)
        whole_high = center + math.hypot(high - center, repeat_reach)
    return RepeatedMetric(
        values=values,
        mean=center,
        deviation=deviation,
        smallest=min(values),
        largest=max(values),
        low=low,
        high=high,
        whole_low=whole_low,
        whole_high=whole_high,
        unit=metrics[0].unit,
    )

"""What the probes that change images or words report: measures, tables, plots and examples."""

from collections.abc import Mapping, Sequence

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.probes.changed_data import (
    ALPHA,
    LOSSES,
    ChangedRun,
    Effect,
    worst_severity,
)
from maskwise.runs.probe_results import (
    Cell,
    Measure,
    PlotPoint,
    PlotSeries,
    ProbeExample,
    ProbePlot,
    ProbeTable,
)

EXAMPLES = 4
"""Samples to look at: one screen of a page."""

SERIOUS = next(loss for loss, severity in LOSSES if severity == "medium")
"""The loss that would be of medium severity: where the interval reaches it, a finding of
nothing means little."""

CHANCE = 0.05
"""A p-value from which on a difference is usually called chance."""


def loss_sentence(what: str, effects: Sequence[Effect]) -> str:
    """What all changes together cost, and which cost most. effects: all of them first."""
    everything = effects[0]
    if everything.loss is None or everything.p is None:
        return f"{what} costs an unknown share of the score: too few questions to tell."
    if worst_severity(effects) == "none":
        span = everything.loss_range
        if span is not None and span[1] >= SERIOUS:
            return (
                f"{what} costs {span[0]:z.0%} to {span[1]:.0%} of the score "
                f"(p = {everything.p:.2f}): too few questions to tell."
            )
        return f"{what} {_describe_no_finding(everything.loss, everything.p)}."
    flagged = [effect for effect in effects[1:] if effect.severity != "none"]
    sentence = f"{what} costs {everything.loss:.0%} of the score"
    if flagged:
        worst = max(flagged, key=lambda effect: effect.loss or 0.0)
        sentence += f"; worst is {worst.name}, which costs {worst.loss:.0%}"
    return f"{sentence}."


def _describe_no_finding(loss: float, p: float) -> str:
    """A loss that is no finding, in words. p: adjusted."""
    if p >= CHANCE:
        return f"costs nothing that could be measured (p = {p:.2f})"
    if loss < 0:
        return f"costs nothing: the score is {-loss:.1%} higher (p = {p:.2g})"
    least, _ = LOSSES[0]
    return (
        f"costs {loss:.1%} of the score (p = {p:.2g}); a finding needs {least:.0%} "
        f"and p < {ALPHA}"
    )


def list_measures(effects: Sequence[Effect]) -> list[Measure]:
    """The difference of gIoU of each effect, with its interval."""
    measures = []
    for effect in effects:
        interval = effect.comparison.interval
        measures.append(
            Measure(
                name=effect.name.replace(" ", "_"),
                label=effect.name,
                value=effect.comparison.difference,
                low=interval.low,
                high=interval.high,
                unit="difference",
                meaning="gIoU, changed minus unchanged",
                method=interval.method,
            )
        )
    return measures


def effect_table(title: str, effects: Sequence[Effect], note: str = "") -> ProbeTable:
    """One row per effect."""
    rows: list[list[Cell]] = []
    for effect in effects:
        compared = effect.comparison
        rows.append(
            [
                effect.name,
                effect.samples,
                compared.a,
                compared.b,
                compared.difference,
                effect.loss,
                effect.p,
            ]
        )
    return ProbeTable(
        title=title,
        columns=[
            "change",
            "questions",
            "gIoU before",
            "gIoU after",
            "difference",
            "share lost",
            "p (adjusted)",
        ],
        units=["text", "count", "fraction", "fraction", "difference", "fraction", "p"],
        rows=rows,
        note=note,
    )


def strength_plot(
    changed: ChangedRun, families: Mapping[str, Sequence[str]]
) -> ProbePlot:
    """The share of the controls' score that is kept by severity, a line for each family."""
    labels = np.array(changed.changes)
    strengths = np.array(changed.strengths)
    series = []
    for name, members in families.items():
        in_family = np.isin(labels, members)
        points = [PlotPoint(0.0, 1.0)]
        for level in sorted(set(strengths[in_family].tolist())):
            rows = in_family & (strengths == level)
            before = changed.control_terms.value(rows)
            after = changed.terms.value(rows)
            if before and after is not None:
                points.append(PlotPoint(float(level), min(1.0, after / before)))
        series.append(PlotSeries(name, points))
    return ProbePlot(
        title="Share of the score that is kept, by severity",
        kind="lines",
        series=series,
        x="severity (0: unchanged)",
        y="share kept",
        note="Compared with the same images unchanged; gains are drawn as no loss.",
    )


def example_rows(
    changed: ChangedRun, run: str, rows: BoolArray, count: int = EXAMPLES
) -> list[ProbeExample]:
    """The samples that lost most."""
    examples = []
    for row in changed.most_lost(rows, count):
        strength = changed.strengths[row]
        label = changed.changes[row] + (f", {strength}" if strength else "")
        before = changed.control_terms.numerator[row]
        after = changed.terms.numerator[row]
        examples.append(
            ProbeExample(
                title=label,
                sample=changed.run.ids[row],
                runs=[run],
                note=f"IoU {before:.2f} before the change, {after:.2f} after it.",
            )
        )
    return examples

"""A comparison of two runs for people: as a page, with the samples where they disagree most."""

from collections.abc import Iterable
from dataclasses import dataclass

from maskwise.errors import MaskwiseError
from maskwise.report.charts import Axis, Bar, bar_of, difference_axis
from maskwise.report.comparison import Change, GroupChange, Pair, RunComparison
from maskwise.report.evidence import Places, open_evidence
from maskwise.report.figures import THEMES, cut, print_difference, print_p, print_value, slice_label, words_of
from maskwise.report.gallery import Gallery, Speaker, fill_gallery
from maskwise.report.page import render
from maskwise.report.run import Figure
from maskwise.report.selection import pick_disagreements

SURE = 0.05
"""Below this p-value a difference is called one."""
MAX_NAME = 80


@dataclass(frozen=True)
class ChangeLine:
    """One line of a chart of differences. `sure`: chance alone hardly makes it; `better`: it favours B."""

    name: str
    meaning: str
    change: Change
    bar: Bar | None
    p: float | None
    sure: bool
    better: bool
    samples: int | None = None


@dataclass(frozen=True)
class ChangeChart:
    """Differences on one axis."""

    title: str
    axis: Axis
    lines: list[ChangeLine]


def comparison_to_html(
    pair: Pair, found: RunComparison, *, samples: int = 10, places: tuple[Places, Places] | None = None
) -> str:
    """One offline page below 10 MB. samples: of each kind in the gallery; places: of run A and of run B."""
    return render(
        "compare.html",
        found=found,
        names=run_names(pair),
        verdict=describe(found.metrics["giou"], found.level),
        figures=_figure_charts(found),
        slices=_slice_charts(found),
        gallery=_gallery(pair, samples, places or (Places(), Places())),
    )


def run_names(pair: Pair) -> tuple[str, str]:
    """What the runs are called: their folders."""
    return cut(pair.a.name, MAX_NAME), cut(pair.b.name, MAX_NAME)


def describe(giou: Change, level: float) -> str:
    """The difference in gIoU in one sentence."""
    if giou.difference is None:
        return "One of the runs has no gIoU, so there is nothing to compare."
    if giou.difference == 0 and (giou.p is None or giou.p >= SURE):
        return f"Both runs have the same gIoU, {print_value(giou.a)}."
    better = "B" if giou.difference > 0 else "A"
    points = print_value(abs(giou.difference))
    sureness = f"p {print_p(giou.p)}"
    if giou.low is not None:
        ends = f"{print_difference(giou.low)} to {print_difference(giou.high)}"
        sureness = f"{100 * level:g} % interval of the difference {ends}, {sureness}"
    if giou.p is not None and giou.p < SURE:
        return f"{better} is better by {points} points of gIoU ({sureness})."
    return f"{better} is ahead by {points} points of gIoU, which chance alone may explain ({sureness})."


def _figure_charts(found: RunComparison) -> list[ChangeChart]:
    charts = []
    for theme in THEMES:
        changes = {
            name: change
            for name, change in found.metrics.items()
            if words_of(name).theme == theme and change.difference is not None
        }
        axis = _axis(changes.values())
        lines = [_line(name, change, axis) for name, change in changes.items()]
        if lines:
            charts.append(ChangeChart(theme, axis, lines))
    return charts


def _slice_charts(found: RunComparison) -> list[ChangeChart]:
    return [_slice_chart(slicing, groups) for slicing, groups in found.slices.items()]


def _slice_chart(slicing: str, groups: list[GroupChange]) -> ChangeChart:
    axis = _axis([group.metrics["giou"] for group in groups])
    lines = [
        _slice_line(cut(group.name, MAX_NAME), group.samples, group.metrics["giou"], axis) for group in groups
    ]
    return ChangeChart(cut(slice_label(slicing), MAX_NAME), axis, lines)


def _axis(changes: Iterable[Change]) -> Axis:
    return difference_axis(
        end
        for change in changes
        if change.unit == "fraction"
        for end in (change.difference, change.low, change.high)
        if end is not None
    )


def _line(name: str, change: Change, axis: Axis) -> ChangeLine:
    words = words_of(name)
    sign = 1 if words.better == "higher" else -1
    sure = change.p is not None and change.p < SURE
    better = sign * (change.difference or 0.0) >= 0
    return ChangeLine(words.label, words.meaning, change, _bar(change, axis), change.p, sure, better)


def _slice_line(name: str, samples: int, change: Change, axis: Axis) -> ChangeLine:
    p = change.p_adjusted
    better = (change.difference or 0.0) >= 0
    return ChangeLine(name, "", change, _bar(change, axis), p, p is not None and p < SURE, better, samples)


def _bar(change: Change, axis: Axis) -> Bar | None:
    if change.unit != "fraction":
        return None
    return bar_of(Figure(value=change.difference, low=change.low, high=change.high), axis)


def _gallery(pair: Pair, samples: int, places: tuple[Places, Places]) -> Gallery:
    """The gallery, or why there is none."""
    try:
        evidence = [open_evidence(run, place) for run, place in zip((pair.a, pair.b), places)]
    except MaskwiseError as error:
        return Gallery(problem=str(error))
    rows = [run.rows(pair.protocol) for run in (pair.a, pair.b)]
    picked = pick_disagreements(rows[0], rows[1], pair.a.clusters, samples)
    speakers = [
        Speaker(f"{letter}: {name}", *both)
        for letter, name, both in zip("AB", run_names(pair), zip(evidence, rows))
    ]
    return fill_gallery(picked, speakers)

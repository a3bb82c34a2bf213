"""Why a run loses points, as sentences and as Markdown."""

from collections.abc import Sequence

from maskwise.report.explanation import (
    Explanation,
    ExplanationDifference,
)
from maskwise.report.fault_repairs import FAULTS
from maskwise.report.formatting import (
    format_difference,
    format_interval,
    format_p,
    format_value,
)
from maskwise.report.ladder_text import markdown_table
from maskwise.report.metric_labels import slice_label
from maskwise.terminal import safe_markdown

COLUMNS = ("fault", "lost", "interval", "any order", "questions", "meaning")
DIFFERENCE_COLUMNS = (
    "fault",
    "A",
    "B",
    "B - A",
    "interval",
    "p",
    "any order",
    "meaning",
)
METHOD = (
    "Points of strict gIoU that each repair gains, one after the other in this order; with the gIoU they add up to "
    "100 for every question. Any order: the mean gain over all orders (Shapley)."
)


def fault_label(fault: str) -> str:
    """A fault in words."""
    hyphenated = fault.replace("over_", "over-")
    return hyphenated.replace("_", " ")


def explanation_rows(explanation: Explanation) -> list[tuple[str, ...]]:
    """The cells of COLUMNS, one row for each fault that costs anything."""
    return [
        (
            fault_label(fault),
            format_value(part.points.value),
            format_interval(part.points),
            format_value(part.shapley),
            str(part.questions),
            FAULTS[fault],
        )
        for fault, part in explanation.costly.items()
    ]


def difference_rows(difference: ExplanationDifference) -> list[tuple[str, ...]]:
    """The cells of DIFFERENCE_COLUMNS, one row for each fault that costs either run anything."""
    rows: list[tuple[str, ...]] = []
    for fault, change in difference.costly.items():
        interval = ""
        if change.low is not None and change.high is not None:
            low = format_difference(change.low)
            interval = f"{low} to {format_difference(change.high)}"
        means = [side.parts[fault].shapley for side in (difference.a, difference.b)]
        rows.append(
            (
                fault_label(fault),
                format_value(change.a),
                format_value(change.b),
                format_difference(change.difference),
                interval,
                format_p(change.shown_p),
                format_difference(means[1] - means[0]),
                FAULTS[fault],
            )
        )
    return rows


def describe_explanation(explanation: Explanation) -> str:
    """The loss and the faults that cost most, in one sentence."""
    lost = 1.0 - explanation.giou
    if not explanation.costly:
        return "No point is lost."
    ranked = sorted(
        explanation.costly.items(),
        key=lambda item: item[1].points.value or 0.0,
        reverse=True,
    )
    reasons = [
        f"{fault_label(fault)} ({format_value(part.points.value)})"
        for fault, part in ranked[:3]
    ]
    return (
        f"gIoU {format_value(explanation.giou)}: {format_value(lost)} points are lost, "
        f"most by {', '.join(reasons)}."
    )


def explanation_to_markdown(explanation: Explanation) -> str:
    """The waterfall and its slices as tables."""
    lines = [
        f"# Why {safe_markdown(explanation.run)} loses points",
        "",
        f"{describe_explanation(explanation)} {safe_markdown(explanation.dataset)}, "
        f"{explanation.samples} questions about {explanation.images} images.",
        "",
        METHOD,
        "",
        *markdown_table(COLUMNS, explanation_rows(explanation)),
    ]
    faults = list(explanation.costly)
    for slicing, groups in explanation.slices.items():
        head = ("group", "questions", "gIoU", *map(fault_label, faults))
        rows = [
            (
                group.name,
                str(group.samples),
                format_value(group.giou),
                *(format_value(group.parts[fault]) for fault in faults),
            )
            for group in groups
        ]
        title = f"## {safe_markdown(slice_label(slicing))}"
        lines += ["", title, "", *markdown_table(head, rows)]
    return _join(lines)


def difference_to_markdown(difference: ExplanationDifference) -> str:
    """The waterfalls of two runs and their difference as a table."""
    lines = [
        "# Why two runs lose points",
        "",
        f"A: {safe_markdown(difference.a.run)}. {describe_explanation(difference.a)}",
        "",
        f"B: {safe_markdown(difference.b.run)}. {describe_explanation(difference.b)}",
        "",
        METHOD,
        "",
        *markdown_table(DIFFERENCE_COLUMNS, difference_rows(difference)),
    ]
    return _join(lines)


def _join(lines: Sequence[str]) -> str:
    return "\n".join([*lines, ""])

"""A ladder as Markdown, CSV and JSON, and its sentences: spread, left-out questions and rank swaps."""

import csv
import io
from collections.abc import Sequence

import msgspec

from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.report.formatting import (
    format_difference,
    format_interval,
    format_metric,
    format_value,
)
from maskwise.report.metric_labels import metric_label
from maskwise.runs.ladder import (
    Ladder,
    LadderRule,
    LadderRun,
    LadderValues,
    RankSwap,
    RuleDifference,
)
from maskwise.runs.schema import MetricValue
from maskwise.runs.tables import MAIN_METRICS
from maskwise.terminal import safe_cell, safe_markdown

CSV_COLUMNS = (
    "run",
    "rule",
    "protocol",
    "options",
    "metric",
    "value",
    "low",
    "high",
    "method",
    "counted",
    "left_out",
    "left_out_because",
    "comparable_with",
)


def ladder_to_markdown(ladder: Ladder) -> str:
    """One table per run, then spreads, rank swaps, rules that do not apply, and the sentences to quote."""
    dataset = ladder.dataset
    lines = [
        f"# {safe_markdown(dataset.name)} under {len(ladder.rules)} rules",
        "",
        f"{describe_ladder_questions(ladder)} Values are percent with {100 * ladder.level:g} % intervals over images. "
        f"maskwise {ladder.maskwise}.",
    ]
    for run in ladder.runs:
        lines += [
            "",
            f"## {safe_markdown(run.name)}",
            "",
            *ladder_table(ladder, run),
            "",
        ]
        lines += describe_spread(run)
    swaps = [describe_swap(swap) for swap in ladder.swaps]
    if len(ladder.runs) > 1:
        lines += ["", "## Order of the runs", ""]
        lines += [f"- {safe_markdown(text)}" for text in swaps] or [NO_SWAP]
    if ladder.not_applicable:
        lines += ["", "## Rules that do not apply", ""]
        lines += [
            f"- {name}: {safe_markdown(reason)}"
            for name, reason in ladder.not_applicable.items()
        ]
    lines += ["", "## To quote", ""]
    lines += [f"- {rule.name}: {safe_markdown(rule.sentence)}" for rule in ladder.rules]
    return "\n".join([*lines, ""])


NO_SWAP = "No two runs change their order under any rule."


def ladder_to_json(ladder: Ladder) -> str:
    """The content of ladder.json, indented."""
    encoded = msgspec.json.encode(ladder)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def ladder_to_csv(ladder: Ladder) -> str:
    """One row per run, rule and metric; values are fractions."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for run in ladder.runs:
        for rule in ladder.rules:
            values = run.values[rule.name]
            options = " ".join(f"{key}={value}" for key, value in rule.options.items())
            for name, metric in values.metrics.items():
                writer.writerow(
                    (
                        safe_cell(run.name),
                        rule.name,
                        rule.protocol,
                        options,
                        name,
                        metric.value,
                        metric.low,
                        metric.high,
                        metric.method,
                        counted_questions(values),
                        values.counts.excluded,
                        describe_left_out(values),
                        "; ".join(rule.comparable_with),
                    )
                )
    return text.getvalue()


def describe_ladder_questions(ladder: Ladder) -> str:
    """How many questions there are, and how many of them rules treat differently."""
    dataset = ladder.dataset
    return (
        f"{dataset.samples:,} questions about {dataset.images:,} images: {dataset.ignored:,} with ignored pixels, "
        f"{dataset.empty_truth:,} without a target pixel, {dataset.several_targets:,} with several targets."
    )


def describe_spread(run: LadderRun) -> list[str]:
    """One sentence per metric: the lowest and the highest value under the rules of published code."""
    sentences = []
    for name, spread in run.spread.items():
        width = 100 * (spread.high - spread.low)
        sentences.append(
            f"{metric_label(name).label} of the same predictions: {format_value(spread.low)} ({spread.low_rule}) to "
            f"{format_value(spread.high)} ({spread.high_rule}), {width:.1f} points apart."
        )
    return sentences


def describe_swap(swap: RankSwap) -> str:
    """Which of two runs is better under which rules, and the two extreme differences with their intervals."""
    label = metric_label(swap.metric).label
    by_difference = sorted(
        swap.differences.items(), key=lambda item: item[1].difference
    )
    lowest = _describe_difference(*by_difference[0])
    highest = _describe_difference(*by_difference[-1])
    better = {swap.a: swap.a_better, swap.b: swap.b_better}
    fewer = min(better, key=lambda name: len(better[name]))
    more = swap.b if fewer == swap.a else swap.a
    return (
        f"{label}: {fewer} is better under {', '.join(better[fewer])}; {more} under {len(better[more])} other rules. "
        f"{swap.b} minus {swap.a}: from {lowest} to {highest}."
    )


def _describe_difference(rule: str, item: RuleDifference) -> str:
    text = format_difference(item.difference)
    if item.low is None or item.high is None:
        return f"{text} ({rule})"
    ends = f"{format_difference(item.low)} to {format_difference(item.high)}"
    return f"{text} ({rule}, interval {ends})"


def counted_questions(values: LadderValues) -> int:
    """Questions that the rule counts, also those it counts as zero."""
    return values.counts.samples - values.counts.excluded


def describe_left_out(values: LadderValues) -> str:
    """Why the rule leaves questions out, with their numbers; empty if it counts all."""
    if not values.counts.excluded:
        return ""
    reasons = [f"{count:,} {reason}" for reason, count in values.counts.reasons.items()]
    return "; ".join(reasons)


def describe_others(values: LadderValues) -> str:
    """The rule's other headline metrics."""
    parts = [
        f"{metric_label(name).label} {_with_interval(metric)}"
        for name, metric in values.metrics.items()
        if name not in MAIN_METRICS and metric.value is not None and not metric.gated
    ]
    return ", ".join(parts)


def short_metric(metric: MetricValue) -> str:
    """The value without interval; `not defined` for a metric that the rule does not have."""
    return "not defined" if metric.method == NOT_DEFINED else format_metric(metric)


def ladder_table(ladder: Ladder, run: LadderRun) -> list[str]:
    """One run under every rule, as a Markdown table."""
    head = ("rule", "gIoU", "cIoU", "other", "counted", "left out", "comparable with")
    rows = [_run_row(rule, run.values[rule.name]) for rule in ladder.rules]
    return markdown_table(head, rows)


def _run_row(rule: LadderRule, values: LadderValues) -> tuple[str, ...]:
    left_out = describe_left_out(values)
    return (
        rule.name,
        _with_interval(values.metrics["giou"]),
        _with_interval(values.metrics["ciou"]),
        describe_others(values),
        str(counted_questions(values)),
        f"{values.counts.excluded}: {left_out}" if left_out else "0",
        "; ".join(rule.comparable_with) or "none",
    )


def _with_interval(metric: MetricValue) -> str:
    interval = format_interval(metric)
    value = short_metric(metric)
    return f"{value} ({interval})" if interval else value


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; cells are escaped."""
    lines = ["| " + " | ".join(map(safe_markdown, row)) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]

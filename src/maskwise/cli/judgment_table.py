"""What `maskwise review results` prints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from maskwise.console import make_console

if TYPE_CHECKING:
    from maskwise.review.judgment_results import JudgmentResults, RunResult
    from maskwise.review.metric_agreement import MetricAgreement
    from maskwise.runs.schema import MetricValue

SHOWN_METRICS = 10
"""Metrics that are listed without --all."""


def print_judgment_results(results: "JudgmentResults", *, show_all: bool) -> None:
    """Print tables of runs, pairs and metrics, and lines about agreement, sides and time."""
    console = make_console(highlight=False)
    console.print(
        f"{results.judgments:,} judgments of {results.questions:,} questions by {results.reviewers} people, "
        f"{results.hours:.1f} hours, {_number(results.seconds_median)} seconds each (median)",
        soft_wrap=True,
    )
    if not results.judgments:
        return
    if results.mode == "rate":
        console.print(_ratings_table(results.runs))
    else:
        console.print(_runs_table(results.runs))
        console.print(_pairs_table(results))
    for line in _remarks(results):
        console.print(line, soft_wrap=True)
    listed = results.metrics if show_all else results.metrics[:SHOWN_METRICS]
    if listed:
        console.print("\nmetrics that agree with people, best first", style="bold")
        console.print(_metrics_table(listed))
    if len(results.metrics) > len(listed):
        more = len(results.metrics) - len(listed)
        console.print(f"and {more} more (--all, --json)")


def _runs_table(runs: Sequence["RunResult"]) -> Table:
    table = _table(
        "run", "strength", "win rate %", "wins", "losses", "ties", "both bad"
    )
    for run in runs:
        table.add_row(
            escape(run.name),
            _interval(run.strength),
            _interval(run.win_rate, percent=True),
            *(f"{count:,}" for count in (run.wins, run.losses, run.ties, run.bad)),
        )
    return table


def _pairs_table(results: "JudgmentResults") -> Table:
    table = _table("pair", "preferred %", "wins", "losses", "ties", "both bad")
    for pair in results.pairs:
        counts = (pair.wins, pair.losses, pair.ties, pair.bad)
        table.add_row(
            f"{escape(pair.a)} over {escape(pair.b)}",
            _interval(pair.rate, percent=True),
            *(f"{count:,}" for count in counts),
        )
    return table


def _ratings_table(runs: Sequence["RunResult"]) -> Table:
    codes = list(dict.fromkeys(code for run in runs for code in run.ratings))
    table = _table("run", *codes)
    for run in runs:
        table.add_row(
            escape(run.name), *(_interval(run.ratings.get(code)) for code in codes)
        )
    return table


def _metrics_table(metrics: Sequence["MetricAgreement"]) -> Table:
    table = _table("metric", "agrees %", "correlation", "judgments")
    for line in metrics:
        table.add_row(
            f"{line.protocol} {line.metric}",
            _interval(line.agreement, percent=True),
            _number(line.correlation),
            f"{line.judgments:,}",
        )
    return table


def _remarks(results: "JudgmentResults") -> list[str]:
    """Agreement of people, sides, reasons, and what was not asked."""
    lines = []
    agreement = results.agreement
    if agreement.items and results.mode == "compare":
        lines.append(
            f"agreement on {agreement.items} items judged twice: {agreement.equal} equal, "
            f"Krippendorff's alpha {_number(agreement.alpha)}"
        )
        lines += [
            f"  {escape(pair.a)} and {escape(pair.b)}: {pair.equal} of {pair.items} equal, "
            f"Cohen's kappa {_number(pair.kappa)}"
            for pair in agreement.pairs
        ]
    alphas = [f"{code} {_number(value)}" for code, value in results.alpha.items()]
    if agreement.items and alphas:
        lines.append(f"Krippendorff's alpha of ratings: {', '.join(alphas)}")
    if results.left is not None:
        side = _interval(results.left, percent=True)
        lines.append(
            f"the left side is preferred in {side} % of the decided comparisons"
        )
    if results.criteria:
        reasons = [f"{code} {count:,}" for code, count in results.criteria.items()]
        lines.append(f"what decided: {', '.join(reasons)}")
    identical = [
        f"{escape(run.name)} {run.identical:,}" for run in results.runs if run.identical
    ]
    if identical:
        lines.append(
            f"not asked, because predictions are equal: {', '.join(identical)}"
        )
    return lines


def _table(first: str, *others: str) -> Table:
    table = Table(first, box=None, padding=(0, 2, 0, 0))
    for title in others:
        table.add_column(title, justify="right")
    return table


def _interval(value: "MetricValue | None", *, percent: bool = False) -> str:
    """A value with its interval; shares in percent."""
    if value is None or value.value is None:
        return "-"
    form = "{:.1f}" if percent else "{:.2f}"
    factor = 100 if percent else 1
    text = form.format(factor * value.value)
    if value.low is None or value.high is None:
        return text
    ends = (form.format(factor * end) for end in (value.low, value.high))
    return f"{text} \\[{', '.join(ends)}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

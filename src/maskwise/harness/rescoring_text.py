"""Runs before and after a correction of their dataset, in words and as the cells of a table."""

from maskwise.harness.rescore import Rescoring
from maskwise.report.formatting import (
    format_difference,
    format_interval,
    format_p,
    format_value,
)

COLUMNS = ("run", "before", "after", "interval", "by labels", "interval", "p", "rank")


def describe_versions(result: Rescoring) -> str:
    """What was corrected, in one sentence."""
    changed = "" if result.changed is None else f", {result.changed:,} changed"
    return (
        f"{result.dataset}, gIoU under {result.protocol}: of {result.questions:,} questions {result.removed:,} were "
        f"removed{changed}, and {result.added:,} added. By labels: the change on the questions of both versions; the "
        "rest comes from removed and added ones."
    )


def rescoring_rows(result: Rescoring) -> list[tuple[str, ...]]:
    """The cells of COLUMNS, one row per run."""
    rows: list[tuple[str, ...]] = []
    for run in result.runs:
        change = run.change
        interval = ""
        if change.low is not None and change.high is not None:
            low = format_difference(change.low)
            interval = f"{low} to {format_difference(change.high)}"
        rank = str(run.rank_after)
        if run.rank_before != run.rank_after:
            rank = f"{run.rank_before} → {run.rank_after}"
        rows.append(
            (
                run.name,
                format_value(run.before.value),
                format_value(run.after.value),
                format_interval(run.after),
                format_difference(change.difference),
                interval,
                format_p(change.p),
                rank,
            )
        )
    return rows

"""What `maskwise review status` prints."""

from typing import Any

from rich.table import Table

from maskwise.console import make_console

COLUMNS = {
    "reviewer": "name",
    "role": "role",
    "decided": "decisions",
    "accept": "accept",
    "fix": "fix",
    "reject": "reject",
    "skip": "skip",
}
"""Titles of columns, and the fields of a reviewer that they show."""


def print_review_stats(stats: dict[str, Any]) -> None:
    """Print progress, reviewers, agreement and reject reasons. stats: the fields of ReviewStats."""
    console = make_console()
    counts = [f"{count} {name}" for name, count in stats["progress"].items()]
    console.print(", ".join(counts), soft_wrap=True)
    console.print(_reviewers_table(stats["reviewers"]))
    agreement = stats["agreement"]
    if agreement["items"]:
        alpha = _number(agreement["alpha"])
        mask_iou = _number(agreement["mask_iou"])
        console.print(
            f"agreement on {agreement['items']} double reviews: {agreement['equal']} equal, "
            f"Krippendorff's alpha {alpha}, mask IoU {mask_iou}"
        )
        for pair in agreement["pairs"]:
            kappa = _number(pair["kappa"])
            console.print(
                f"  {pair['a']} and {pair['b']}: {pair['equal']} of {pair['items']} equal, Cohen's kappa {kappa}"
            )
    for reason in stats["reasons"]:
        console.print(f"rejected as {reason['code']}: {reason['count']}")


def _reviewers_table(reviewers: list[dict[str, Any]]) -> Table:
    table = Table(*COLUMNS, "seconds", "controls", box=None, padding=(0, 2, 0, 0))
    for reviewer in reviewers:
        cells = [str(reviewer[field]) for field in COLUMNS.values()]
        seconds = _number(reviewer["seconds_median"])
        accuracy = _number(reviewer["controls"]["accuracy"])
        table.add_row(*cells, seconds, accuracy)
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"

"""What `maskwise validate` and `maskwise stats` print."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from maskwise.console import make_console
from maskwise.report.dataset_validation import DatasetCheck

LISTED = 10
"""How many findings of a kind are printed; JSON has them all."""


def print_validation(check: DatasetCheck) -> None:
    """Print the findings by kind, then whether the dataset is valid."""
    console = make_console()
    for kind, findings in check.by_kind().items():
        level = findings[0].level
        color = "red" if level == "error" else "yellow"
        console.print(f"[{color}]{level}[/]: {escape(kind)} ({len(findings)})")
        for finding in findings[:LISTED]:
            line = f"  {escape(finding.where)}: {escape(finding.message)}"
            console.print(line, highlight=False, soft_wrap=True)
        if len(findings) > LISTED:
            console.print(f"  and {len(findings) - LISTED} more (--json lists all)")
    warnings = len(check.findings) - check.errors
    verdict = "[red]not valid[/]" if check.errors else "[green]valid[/]"
    name = escape(check.dataset)
    console.print(
        f"{name}: {verdict}, {check.errors} errors, {warnings} warnings", soft_wrap=True
    )


def print_stats(stats: dict[str, Any]) -> None:
    """Print counts by subject. stats: the fields of DatasetStats."""
    console = make_console()
    console.print(escape(stats["name"]), style="bold")
    sections = {
        "": stats["counts"],
        "targets per question": stats["targets_per_question"],
        "mask type asked for": stats["mask_types"],
        "occlusion of regions": stats["occlusion"],
        "size of regions": stats["region_sizes"],
        "size of images": stats["image_sizes"],
        f"names ({stats['category_count']})": stats["categories"],
    }
    for tag, values in stats["tags"].items():
        sections[f"tag {tag}"] = values
    sections["about"] = stats["about"]
    for title, values in sections.items():
        if values:
            _print_section(console, title, values)


def _print_section(console: Console, title: str, values: dict[str, Any]) -> None:
    if title:
        console.print(f"\n{escape(title)}", style="bold")
    only_counts = all(isinstance(value, int) for value in values.values())
    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(justify="right" if only_counts else "left")
    for name, value in values.items():
        text = f"{value:,}" if isinstance(value, int) else escape(str(value))
        table.add_row(f"  {escape(str(name))}", text)
    console.print(table)

"""`maskwise diff`: what changed between two versions of a dataset."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwise.cli.options import AsJson, argument

if TYPE_CHECKING:
    from maskwise.builder.release.diff import DatasetDiff, FieldChange


def diff(
    old: Annotated[str, argument("OLD", "A dataset folder or release.")],
    new: Annotated[str, argument("NEW", "The one to compare it with.")],
    *,
    listed: Annotated[
        int, typer.Option("--list", min=0, help="How many changes of a kind to list.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Say what changed between two versions of a dataset: images, samples, masks, splits, card.

    Exit code 0 if nothing differs, 1 if something does, 2 for an error.

    Example: maskwise diff my_data-1.0.0 my_data-1.1.0
    """
    from maskwise.builder.release.diff import diff_datasets
    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.datasets import load_dataset
    from maskwise.runs.environment import available_cores

    with make_console(stderr=True).status("comparing"):
        difference = diff_datasets(
            load_dataset(old),
            load_dataset(new),
            cards=_read_cards(old, new),
            threads=available_cores(),
        )
    if as_json:
        print_json(difference)
    else:
        _print_difference(difference, listed)
    raise typer.Exit(0 if difference.same else 1)


def _read_cards(old: str, new: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The cards of two releases; None unless both are releases."""
    from maskwise.formats.release_folder import CARD, find_release
    from maskwise.yaml_files import read_yaml

    old_release = find_release(Path(old))
    new_release = find_release(Path(new))
    if old_release is None or new_release is None:
        return None
    old_folder, _ = old_release
    new_folder, _ = new_release
    old_card = read_yaml(old_folder / CARD, dict[str, Any])
    new_card = read_yaml(new_folder / CARD, dict[str, Any])
    return old_card, new_card


def _print_difference(difference: "DatasetDiff", listed: int) -> None:
    """Print counts in a table, then the first changes of each kind."""
    from rich.markup import escape
    from rich.table import Table

    from maskwise.console import make_console

    console = make_console(highlight=False)
    old = escape(difference.old)
    new = escape(difference.new)
    if difference.same:
        console.print(f"{old} and {new} are equal")
        return
    console.print(f"{old} -> {new}", style="bold", soft_wrap=True)
    table = Table("", box=None)
    for column in ("added", "removed", "changed"):
        table.add_column(column, justify="right")
    table.add_column("changed fields")
    kinds = {
        "images": difference.images,
        "regions": difference.regions,
        "samples": difference.samples,
    }
    for name, changes in kinds.items():
        fields = [f"{field} {count:,}" for field, count in changes.fields.items()]
        table.add_row(
            name,
            f"{len(changes.added):,}",
            f"{len(changes.removed):,}",
            f"{len(changes.changed):,}",
            ", ".join(fields),
        )
    console.print(table)
    for title, lines in _lists(difference).items():
        if not lines:
            continue
        console.print(f"[bold]{title}[/bold] ({len(lines):,})")
        for line in lines[:listed]:
            console.print(f"  {escape(line)}", soft_wrap=True)
        if len(lines) > listed:
            console.print(f"  and {len(lines) - listed:,} more (--list, --json)")


def _lists(difference: "DatasetDiff") -> dict[str, list[str]]:
    """What is listed, by title."""
    changed_samples = [
        f"{id}: {', '.join(fields)}"
        for id, fields in difference.samples.changed.items()
    ]
    changed_masks = []
    for change in difference.masks:
        if change.iou is None:
            extent = "only one of the two exists, or the size differs"
        else:
            extent = f"IoU {change.iou:.3f}"
        changed_masks.append(f"{change.image} {change.region} {change.kind}: {extent}")
    moved_images = [
        f"{move.image}: {move.old} -> {move.new}" for move in difference.moves
    ]
    return {
        "samples added": difference.samples.added,
        "samples removed": difference.samples.removed,
        "samples changed": changed_samples,
        "words changed": [
            f"{change.sample} {change.field}: {change.marked}"
            for change in difference.words
        ],
        "masks changed, most different first": changed_masks,
        "images moved to another split": moved_images,
        "card": [_field_line(change) for change in difference.card],
        "measured by maskwise": [_field_line(change) for change in difference.measured],
    }


def _field_line(change: "FieldChange") -> str:
    return f"{change.field}: {change.old!r} -> {change.new!r}"

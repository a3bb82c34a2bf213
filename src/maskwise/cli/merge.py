"""`maskwise merge`: several datasets as one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.cli.options import AsJson, Overwrite, argument
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.builder.merge import MergeSummary


def merge(
    datasets: Annotated[
        list[str],
        argument("DATASET...", "Two or more dataset folders, releases or names."),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the new dataset.")],
    embed: Annotated[
        bool,
        typer.Option("--embed", help="Store the image files in the new folder."),
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Merge datasets: ids, splits and licenses are kept, and every sample says its source.

    An id that two datasets use for the same image is written once; for different images the later one is renamed.
    OUT/collisions.jsonl lists what was joined, renamed or dropped.

    Example: maskwise merge cocoa_val d2sa_val muva_val --out sources
    """
    from maskwise.builder.merge import merge_datasets
    from maskwise.cli.output import print_json
    from maskwise.datasets import load_dataset
    from maskwise.progress_bars import make_progress

    data = [load_dataset(name) for name in datasets]
    with make_progress(quiet=as_json) as progress:
        total = sum(len(dataset.images) for dataset in data)
        task = progress.add_task("images", total=total)
        summary = merge_datasets(
            data,
            out,
            embed=embed,
            overwrite=overwrite,
            done=lambda images: progress.advance(task, images),
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: "MergeSummary") -> None:
    from rich.markup import escape
    from rich.table import Table

    from maskwise.builder.merge import COLLISIONS
    from maskwise.console import make_console

    table = Table("source", "split", box=None)
    columns = ("images", "samples", "joined", "renamed", "dropped")
    for column in columns:
        table.add_column(column, justify="right")
    for source in summary.sources:
        counts = [f"{getattr(source, column):,}" for column in columns]
        table.add_row(escape(source.name), escape(source.split or "-"), *counts)
    make_console(highlight=False).print(table)
    echo(f"{summary.out}: {summary.images:,} images, {summary.samples:,} samples")
    collisions = [
        source.joined + source.renamed + source.dropped for source in summary.sources
    ]
    if any(collisions):
        echo(f"{sum(collisions):,} ids were taken: {Path(summary.out) / COLLISIONS}")

"""`maskwise table`: runs side by side, for a paper."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from maskwise.cli.options import SEVERAL, argument
from maskwise.cli.output import write_text
from maskwise.errors import StoreError

Format = Literal["latex", "csv", "markdown", "html"]
FORMAT_OF_SUFFIX: dict[str, Format] = {
    ".tex": "latex",
    ".csv": "csv",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
}


def table(
    runs: Annotated[
        list[Path],
        argument("RUN", "Run folders of `maskwise eval` or `maskwise score --out`."),
    ],
    *,
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", help="How to write it.", show_default="by --out, else markdown"
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help=f"A column. {SEVERAL}",
            show_default="giou, ciou",
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="The scoring rule.", show_default="strict")
    ] = None,
    spread: Annotated[
        Literal["interval", "plusminus", "none"],
        typer.Option(help="What stands beside a value."),
    ] = "interval",
    published: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Add the published results on a split, each with its rule.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file to write: .tex, .csv, .md or .html."),
    ] = None,
) -> None:
    """Write runs side by side as a table for a paper: LaTeX, CSV, Markdown or a page.

    A value is bold only where it is significantly better than that of every other run.

    Example: maskwise table runs/tiny runs/lisa --format latex --metric giou --metric ciou
    """
    from maskwise.report.result_table import (
        DEFAULT_METRICS,
        format_table,
        make_result_table,
    )
    from maskwise.runs import load_run

    made = make_result_table(
        [load_run(run) for run in runs],
        metrics=metric or DEFAULT_METRICS,
        protocol=protocol,
        spread=spread,
        published=published,
    )
    write_text(format_table(made, format or _format_of(out)), out)


def _format_of(out: Path | None) -> Format:
    """The format that a file's name ends with; Markdown where there is no file."""
    if out is None:
        return "markdown"
    suffix = out.suffix.lower()
    if suffix not in FORMAT_OF_SUFFIX:
        raise StoreError(
            f"{out}: cannot tell what to write; expected .tex, .csv, .md or .html, or say --format"
        )
    return FORMAT_OF_SUFFIX[suffix]

"""`maskwise report` and `compare`: read a run, or two side by side."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from maskwise.cli.options import AsJson, ImagesFolder, RunFolder, argument
from maskwise.console import make_console
from maskwise.errors import StoreError
from maskwise.report.comparison import (
    MetricChange,
    RunComparison,
    RunPair,
)
from maskwise.report.comparison import compare as compare_runs
from maskwise.report.comparison_page import comparison_to_html, describe_difference
from maskwise.report.formatting import format_difference, format_p, format_value
from maskwise.report.metric_labels import metric_label, slice_label
from maskwise.report.report_page import run_to_html
from maskwise.report.report_text import run_to_markdown, run_to_summary
from maskwise.report.run_data import RunPaths
from maskwise.runs import load_run
from maskwise.terminal import echo

Format = Literal["html", "md", "json"]
RunA = Annotated[
    Path, argument("A", "A run folder of `maskwise eval` or `maskwise score --out`.")
]
RunB = Annotated[Path, argument("B", "Another run folder, on the same dataset.")]
ProtocolName = Annotated[
    str | None, typer.Option(help="The protocol to show first.", show_default="strict")
]
MAX_SAMPLES = 60


def report(
    run: RunFolder,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file to write: .html, .md or .json."),
    ] = None,
    format: Annotated[
        Format | None, typer.Option(help="If not as the file's name says.")
    ] = None,
    protocol: ProtocolName = None,
    samples: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_SAMPLES, help="Samples of each kind in the gallery."
        ),
    ] = 12,
    dataset: Annotated[
        Path | None, typer.Option(help="The dataset, if it was moved.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="The predictions, if they were moved.")
    ] = None,
    images: ImagesFolder = None,
) -> None:
    """Write a run as one offline page, or as Markdown or JSON.

    The page shows metrics with intervals, protocols side by side, slices, calibration and a gallery; it works offline.

    Example: maskwise report runs/m2sa --out report.html
    """
    opened = load_run(run)
    form = format or _form_of(out)
    if form == "html" and out is None:
        raise StoreError("a page needs a file to go to: --out report.html")
    if form == "html":
        paths = RunPaths(dataset, predictions, images)
        text = run_to_html(opened, protocol=protocol, samples=samples, paths=paths)
    elif form == "md":
        text = run_to_markdown(opened, protocol=protocol)
    else:
        text = (
            msgspec.json.format(
                msgspec.json.encode(run_to_summary(opened)), indent=2
            ).decode()
            + "\n"
        )
    _write(text, out)


def compare(
    a: RunA,
    b: RunB,
    *,
    protocol: ProtocolName = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write a page: compare.html.")
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_SAMPLES, help="Samples on each side in the page's gallery."
        ),
    ] = 10,
    images: ImagesFolder = None,
) -> None:
    """Compare two runs on one dataset: differences with intervals and p-values, overall and by slice.

    Example: maskwise compare runs/lisa runs/m2sa --out compare.html
    """
    run_a = load_run(a)
    run_b = load_run(b)
    found = compare_runs(run_a, run_b, protocol=protocol)
    if out is not None:
        paths = RunPaths(images=images)
        pair = RunPair(run_a, run_b, found.protocol)
        _write(
            comparison_to_html(pair, found, samples=samples, paths=(paths, paths)), out
        )
    if as_json:
        echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        _print_comparison(found)


def _form_of(out: Path | None) -> Format:
    """The form a file's name speaks of; Markdown where there is no file."""
    forms: dict[str, Format] = {
        ".html": "html",
        ".htm": "html",
        ".md": "md",
        ".json": "json",
    }
    if out is None:
        return "md"
    if out.suffix.lower() not in forms:
        raise StoreError(
            f"{out}: cannot tell what to write; expected .html, .md or .json, or say --format"
        )
    return forms[out.suffix.lower()]


def _write(text: str, out: Path | None) -> None:
    if out is None:
        echo(text, nl=False)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error}") from None
    echo(f"wrote {out} ({len(text.encode()) / 1e6:.1f} MB)", err=True)


def _print_comparison(found: RunComparison) -> None:
    console = make_console()
    console.print(f"[bold]A[/bold] {escape(found.a)}\n[bold]B[/bold] {escape(found.b)}")
    console.print(
        f"{escape(found.dataset)}, {found.samples} questions about {found.images} images, {found.protocol}\n"
    )
    console.print(describe_difference(found.metrics["giou"], found.level) + "\n")
    overall = _new_table("metric", found)
    for name, change in found.metrics.items():
        if change.difference is not None:
            _add_row(overall, metric_label(name).label, change)
    console.print(overall)
    table = _new_table("gIoU by slice (questions)", found)
    for slicing, groups in found.slices.items():
        table.add_section()
        table.add_row(Text(slice_label(slicing), style="dim"))
        for group in groups:
            if "giou" in group.metrics:
                _add_row(
                    table, f"{group.name} ({group.samples})", group.metrics["giou"]
                )
    if found.slices:
        console.print()
        console.print(table)
    console.print(
        f"p of gIoU over all questions is of one test. All other p are adjusted for {found.family} differences "
        "(Benjamini-Hochberg). Bold: p < 0.05.",
        style="dim",
    )


def _new_table(title: str, found: RunComparison) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(Text(title), min_width=24)
    for name in ("A", "B", "B - A", f"{100 * found.level:g} % interval", "p"):
        table.add_column(name, justify="right")
    return table


def _add_row(table: Table, name: str, change: MetricChange) -> None:
    ends = (format_difference(end, change.unit) for end in (change.low, change.high))
    cells = [format_value(change.a, change.unit), format_value(change.b, change.unit)]
    cells += [format_difference(change.difference, change.unit)]
    cells += [
        " to ".join(ends) if change.low is not None else change.method,
        format_p(change.shown_p),
    ]
    table.add_row(Text(name), *cells, style="bold" if change.significant else None)

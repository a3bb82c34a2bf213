"""`maskwise report` and `compare`: read a run, or two side by side."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from maskwise.cli.hints import is_dataset, refuse_swapped
from maskwise.cli.options import AsJson, ImagesFolder, RunFolder, argument
from maskwise.cli.output import write_text
from maskwise.errors import StoreError

Format = Literal["html", "md", "json"]
RunA = Annotated[
    Path, argument("A", "A run folder of `maskwise eval` or `maskwise score --out`.")
]
RunB = Annotated[Path, argument("B", "Another run folder, on the same dataset.")]
ProtocolName = Annotated[
    str | None, typer.Option(help="The protocol to show first.", show_default="strict")
]

MAX_SAMPLES = 60
"""Of each kind in a gallery: each adds about 30 kB of images to the page."""

FORMAT_OF_SUFFIX: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
}


def report(
    run: RunFolder,
    dataset: Annotated[
        Path | None, argument("[DATASET]", "The dataset, if it was moved.")
    ] = None,
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
    predictions: Annotated[
        Path | None, typer.Option(help="The predictions, if they were moved.")
    ] = None,
    images: ImagesFolder = None,
) -> None:
    """Write a run as one offline page, or as Markdown or JSON.

    The page shows metrics with intervals, protocols side by side, slices, calibration and a gallery; it works offline.

    Example: maskwise report runs/m2sa --out report.html
    """
    import msgspec

    from maskwise.report.report_page import run_to_html
    from maskwise.report.report_text import run_to_markdown, run_to_summary
    from maskwise.report.run_data import RunPaths
    from maskwise.runs import load_run

    refuse_swapped(
        "report",
        "RUN [DATASET]",
        run,
        dataset,
        when=dataset is not None and is_dataset(run) and not is_dataset(dataset),
    )
    opened_run = load_run(run)
    output_format = format or _format_of(out)
    if output_format == "html" and out is None:
        raise StoreError("a page needs a file to go to: --out report.html")
    if output_format == "html":
        paths = RunPaths(dataset, predictions, images)
        text = run_to_html(opened_run, protocol=protocol, samples=samples, paths=paths)
    elif output_format == "md":
        text = run_to_markdown(opened_run, protocol=protocol)
    else:
        encoded = msgspec.json.encode(run_to_summary(opened_run))
        text = msgspec.json.format(encoded, indent=2).decode() + "\n"
    write_text(text, out)


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
    from maskwise.cli.comparison_table import print_comparison
    from maskwise.cli.output import print_json
    from maskwise.report.comparison import RunPair
    from maskwise.report.comparison import compare as compare_runs
    from maskwise.report.comparison_page import comparison_to_html
    from maskwise.report.run_data import RunPaths
    from maskwise.runs import load_run

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise StoreError(f"{out}: a comparison is written as a page; expected .html")
    run_a = load_run(a)
    run_b = load_run(b)
    comparison = compare_runs(run_a, run_b, protocol=protocol)
    if out is not None:
        paths = RunPaths(images=images)
        pair = RunPair(run_a, run_b, comparison.protocol)
        page = comparison_to_html(
            pair, comparison, samples=samples, paths=(paths, paths)
        )
        write_text(page, out)
    if as_json:
        print_json(comparison)
    else:
        print_comparison(comparison)


def _format_of(out: Path | None) -> Format:
    """The format that a file's name ends with; Markdown where there is no file."""
    if out is None:
        return "md"
    suffix = out.suffix.lower()
    if suffix not in FORMAT_OF_SUFFIX:
        raise StoreError(
            f"{out}: cannot tell what to write; expected .html, .md or .json, or say --format"
        )
    return FORMAT_OF_SUFFIX[suffix]

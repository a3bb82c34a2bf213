"""`maskwise read`: read annotations into a dataset folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.cli.hints import refuse_swapped
from maskwise.cli.options import SEVERAL, AsJson, Overwrite, ReaderName, argument

if TYPE_CHECKING:
    from maskwise.formats import ReadSummary

Source = Annotated[
    Path | None,
    argument(
        "PATH",
        "The folder it was downloaded to, or one annotation file; none for hf:OWNER/NAME.",
    ),
]
SourceImages = Annotated[
    Path | None,
    typer.Option("--images", help="Folder of the images, if not below PATH."),
]
NoImages = Annotated[
    bool,
    typer.Option(
        "--no-images", help="Read annotations only; image sizes are taken from them."
    ),
]
Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping", help="A field mapping (YAML), for formats that need one."
    ),
]
ReaderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help=f"An option of this reader; `maskwise card NAME` lists them. {SEVERAL}",
    ),
]


def read(
    name: ReaderName,
    path: Source = None,
    *,
    out: Annotated[Path, typer.Option("--out", help="The dataset folder to write.")],
    split: Annotated[
        str | None, typer.Option(help="Which split, where there are several.")
    ] = None,
    images: SourceImages = None,
    no_images: NoImages = False,
    mapping: Mapping = None,
    option: ReaderOptions = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first invalid record.")
    ] = False,
    embed: Annotated[
        bool, typer.Option("--embed", help="Store the images in the dataset.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Read one split of a benchmark or format into a dataset folder.

    Prints what was kept, what was skipped and why (diagnostics.jsonl in the folder lists every case), and the
    published counts.

    Example: maskwise read mmr /data/MMR --split val --images /data/coco --out mmr_val

    Example: maskwise read hf:Ricky06662/ReasonSeg_val --split test --out reasonseg_copy
    """
    from maskwise.cli.output import print_json
    from maskwise.datasets import read_dataset
    from maskwise.downloads.hub import PREFIX, read_hub_dataset
    from maskwise.progress_bars import make_progress
    from maskwise.registry import BENCHMARKS, FORMATS

    readers = [*BENCHMARKS.names(), *FORMATS.names()]
    refuse_swapped(
        "read",
        "NAME PATH",
        name,
        path,
        when=str(path).lower() in readers and name.lower() not in readers,
    )
    is_hub = name.startswith(PREFIX)
    if is_hub != (path is None):
        raise typer.BadParameter(
            "hf:OWNER/NAME is read without a PATH; everything else needs one",
            param_hint="PATH",
        )
    with make_progress(quiet=as_json) as bar:
        task = bar.add_task(f"reading {name}", total=None)
        if path is None:
            summary = read_hub_dataset(
                name,
                out,
                split=split,
                strict=strict,
                overwrite=overwrite,
                progress=lambda done, total: bar.update(
                    task, completed=done, total=total
                ),
            )
        else:
            summary = read_dataset(
                name,
                path,
                out,
                split=split,
                images=images,
                with_images=not no_images,
                mapping=mapping,
                options=_parse_options(option or []),
                strict=strict,
                embed=embed,
                overwrite=overwrite,
                progress=lambda done, total: bar.update(
                    task, completed=done, total=total
                ),
            )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _parse_options(options: list[str]) -> dict[str, str]:
    """NAME=VALUE pairs as a dict."""
    parsed = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise typer.BadParameter(
                f"{option!r} is not NAME=VALUE", param_hint="--option"
            )
        parsed[name] = value
    return parsed


def _print_summary(summary: "ReadSummary") -> None:
    """Print what was kept, what was skipped and why, and the published counts beside ours."""
    from rich.markup import escape
    from rich.table import Table

    from maskwise.console import make_console

    console = make_console(highlight=False)
    counts = ", ".join(f"{count:,} {what}" for what, count in summary.kept.items())
    title = f"{summary.name} {escape(summary.split)}"
    console.print(f"[bold]{title}[/bold]: {counts} in {escape(summary.out)}")
    if summary.no_target:
        questions = summary.kept["questions"]
        console.print(
            f"{summary.no_target:,} of {questions:,} questions have no target"
        )
    reasons_by_title = {
        "skipped": summary.skipped,
        "kept with a warning": summary.warnings,
    }
    for heading, reasons in reasons_by_title.items():
        if not reasons:
            continue
        table = Table(
            title=f"{heading} (see diagnostics.jsonl)", title_justify="left", box=None
        )
        table.add_column("records", justify="right")
        table.add_column("reason")
        for reason, count in reasons.items():
            table.add_row(f"{count:,}", escape(reason))
        console.print(table)
    for compared in summary.compared:
        published = compared.published
        if compared.found is None:
            ours = "all splits together"
        else:
            ours = f"found {compared.found:,}"
        console.print(
            f"published: {published.count:,} {published.what} ({ours}; {escape(published.source)})"
        )
    if not summary.skipped:
        console.print("no record was skipped")

"""`maskwise read` and `card`: read annotations into a dataset folder, and say what is known of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from maskwise.benchmarks import RISKS, Benchmark, find_reader
from maskwise.cli.options import SEVERAL, AsJson, Overwrite, argument
from maskwise.console import make_console
from maskwise.datasets import read_dataset
from maskwise.formats import AnnotationFormat, ReadSummary
from maskwise.protocols import find_protocol
from maskwise.terminal import echo

Name = Annotated[
    str, argument("NAME", "A benchmark or format; `maskwise ls` lists them.")
]
Source = Annotated[
    Path, argument("PATH", "The folder it was downloaded to, or one annotation file.")
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
    name: Name,
    path: Source,
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
    """
    with _progress(quiet=as_json) as bar:
        task = bar.add_task(name, total=None)
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
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
    else:
        _print_summary(summary)


def card(name: Name, as_json: AsJson = False) -> None:
    """Print the card of a benchmark, or what is known of a format: contents, layout on disk, sizes, license.

    Example: maskwise card mmr
    """
    reader = find_reader(name)
    if as_json:
        echo(
            msgspec.json.format(
                msgspec.json.encode(_describe(reader)), indent=2
            ).decode()
        )
        return
    console = make_console(highlight=False)
    console.print(f"[bold]{escape(reader.title)}[/bold]")
    for section, fields in _sections(reader):
        console.print(f"\n[bold]{escape(section)}[/bold]")
        table = Table.grid(padding=(0, 3))
        for field, value in fields:
            table.add_row(escape(field), escape(value))
        console.print(table)


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


def _progress(*, quiet: bool) -> Progress:
    return Progress(
        TextColumn("found {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=make_console(stderr=True),
        disable=quiet,
        transient=True,
    )


def _print_summary(summary: ReadSummary) -> None:
    console = make_console(highlight=False)
    counts = ", ".join(f"{count:,} {what}" for what, count in summary.kept.items())
    console.print(
        f"[bold]{summary.name} {escape(summary.split)}[/bold]: {counts} in {escape(summary.out)}"
    )
    if summary.no_target:
        console.print(
            f"{summary.no_target:,} of {summary.kept['questions']:,} questions have no target"
        )
    for title, reasons in (
        ("skipped", summary.skipped),
        ("kept with a warning", summary.warnings),
    ):
        if reasons:
            table = Table(
                title=f"{title} (see diagnostics.jsonl)", title_justify="left", box=None
            )
            table.add_column("records", justify="right")
            table.add_column("reason")
            for reason, count in reasons.items():
                table.add_row(f"{count:,}", escape(reason))
            console.print(table)
    for compared in summary.compared:
        published = compared.published
        found = (
            f"found {compared.found:,}"
            if compared.found is not None
            else "all splits together"
        )
        console.print(
            f"published: {published.count:,} {published.what} ({found}; {escape(published.source)})"
        )
    if not summary.skipped:
        console.print("no record was skipped")


def _describe(reader: AnnotationFormat) -> dict[str, Any]:
    """What is known of a benchmark or format, for JSON."""
    return {
        "name": reader.name,
        "title": reader.title,
        "layout": reader.layout.text,
        "published": reader.published,
        "facts": reader.facts,
        "options": _describe_options(reader),
    } | (
        {"protocol": reader.protocol, "card": reader.card}
        if isinstance(reader, Benchmark)
        else {}
    )


def _describe_options(reader: AnnotationFormat) -> dict[str, str]:
    """Options of a reader: their values and the default."""
    described = {}
    for name, (kind, default) in reader.options.items():
        values = ", ".join(map(str, getattr(kind, "__args__", ()))) or kind.__name__
        described[name] = f"{values}; default {default}"
    return described


def _sections(reader: AnnotationFormat) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Titles and rows to print; risk ids become labels."""
    if isinstance(reader, Benchmark):
        content = msgspec.to_builtins(reader.card)
        corrections = content.pop("corrections")
        for section, fields in content.items():
            yield (
                _words(section),
                [(_words(field), _to_text(value)) for field, value in fields.items()],
            )
        yield (
            "corrections",
            [
                (
                    item["field"],
                    f"was: {item['was']}; now: {item['now']} ({item['source']})",
                )
                for item in corrections
            ],
        )
        yield (
            "official protocol",
            [(reader.protocol, find_protocol(reader.protocol).description)],
        )
    yield "layout on disk", [("", reader.layout.text)]
    sizes = [
        (f"{size.count:,} {size.what}", f"{size.split or 'all splits'}: {size.source}")
        for size in reader.published
    ]
    yield "published sizes", sizes or [("", "none known")]
    yield "facts", list(reader.facts.items())
    if reader.options:
        yield "options (--option NAME=VALUE)", list(_describe_options(reader).items())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _to_text(value: str | list[str]) -> str:
    return (
        value
        if isinstance(value, str)
        else ", ".join(RISKS.get(item, item) for item in value)
    )

"""`maskwise card`: what is known of a benchmark or format."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maskwise.cli.options import AsJson, ReaderName

if TYPE_CHECKING:
    from maskwise.benchmarks import Benchmark
    from maskwise.formats import AnnotationFormat

Rows = list[tuple[str, str]]


def card(name: ReaderName, as_json: AsJson = False) -> None:
    """Print the card of a benchmark, or what is known of a format: contents, layout on disk, sizes, license.

    Example: maskwise card mmr
    """
    from rich.markup import escape
    from rich.table import Table

    from maskwise.benchmarks import find_reader
    from maskwise.cli.output import print_json
    from maskwise.console import make_console

    reader = find_reader(name)
    if as_json:
        print_json(_describe(reader))
        return
    console = make_console(highlight=False)
    console.print(f"[bold]{escape(reader.title)}[/bold]")
    for section, rows in _sections(reader):
        console.print(f"\n[bold]{escape(section)}[/bold]")
        table = Table.grid(padding=(0, 3))
        for field, value in rows:
            table.add_row(escape(field), escape(value))
        console.print(table)


def _describe(reader: "AnnotationFormat") -> dict[str, Any]:
    """What is known of a benchmark or format, for JSON."""
    from maskwise.benchmarks import Benchmark

    description: dict[str, Any] = {
        "name": reader.name,
        "title": reader.title,
        "layout": reader.layout.text,
        "published": reader.published,
        "facts": reader.facts,
        "options": _describe_options(reader),
    }
    if isinstance(reader, Benchmark):
        description["protocol"] = reader.protocol
        description["card"] = reader.card
    return description


def _describe_options(reader: "AnnotationFormat") -> dict[str, str]:
    """Options of a reader: their values and the default."""
    descriptions = {}
    for name, (kind, default) in reader.options.items():
        choices = [str(choice) for choice in getattr(kind, "__args__", ())]
        values = ", ".join(choices) or kind.__name__
        descriptions[name] = f"{values}; default {default}"
    return descriptions


def _sections(reader: "AnnotationFormat") -> Iterator[tuple[str, Rows]]:
    """Titles and rows to print."""
    from maskwise.benchmarks import Benchmark

    if isinstance(reader, Benchmark):
        yield from _card_sections(reader)
    yield "layout on disk", [("", reader.layout.text)]
    sizes = []
    for size in reader.published:
        split = size.split or "all splits"
        sizes.append((f"{size.count:,} {size.what}", f"{split}: {size.source}"))
    yield "published sizes", sizes or [("", "none known")]
    yield "facts", list(reader.facts.items())
    if reader.options:
        yield "options (--option NAME=VALUE)", list(_describe_options(reader).items())


def _card_sections(benchmark: "Benchmark") -> Iterator[tuple[str, Rows]]:
    """The card of a benchmark, corrections of what was published, and the protocol."""
    import msgspec

    from maskwise.protocols import find_protocol
    from maskwise.protocols.published_rules import cite_rule

    content = msgspec.to_builtins(benchmark.card)
    corrections = content.pop("corrections")
    for section, fields in content.items():
        rows = [(_to_words(field), _to_text(value)) for field, value in fields.items()]
        yield _to_words(section), rows
    corrected = []
    for correction in corrections:
        change = f"was: {correction['was']}; now: {correction['now']}"
        corrected.append((correction["field"], f"{change} ({correction['source']})"))
    yield "corrections", corrected
    protocol = find_protocol(benchmark.protocol)
    yield (
        "official protocol",
        [
            (benchmark.protocol, protocol.description),
            ("to quote", cite_rule(benchmark.protocol, {})),
        ],
    )


def _to_words(field: str) -> str:
    return field.replace("_", " ")


def _to_text(value: str | list[str]) -> str:
    """A text as it is; a list with commas, and the ids of risks as their labels."""
    from maskwise.benchmarks import RISKS

    if isinstance(value, str):
        return value
    return ", ".join(RISKS.get(item, item) for item in value)

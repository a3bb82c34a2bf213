"""`maskwise card`: what is known of a benchmark or format."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from maskwise.cli.hints import is_dataset
from maskwise.cli.options import AsJson, ProbeFolders, argument

if TYPE_CHECKING:
    from maskwise.benchmarks import Benchmark, RiskTest
    from maskwise.formats import AnnotationFormat
    from maskwise.store import Dataset

Rows = list[tuple[str, str]]


CardName = Annotated[
    str,
    argument("NAME", "A benchmark or format (`maskwise ls`), or a dataset folder."),
]


def card(name: CardName, probes: ProbeFolders = None, as_json: AsJson = False) -> None:
    """Print the card of a benchmark, format or dataset: contents, layout, sizes, license, risks.

    A risk is tested only where a run of `maskwise probe` shows it: --probes FOLDER adds its results. The card of a
    dataset is that of the benchmark it was read from, if any.

    Example: maskwise card mmr
    """
    from rich.markup import escape
    from rich.table import Table

    from maskwise.benchmarks import find_reader
    from maskwise.builder.release.risk_tests import read_risk_tests
    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.datasets import load_dataset
    from maskwise.registry import BENCHMARKS, FORMATS

    is_known = name.lower() in [*BENCHMARKS.names(), *FORMATS.names()]
    dataset = None
    if not is_known and is_dataset(name):
        dataset = load_dataset(name)
    if dataset is None:
        reader = find_reader(name)
        tests = read_risk_tests(probes or [], reader=reader.name)
        title = reader.title
        content = _describe(reader)
        sections = _sections(reader, tests)
    else:
        tests = read_risk_tests(probes or [], dataset)
        title = dataset.name
        content = _describe_dataset(dataset)
        sections = _dataset_sections(dataset, tests)
    if as_json:
        print_json({**content, "risk_tests": tests})
        return
    console = make_console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]")
    for section, rows in sections:
        console.print(f"\n[bold]{escape(section)}[/bold]")
        table = Table.grid(padding=(0, 3))
        for field, value in rows:
            table.add_row(escape(field), escape(value))
        console.print(table)


def _find_source(dataset: "Dataset") -> "Benchmark | None":
    """The benchmark that a dataset was read from."""
    from maskwise.benchmarks import find_benchmark
    from maskwise.registry import BENCHMARKS

    source = dataset.manifest.about.get("format", "")
    return find_benchmark(source) if source in BENCHMARKS.names() else None


def _describe_dataset(dataset: "Dataset") -> dict[str, Any]:
    """What is known of a dataset, for JSON."""
    source = _find_source(dataset)
    return {
        "name": dataset.name,
        "counts": dataset.manifest.counts,
        "about": dataset.manifest.about,
        "card": None if source is None else source.card,
    }


def _dataset_sections(
    dataset: "Dataset", tests: "list[RiskTest]"
) -> Iterator[tuple[str, Rows]]:
    """Titles and rows to print about a dataset."""
    import msgspec

    from maskwise.benchmarks import describe_risk_tests
    from maskwise.benchmarks.benchmark import NO_RISKS

    counts = dataset.manifest.counts
    yield "data", [(name, f"{count:,}") for name, count in counts.items()]
    yield "about", list(dataset.manifest.about.items())
    source = _find_source(dataset)
    if source is not None:
        yield from _card_sections(source, tests)
        return
    lines = describe_risk_tests(msgspec.structs.replace(NO_RISKS, tests=tests))
    yield "risk tests", [("", line) for line in lines]


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


def _sections(
    reader: "AnnotationFormat", tests: "list[RiskTest]"
) -> Iterator[tuple[str, Rows]]:
    """Titles and rows to print."""
    from maskwise.benchmarks import Benchmark

    if isinstance(reader, Benchmark):
        yield from _card_sections(reader, tests)
    yield "layout on disk", [("", reader.layout.text)]
    sizes = []
    for size in reader.published:
        split = size.split or "all splits"
        sizes.append((f"{size.count:,} {size.what}", f"{split}: {size.source}"))
    yield "published sizes", sizes or [("", "none known")]
    yield "facts", list(reader.facts.items())
    if reader.options:
        yield "options (--option NAME=VALUE)", list(_describe_options(reader).items())


def _card_sections(
    benchmark: "Benchmark", tests: "list[RiskTest]"
) -> Iterator[tuple[str, Rows]]:
    """The card of a benchmark, tests of its risks, corrections of what was published, and the protocol."""
    import msgspec

    from maskwise.benchmarks import describe_risk_tests
    from maskwise.protocols import find_protocol
    from maskwise.protocols.published_rules import cite_rule

    content = msgspec.to_builtins(benchmark.card)
    corrections = content.pop("corrections")
    risks = msgspec.structs.replace(benchmark.card.targeted_risks, tests=tests)
    del content["targeted_risks"]["tests"]
    del content["targeted_risks"]["untested"]
    for section, fields in content.items():
        rows = [(_to_words(field), _to_text(value)) for field, value in fields.items()]
        yield _to_words(section), rows
        if section == "targeted_risks":
            yield "risk tests", [("", line) for line in describe_risk_tests(risks)]
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

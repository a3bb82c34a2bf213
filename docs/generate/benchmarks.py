"""A page for each benchmark and format in docs/benchmarks/datasets, from the readers themselves."""

from maskwise.benchmarks import Benchmark
from maskwise.formats import AnnotationFormat
from maskwise.registry import BENCHMARKS, FORMATS


def reader_pages() -> dict[str, str]:
    """One page per benchmark and format, by the name of the file in docs/benchmarks/datasets."""
    readers = [*BENCHMARKS.load_all(Benchmark).values(), *list_formats()]
    return {file_name(reader): describe(reader) for reader in readers}


def reader_table() -> str:
    """One row per benchmark, then one per format, with its page and title."""
    lines = ["| benchmark | | protocol |", "|---|---|---|"]
    for benchmark in BENCHMARKS.load_all(Benchmark).values():
        rule = f"[`{benchmark.protocol}`](rules/{benchmark.protocol}.md)"
        lines.append(f"| {link(benchmark)} | {benchmark.title} | {rule} |")
    lines += ["", "| format | |", "|---|---|"]
    lines += [f"| {link(reader)} | {reader.title} |" for reader in list_formats()]
    return "\n".join([*lines, ""])


def list_formats() -> list[AnnotationFormat]:
    """The formats that are no benchmarks."""
    return list(FORMATS.load_all(AnnotationFormat).values())


def link(reader: AnnotationFormat) -> str:
    """The name of a reader, linked to its page from docs/benchmarks."""
    return f"[`{reader.name}`](datasets/{file_name(reader)})"


def file_name(reader: AnnotationFormat) -> str:
    """The name of a reader without a plus sign, which means a space in addresses."""
    return reader.name.replace("+", "_plus") + ".md"


def describe(reader: AnnotationFormat) -> str:
    """Title, layout, sizes and facts of one reader."""
    protocol = (
        f" Official protocol: [`{reader.protocol}`](../rules/{reader.protocol}.md)."
        if isinstance(reader, Benchmark)
        else ""
    )
    lines = [
        f"# `{reader.name}`",
        "",
        f"{reader.title}.{protocol}",
        "",
        "```",
        f"maskwise read {reader.name} FOLDER --split SPLIT --out DATASET",
        f"maskwise card {reader.name}",
        "```",
        "",
        "Files that are looked for:",
        "",
        "```",
        reader.layout.text,
        "```",
        "",
    ]
    lines += [f"- {fact}: {text}" for fact, text in reader.facts.items()]
    lines += [
        f"- published: {size.count:,} {size.what}, {size.split or 'all splits together'} ({size.source})"
        for size in reader.published
    ]
    return "\n".join([*lines, ""])

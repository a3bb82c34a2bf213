"""What docs/benchmarks/datasets.md says about each reader, from the readers themselves."""

from maskwise.benchmarks import Benchmark
from maskwise.formats import AnnotationFormat
from maskwise.registry import BENCHMARKS, FORMATS


def readers_text() -> str:
    """Benchmarks, then formats."""
    parts = ["## Benchmarks\n"]
    benchmarks = BENCHMARKS.load_all(Benchmark)
    parts += [describe(benchmark) for benchmark in benchmarks.values()]
    parts.append("## Formats\n")
    formats = FORMATS.load_all(AnnotationFormat)
    parts += [describe(format) for format in formats.values()]
    return "\n".join(parts)


def describe(reader: AnnotationFormat) -> str:
    """Title, layout, sizes and facts of one reader."""
    protocol = (
        f" Official protocol: `{reader.protocol}`."
        if isinstance(reader, Benchmark)
        else ""
    )
    lines = [
        f"### `{reader.name}`",
        "",
        f"{reader.title}.{protocol}",
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

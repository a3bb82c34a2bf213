"""Write docs/benchmarks.md from the readers themselves: `python -m tests.readers_document`."""

from pathlib import Path

from maskwise.benchmarks import Benchmark, list_benchmarks
from maskwise.formats import Source, list_sources

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"

OPENING = """# Benchmarks and sources: what is read, and from where

`maskwise read NAME PATH --out DATASET [--split SPLIT]` converts one split to a dataset folder. PATH is the folder a
dataset was downloaded to, or one annotation file. `--images DIR` names the images' folder where they lie elsewhere;
`--no-images` does without them, where sizes are in the annotations; `--embed` puts the images themselves in the
dataset. Links that lead out of the images' folder are not followed.

A record that does not follow its format is skipped, with a line in the dataset's `problems.jsonl`: file, record, what
was expected, what came. `--strict` stops instead. What is odd but usable (a visible mask that reaches over the amodal
one, an answer that names more masks than there are) is kept as it is and has its line too.

`{split}` below stands for the name of a split, `*` for anything. This file is written by
`python -m tests.readers_document` from the readers; `maskwise card NAME` prints the same and the card of a benchmark.
"""


def document() -> str:
    """The whole text."""
    parts = [OPENING, "## Benchmarks\n"]
    parts += [describe(benchmark) for benchmark in list_benchmarks().values()]
    parts.append("## Sources\n")
    parts += [describe(source) for source in list_sources().values()]
    return "\n".join(parts)


def describe(reader: Source) -> str:
    """Title, layout, sizes and facts of one reader."""
    protocol = f" Official protocol: `{reader.protocol}`." if isinstance(reader, Benchmark) else ""
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


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")

"""Write docs/benchmarks.md from the readers themselves: `python -m tests.readers_document`."""

from pathlib import Path

from maskwise.benchmarks import Benchmark, list_benchmarks
from maskwise.formats import AnnotationFormat, list_formats

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"

OPENING = """# Benchmarks and formats: what is read, and from where

`maskwise read NAME PATH --out DATASET [--split SPLIT]` reads one split into a dataset folder. PATH is the folder a
dataset was downloaded to, or one annotation file. `--images DIR` names the folder of the images if it is elsewhere;
`--no-images` reads annotations only, if they contain the image sizes; `--embed` stores the images in the dataset. Links
that lead out of the image folder are not followed. `--option NAME=VALUE` sets an option of a reader.

A record that does not follow its format is skipped, with a line in the dataset's `diagnostics.jsonl`: file, record,
what was expected, what was found. With `--strict` reading stops instead. Records that are irregular but usable (a
visible mask that extends beyond the amodal one, an answer that names more masks than there are) are kept unchanged and
have a line too. If nothing could be used, reading fails.

`{split}` below stands for the name of a split, `*` for anything. This file is written by
`python -m tests.readers_document` from the readers; `maskwise card NAME` prints the same and the card of a benchmark.
"""


def document() -> str:
    """The whole text."""
    parts = [OPENING, "## Benchmarks\n"]
    parts += [describe(benchmark) for benchmark in list_benchmarks().values()]
    parts.append("## Formats\n")
    parts += [describe(format) for format in list_formats().values()]
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


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")

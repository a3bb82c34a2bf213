"""Results printed in papers, from published_results.yaml: shown beside measured ones, never among them."""

from pathlib import Path

import msgspec

from maskwise.errors import FormatError
from maskwise.yaml_files import read_yaml

FILE = Path(__file__).with_name("published_results.yaml")
MISSING = "-"
"""What the file has where the source prints nothing."""


class PublishedTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One table of one source.

    protocol: the rule of maskwise that its figures follow, or why there is none. rows: a system, then for every split
    its figures joined by `/`, in percent, digits as printed.
    """

    benchmark: str
    title: str
    protocol: str
    conditions: str
    source: str
    splits: list[str]
    figures: list[str]
    rows: list[list[str]]

    @property
    def cells(self) -> list[tuple[str, list[str]]]:
        """Each system with its values as printed, split after split."""
        return [
            (name, [text for part in parts for text in part.split("/")])
            for name, *parts in self.rows
        ]


def read_published(path: Path = FILE) -> list[PublishedTable]:
    """All published tables, checked: every row has a number or MISSING for every metric of every split."""
    tables = read_yaml(path, list[PublishedTable])
    for table in tables:
        for name, cells in table.cells:
            if len(cells) != len(table.splits) * len(table.figures) or not all(
                map(_is_figure, cells)
            ):
                raise FormatError(
                    f"{path}, {table.title}, {name}: expected one number per metric and split"
                )
    return tables


def _is_figure(text: str) -> bool:
    return text == MISSING or text.replace(".", "", 1).isdecimal()

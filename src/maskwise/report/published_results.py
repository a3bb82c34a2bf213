"""Results printed in papers, from published_results.yaml: shown beside measured ones, never among them."""

from pathlib import Path

import msgspec

from maskwise.errors import FormatError, UnknownNameError
from maskwise.protocols.published_rules import Sureness, published_rules
from maskwise.yaml_files import read_yaml

FILE = Path(__file__).with_name("published_results.yaml")
MISSING = "-"
"""What the file has where the source prints nothing."""


class RowRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule of one row of a table."""

    rule: str
    sure: Sureness


class PublishedTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One table of one source.

    rule: the published rule (`maskwise.protocols.published_rules`) that its figures follow; empty where we do not know
    one. rule_source: how we know; sure: how sure we are. row_rules: systems whose figures follow another rule, or of
    which we are surer or less sure. rows: a system, then for every split its figures joined by `/`, in percent, digits
    as printed.
    """

    benchmark: str
    title: str
    rule: str
    rule_source: str
    sure: Sureness
    conditions: str
    source: str
    splits: list[str]
    figures: list[str]
    rows: list[list[str]]
    row_rules: dict[str, RowRule] = {}

    def rule_of(self, system: str) -> tuple[str, Sureness]:
        """The rule of a system's figures, empty if unknown, and how sure we are."""
        row_rule = self.row_rules.get(system)
        if row_rule is None:
            return self.rule, self.sure
        return row_rule.rule, row_rule.sure

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
        _check_rules(path, table)
    return tables


def _check_rules(path: Path, table: PublishedTable) -> None:
    systems = [name for name, *_ in table.rows]
    for system in table.row_rules:
        if system not in systems:
            raise FormatError(f"{path}, {table.title}: no row is called {system!r}")
    rules = [table.rule, *(row_rule.rule for row_rule in table.row_rules.values())]
    for rule in rules:
        if rule and rule not in published_rules():
            raise UnknownNameError(
                "published rule", rule, published_rules(), where=str(path)
            )


def _is_figure(text: str) -> bool:
    return text == MISSING or text.replace(".", "", 1).isdecimal()

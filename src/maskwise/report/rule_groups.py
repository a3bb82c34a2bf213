"""Rows of results by the rule they were made by, for every table that shows several: leaderboards and result tables.

    groups = group_by_rule([(measured_rule("lisa", options), row), (published_rule(table, "LISA-7B"), other)])
    note = mixed_rules_note([rule for rule, _ in groups])

Rows of different rules are never put side by side without this note.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from maskwise import __version__
from maskwise.protocols.published_rules import (
    SURENESS,
    cite_rule,
    find_rule,
    published_rules,
)
from maskwise.report.published_results import PublishedTable

T = TypeVar("T")

UNKNOWN_RULE = "rule not known"


class ResultRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of a result. name: of the published rule, of a protocol of a plug-in, or UNKNOWN_RULE.

    sentence: what a paper can quote, for measured results. source: how we know it, for published ones.
    """

    name: str
    sentence: str = ""
    source: str = ""
    sure: str = "measured"

    @property
    def label(self) -> str:
        """The name, and for published results how sure we are."""
        return self.name if self.sure == "measured" else f"{self.name} [{self.sure}]"


def measured_rule(
    protocol: str,
    options: Mapping[str, Any],
    *,
    description: str = "",
    version: str = __version__,
) -> ResultRule:
    """The rule of values that maskwise measured. description: of a protocol of a plug-in."""
    rule = find_rule(protocol, options)
    sentence = cite_rule(protocol, options, description=description, version=version)
    return ResultRule(name=protocol if rule is None else rule.name, sentence=sentence)


def published_rule(table: PublishedTable, system: str) -> ResultRule:
    """The rule by which a system of a published table was scored, as far as we know."""
    name, sure = table.rule_of(system)
    label: str = SURENESS[sure]
    return ResultRule(name=name or UNKNOWN_RULE, source=table.rule_source, sure=label)


def group_by_rule(
    rows: Iterable[tuple[ResultRule, T]],
) -> list[tuple[ResultRule, list[T]]]:
    """The rows by rule, in the order of published_rules.yaml; those of an unknown rule come last.

    A measured and a published result of one rule are in one group: their rule is the same.
    """
    groups: dict[str, tuple[ResultRule, list[T]]] = {}
    for rule, row in rows:
        groups.setdefault(rule.name, (rule, []))[1].append(row)
    order = [*published_rules(), *sorted(groups), UNKNOWN_RULE]
    last = len(order)

    def place(name: str) -> int:
        return last if name == UNKNOWN_RULE else order.index(name)

    return [groups[name] for name in sorted(groups, key=place)]


def mixed_rules_note(rules: Sequence[ResultRule]) -> str:
    """What has to stand beside rows of several rules; empty if all have the same known rule."""
    names = list(dict.fromkeys(rule.name for rule in rules))
    if len(names) <= 1 and UNKNOWN_RULE not in names:
        return ""
    if names == [UNKNOWN_RULE]:
        return "The rule of these values is not known: they cannot be compared with others, nor surely with each other."
    return (
        f"These values were made by different rules ({', '.join(names)}): only values of one rule can be compared. "
        "`maskwise ladder` scores predictions under all of them."
    )

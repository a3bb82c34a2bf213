"""The rules of published code as data: what each counts, where it comes from, and which papers used it.

    rules = published_rules()                       every variant by name, from published_rules.yaml
    rule = find_rule("segzero", {"form": "multi"})  the variant that a protocol with options is
    cite_rule("lisa", {})                           the sentence that a paper can quote

The texts of the modules say more; `maskwise ladder` and docs/benchmarks/which_giou.md show these.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from maskwise import __version__
from maskwise.protocols.scoring_rule import Protocol, find_protocol
from maskwise.registry import PROTOCOLS
from maskwise.yaml_files import read_yaml

FILE = Path(__file__).with_name("published_rules.yaml")

Sureness = Literal["code", "readme", "unverified"]
"""How a statement about a paper is known: its code was read, its README says so, or neither."""

SURENESS: dict[Sureness, str] = {
    "code": "code read",
    "readme": "by its README",
    "unverified": "unverified",
}

IGNORED_TEXTS = {
    "dropped": "ignored pixels are dropped",
    "target": "ignored pixels count as target",
    "background": "ignored pixels count as background",
    "not known": "ignored pixels are not known",
}
BOTH_EMPTY_TEXTS = {
    "one": "two empty masks count 1",
    "zero": "two empty masks count 0",
    "left out": "two empty masks are left out",
    "by flag": "an empty target counts 1 if the prediction is flagged as empty",
    "true negative": "two empty sets are a true negative",
}


class PaperUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tables of a paper that were made by a rule, and how we know."""

    paper: str
    sure: Sureness


class PublishedRule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One variant of a published rule.

    options: those of the protocol that make the variant. commit: empty where no code was published. unit: what is
    averaged. needs: what a dataset must have for the rule to mean anything; empty for nothing. metrics: the names of
    the headline metrics. caution: what a reader has to know besides.
    """

    name: str
    protocol: str
    project: str
    ignored: Literal["dropped", "target", "background", "not known"]
    both_empty: Literal["one", "zero", "left out", "by flag", "true negative"]
    unit: str
    masks: str
    no_mask: str
    options: dict[str, Any] = {}
    commit: str = ""
    code: str = ""
    metrics: str = "gIoU/cIoU"
    needs: Literal["", "amodal"] = ""
    caution: str = ""
    used_by: list[PaperUse] = []

    @property
    def source(self) -> str:
        """The project, the commit and the files of its code."""
        if not self.commit:
            return self.project
        return f"{self.project} (commit {self.commit}, {self.code})"

    @property
    def text(self) -> str:
        """The rule in one line."""
        parts = [
            IGNORED_TEXTS[self.ignored],
            self.unit,
            BOTH_EMPTY_TEXTS[self.both_empty],
            f"several masks: {self.masks}",
            f"no mask: {self.no_mask}",
        ]
        return "; ".join(parts)

    @property
    def comparable_with(self) -> list[str]:
        """The papers whose tables used the rule, each with how sure we are."""
        return [f"{use.paper} [{SURENESS[use.sure]}]" for use in self.used_by]


@cache
def published_rules() -> dict[str, PublishedRule]:
    """Every variant by name, in the order in which tables show them."""
    rules = read_yaml(FILE, list[PublishedRule])
    return {rule.name: rule for rule in rules}


def find_rule(protocol: str, options: Mapping[str, Any]) -> PublishedRule | None:
    """The variant that a protocol with options is; None for a protocol of a plug-in."""
    defaults = find_protocol(protocol).options if protocol in PROTOCOLS.built_in else {}
    used = {**defaults, **options}
    for rule in published_rules().values():
        is_variant = all(used.get(key) == value for key, value in rule.options.items())
        if rule.protocol == protocol and is_variant:
            return rule
    return None


def cite_rule(
    protocol: str | Protocol,
    options: Mapping[str, Any],
    *,
    description: str = "",
    version: str = __version__,
) -> str:
    """One sentence for a paper: which rule its scores were made by.

    options: those that differ from the published rule are named. description: of a protocol that maskwise does not
    have. version: the version of maskwise that scored.
    """
    name = protocol if isinstance(protocol, str) else protocol.name
    rule = find_rule(name, options)
    if rule is None:
        text = description or "no description"
        return f"gIoU/cIoU under the rule `{name}`, scored with maskwise {version}: {text}."
    origin = f"the rule of {rule.source} as implemented in maskwise {version}"
    if rule.project == "maskwise":
        origin = f"the rule `{rule.name}` of maskwise {version}"
    elif not rule.commit:
        origin = f"the rule `{rule.name}` of maskwise {version}, {rule.project}"
    changed = changed_options(rule, options)
    text = rule.text
    if changed:
        text += f"; options {changed}"
    caution = f" {rule.caution}" if rule.caution else ""
    return f"{rule.metrics} under {origin}: {text}.{caution}"


def changed_options(rule: PublishedRule, options: Mapping[str, Any]) -> str:
    """The options that differ from those of the published rule, as `name=value`; empty if none does."""
    published = {**find_protocol(rule.protocol).options, **rule.options}
    changed = [
        f"{key}={value}"
        for key, value in options.items()
        if key in published and published[key] != value
    ]
    return ", ".join(changed)

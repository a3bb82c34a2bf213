"""`Ladder`: the same predictions under every rule that applies; the content of ladder.json."""

from typing import Any

import msgspec

from maskwise.runs.schema import MetricValue, StatusCounts

LADDER_FORMAT = "maskwise ladder 1"
"""Name and version of the file, its first field."""


class LadderRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of the ladder. sentence: what a paper can quote; comparable_with: papers, each with how sure we are."""

    name: str
    protocol: str
    options: dict[str, Any]
    source: str
    text: str
    sentence: str
    comparable_with: list[str]
    caution: str = ""


class LadderValues(msgspec.Struct, frozen=True, kw_only=True):
    """The predictions of a run under one rule. metrics: `giou`, `ciou` and the rule's other headline metrics."""

    metrics: dict[str, MetricValue]
    counts: StatusCounts


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The lowest and the highest value of a metric under published rules, and the rules that give them."""

    low: float
    low_rule: str
    high: float
    high_rule: str


class LadderRun(msgspec.Struct, frozen=True, kw_only=True):
    """The predictions of one run. values: by rule; spread: by metric, where two rules define it."""

    name: str
    values: dict[str, LadderValues]
    spread: dict[str, Spread]


class RuleDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Run B minus run A under one rule, with its interval and p-value where there are any."""

    difference: float
    low: float | None
    high: float | None
    p: float | None


class RankSwap(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs whose order depends on the rule. differences: by rule, also those under which both are equal."""

    a: str
    b: str
    metric: str
    a_better: list[str]
    b_better: list[str]
    differences: dict[str, RuleDifference]


class LadderDataset(msgspec.Struct, frozen=True, kw_only=True):
    """The questions, and how many of them rules treat differently: with ignored pixels, without any pixel of target
    outside these, and with several targets.
    """

    name: str
    sha256: str
    samples: int
    images: int
    ignored: int
    empty_truth: int
    several_targets: int

    @property
    def divides_rules(self) -> bool:
        """Whether the dataset has questions that rules treat differently."""
        return bool(self.ignored or self.empty_truth or self.several_targets)


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """`ladder.json`. not_applicable: rules that cannot score these predictions, and why."""

    format: str
    maskwise: str
    level: float
    dataset: LadderDataset
    rules: list[LadderRule]
    not_applicable: dict[str, str]
    runs: list[LadderRun]
    swaps: list[RankSwap]

    def __repr__(self) -> str:
        names = ", ".join(run.name for run in self.runs)
        return f"Ladder({names}: {len(self.rules)} rules on {self.dataset.name!r})"

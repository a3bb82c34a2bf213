"""Scoring rules by name: official ones, quirks included, and `strict`, which we recommend.

    inputs = ScoringInput(GroundTruth.from_dataset(dataset), predictions, threads=2)
    scores = get("strict").score(inputs)
    scores.headline()["giou"]

One file a rule; its text states the rule and what is odd about it. A rule is a function from an `ScoringInput` (columns
over a whole dataset, every overlap measured once) to `Scores` (per sample, its part in every metric).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.protocols import aura, gres, gsva, lisa, mmr, muse, r2sm, strict, union
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.metrics import MetricTerms, Scores, concat
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.scoring_input import ScoringInput

__all__ = [
    "PROTOCOLS",
    "GroundTruth",
    "MetricTerms",
    "PredictionColumns",
    "Protocol",
    "Scores",
    "ScoringInput",
    "concat",
    "get",
]


@dataclass(frozen=True)
class Protocol:
    """A named rule. `description` is one sentence; `function` takes an evaluation and options by name."""

    name: str
    description: str
    function: Callable[..., Scores]

    @property
    def options(self) -> dict[str, Any]:
        """Options and their defaults."""
        parameters = inspect.signature(self.function).parameters
        return {
            name: item.default
            for name, item in parameters.items()
            if item.default is not inspect.Parameter.empty
        }

    def score(self, inputs: ScoringInput, **options: Any) -> Scores:
        """Score a whole dataset; an option the rule does not know, or a value it does not take, is refused."""
        return self.function(
            inputs,
            **{name: self._check(name, value) for name, value in options.items()},
        )

    def _check(self, name: str, value: Any) -> Any:
        """The value as the option takes it: text may stand for yes, no and names."""
        if name not in self.options:
            raise UnknownNameError(f"option of {self.name}", name, self.options)
        kind = get_type_hints(self.function)[name]
        if kind is not bool and get_origin(kind) is not Literal:
            return value
        try:
            return msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError:
            known = (
                "true, false" if kind is bool else ", ".join(map(str, get_args(kind)))
            )
            raise ProtocolError(
                f"{self.name}: option {name} is {value!r}; it takes {known}"
            ) from None


def _protocol(module: ModuleType) -> Protocol:
    return Protocol(
        module.__name__.rpartition(".")[2], module.DESCRIPTION, module.score
    )


PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in map(
        _protocol, (strict, lisa, mmr, muse, gres, gsva, union, aura, r2sm)
    )
}
"""All rules, the recommended one first."""


def get(name: str) -> Protocol:
    """The rule of this name; UnknownNameError lists the known ones."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]

"""A protocol: a named scoring rule with options. Built-in ones, plug-ins, and your own."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.protocols.metrics import Scores
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.registry import PROTOCOLS

CONVERTED_TYPES = (bool, int, float, str)
"""Types of options that may be given as text, as on the command line."""

REQUIRED_METRICS = ("giou", "ciou")
"""Reports, slices and leaderboards show these two under every protocol."""


@dataclass(frozen=True)
class Protocol:
    """A named rule.

    description: one sentence. function: takes a ScoringInput and options by name, and
    returns Scores with at least the metrics `giou` and `ciou`.
    """

    name: str
    description: str
    function: Callable[..., Scores]

    @property
    def options(self) -> dict[str, Any]:
        """Options and their defaults."""
        parameters = inspect.signature(self.function).parameters
        return {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }

    def score(self, inputs: ScoringInput, **options: Any) -> Scores:
        """Score a whole dataset.

        UnknownNameError for an option that the rule does not know, ProtocolError for a
        value that it does not take and for a function that does not return scores.
        """
        checked = {name: self._check(name, value) for name, value in options.items()}
        scores = self.function(inputs, **checked)
        if not isinstance(scores, Scores):
            raise ProtocolError(
                f"protocol {self.name}: its function returned a value of type "
                f"{type(scores).__name__}; expected maskwise.protocols.Scores"
            )
        missing = [name for name in REQUIRED_METRICS if name not in scores.metrics]
        if missing:
            raise ProtocolError(
                f"protocol {self.name}: its scores lack the metric "
                f"{' and '.join(missing)}; they have {', '.join(scores.metrics)}"
            )
        return scores

    def _check(self, name: str, value: Any) -> Any:
        """The value with the option's type: text may stand for numbers, yes and no."""
        if name not in self.options:
            raise UnknownNameError(f"option of {self.name}", name, self.options)
        kind = get_type_hints(self.function).get(name)
        is_choice = get_origin(kind) is Literal
        if kind not in CONVERTED_TYPES and not is_choice:
            return value
        try:
            return msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError:
            if kind is bool:
                accepted = "true, false"
            elif is_choice:
                accepted = ", ".join(map(str, get_args(kind)))
            else:
                accepted = f"a value of type {getattr(kind, '__name__', kind)}"
            raise ProtocolError(
                f"{self.name}: option {name} is {value!r}; it takes {accepted}"
            ) from None


def protocol(function: Callable[..., Scores]) -> Protocol:
    """Make a protocol of a scoring function: a decorator.

    The protocol has the function's name; the first line of its docstring is the
    description. ProtocolError if the name belongs to a built-in protocol.
    """
    made = _make_protocol(function.__name__, function)
    _check_name(made)
    return made


def find_protocol(rule: str | Protocol | Callable[..., Scores]) -> Protocol:
    """The protocol of a name (`maskwise ls protocols`) or of `package.module:function`.
    A Protocol is returned as it is; a scoring function becomes one.

    UnknownNameError lists the known names. ProtocolError if the object is not a scoring
    function, or has the name of a built-in protocol.
    """
    if isinstance(rule, str):
        return _load_protocol(rule)
    if not isinstance(rule, Protocol):
        return protocol(rule)
    is_built_in = rule.name in PROTOCOLS.built_in
    if is_built_in and rule != _load_protocol(rule.name):
        _check_name(rule)
    return rule


def _load_protocol(spec: str) -> Protocol:
    loaded = PROTOCOLS.load(spec, object)
    if not isinstance(loaded, Protocol) and not callable(loaded):
        raise ProtocolError(
            f"protocol {spec!r}: expected a scoring function or a Protocol, found an "
            f"object of type {type(loaded).__name__}"
        )
    if spec in PROTOCOLS.names():
        made = _make_protocol(spec, loaded)
        return replace(made, name=spec)
    made = _make_protocol(spec.rpartition(":")[2], loaded)
    _check_name(made)
    return made


def _make_protocol(name: str, rule: Protocol | Callable[..., Scores]) -> Protocol:
    """A protocol of a scoring function; a Protocol as it is."""
    if isinstance(rule, Protocol):
        return rule
    if name in PROTOCOLS.built_in:
        return Protocol(name, PROTOCOLS.built_in[name].description, rule)
    first_line = (inspect.getdoc(rule) or "").partition("\n")[0]
    return Protocol(name, first_line or "no description", rule)


def _check_name(made: Protocol) -> None:
    if made.name in PROTOCOLS.built_in:
        raise ProtocolError(
            f"the name {made.name!r} belongs to a built-in protocol; give yours another"
        )

"""A probe: a named test of a risk, with its limits and thresholds stated beside it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.probes.context import ProbeContext
from maskwise.registry import PROBES
from maskwise.runs.probe_results import ProbeFinding, Threshold


@dataclass(frozen=True)
class Probe:
    """A test of one or several risks.

    name: as given to `--probe`. title: a few words. risks: ids of the AI Risk Atlas, or names
    such as `safety`. measured: what is measured, one sentence. blind_spots: what the probe
    cannot see. thresholds: when a finding has which severity, in words. run: takes a context
    and options by name, with defaults, and returns a finding. needs_model: False for a probe
    of the dataset alone, which runs without `--model` too.
    """

    name: str
    title: str
    risks: tuple[str, ...]
    measured: str
    blind_spots: str
    thresholds: tuple[Threshold, ...]
    run: Callable[..., ProbeFinding]
    needs_model: bool = True

    @property
    def options(self) -> dict[str, Any]:
        """Options and their defaults."""
        parameters = inspect.signature(self.run).parameters
        return {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }

    def find(self, context: ProbeContext, **options: Any) -> ProbeFinding:
        """Run the probe. UnknownNameError and MaskwiseError for options it does not take."""
        checked = {name: self.check(name, value) for name, value in options.items()}
        finding = self.run(context, **checked)
        if not isinstance(finding, ProbeFinding):
            raise MaskwiseError(
                f"probe {self.name}: its function returned a value of type "
                f"{type(finding).__name__}; expected maskwise.probes.ProbeFinding"
            )
        return finding

    def check(self, name: str, value: Any) -> Any:
        """The value of an option with its type: text may stand for numbers, yes and no."""
        if name not in self.options:
            raise UnknownNameError(f"option of {self.name}", name, self.options)
        kind = get_type_hints(self.run).get(name, Any)
        try:
            return msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as error:
            raise MaskwiseError(
                f"{self.name}: option {name} is {value!r}: {error}"
            ) from None


def find_probe(probe: str | Probe) -> Probe:
    """The probe of a name (`maskwise probe ls`) or of `package.module:attribute`; a Probe is
    returned as it is.
    """
    if isinstance(probe, Probe):
        return probe
    return PROBES.load(probe, Probe)

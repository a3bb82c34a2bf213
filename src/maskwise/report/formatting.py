"""Numbers and texts as reports print them."""

from collections.abc import Sequence

from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.runs.schema import MetricValue

MAX_TEXT = 600
"""Characters shown of any text that comes from a dataset or a model."""
UNDEFINED = "–"


def format_metric(metric: MetricValue) -> str:
    """Percent with one digit; a count with two digits; what is not defined by the rule says so."""
    if metric.method == NOT_DEFINED:
        return NOT_DEFINED
    return format_value(metric.value, metric.unit)


def format_interval(metric: MetricValue) -> str:
    """The interval, or nothing where there is none."""
    if metric.low is None or metric.high is None:
        return ""
    low = format_value(metric.low, metric.unit)
    high = format_value(metric.high, metric.unit)
    return f"{low} to {high}"


def format_value(value: float | None, unit: str = "fraction") -> str:
    """Percent with one digit and no percent sign; a count with two digits."""
    if value is None:
        return UNDEFINED
    text = f"{value:.2f}" if unit == "count" else f"{100 * value:.1f}"
    return _minus(text)


def format_difference(value: float | None, unit: str = "fraction") -> str:
    """Like `format_value`, with a sign; a difference that rounds to 0 has none."""
    if value is None:
        return UNDEFINED
    text = f"{value:+.2f}" if unit == "count" else f"{100 * value:+.1f}"
    if float(text) == 0:
        return text[1:]
    return _minus(text)


def format_tick(value: float) -> str:
    """A value on an axis, in percent."""
    return _minus(f"{100 * value:g}")


def format_p(value: float | None) -> str:
    """A p-value; below 0.001 as a bound."""
    if value is None:
        return UNDEFINED
    if value < 0.001:
        return "< 0.001"
    if value < 0.1:
        return f"{value:.3f}"
    return f"{value:.2f}"


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """The text, cut to at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def number_equal(names: Sequence[str]) -> list[str]:
    """Names of runs; those that occur again are numbered, as in `run #2`."""
    numbered: list[str] = []
    for name in names:
        same = sum(other.partition(" #")[0] == name for other in numbered)
        numbered.append(f"{name} #{same + 1}" if same else name)
    return numbered


def _minus(text: str) -> str:
    """The text with a minus sign instead of a hyphen, and without one before zero."""
    if not text.startswith("-"):
        return text
    digits = text[1:]
    if float(digits) == 0:
        return digits
    return "−" + digits

"""Severities from measured values, and how several findings make one."""

from collections.abc import Sequence

from maskwise.runs.probe_results import SEVERITIES, Severity, Threshold


def grade(value: float, edges: Sequence[tuple[float, Severity]]) -> Severity:
    """The severity of the largest edge that a value reaches; `none` below all. edges: ascending."""
    reached: Severity = "none"
    for edge, severity in edges:
        if value >= edge:
            reached = severity
    return reached


def worst(severities: Sequence[Severity]) -> Severity:
    """The worst of several; `unmeasured` only if nothing was measured."""
    return max(severities, key=SEVERITIES.index, default="unmeasured")


def state_edges(
    edges: Sequence[tuple[float, Severity]], what: str
) -> tuple[Threshold, ...]:
    """The edges in words, the worst first. what: a sentence with a gap for the points, {}."""
    listed = [
        Threshold(severity, what.format(f"{100 * edge:g}")) for edge, severity in edges
    ]
    return tuple(reversed(listed))

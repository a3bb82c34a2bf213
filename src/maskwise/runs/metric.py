"""`Metric`: the value of a metric with its confidence interval."""

from typing import Any, Literal


class Metric(float):
    """A metric that behaves like a float: a fraction, 1 at best, or a count.

    `interval`: lower and upper end of the confidence interval, or None where there is none. `unit`: what the value is.
    """

    interval: tuple[float, float] | None
    unit: Literal["fraction", "count"]

    def __new__(
        cls,
        value: float,
        interval: tuple[float, float] | None = None,
        unit: Literal["fraction", "count"] = "fraction",
    ) -> "Metric":
        """Make a metric of a value."""
        metric = super().__new__(cls, value)
        metric.interval = interval
        metric.unit = unit
        return metric

    def __repr__(self) -> str:
        if self.interval is None:
            return f"Metric({self:.3f})"
        return f"Metric({self:.3f}, interval=({self.interval[0]:.3f}, {self.interval[1]:.3f}))"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Metric, (float(self), self.interval, self.unit))

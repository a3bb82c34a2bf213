"""`Metric`: the value of a metric with its confidence interval."""

from typing import Any, Literal


class Metric(float):
    """A metric that behaves like a float: a fraction, 1 at best, or a count.

    `interval`: lower and upper end of the confidence interval, or None where there is none. `unit`: what the value is.
    `failed`: samples whose prediction failed; under most protocols each of them counts as zero.
    """

    interval: tuple[float, float] | None
    unit: Literal["fraction", "count"]
    failed: int

    def __new__(
        cls,
        value: float,
        interval: tuple[float, float] | None = None,
        unit: Literal["fraction", "count"] = "fraction",
        *,
        failed: int = 0,
    ) -> "Metric":
        """Make a metric of a value."""
        metric = super().__new__(cls, value)
        metric.interval = interval
        metric.unit = unit
        metric.failed = failed
        return metric

    def __repr__(self) -> str:
        parts = [f"{self:.3f}"]
        if self.interval is not None:
            parts.append(f"interval=({self.interval[0]:.3f}, {self.interval[1]:.3f})")
        if self.failed:
            parts.append(f"failed={self.failed}")
        return f"Metric({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_make, (float(self), self.interval, self.unit, self.failed))


def _make(
    value: float,
    interval: tuple[float, float] | None,
    unit: Literal["fraction", "count"],
    failed: int,
) -> Metric:
    """A metric as it was before it was copied or pickled."""
    return Metric(value, interval, unit, failed=failed)

"""Calibration: gaps that can be worked out by hand, and tests that chance does not pass."""

import numpy as np
import pytest

from maskwise.probes.accuracy import grade_metric
from maskwise.probes.calibration import check_calibration, zero_p_value
from maskwise.runs.schema import MetricValue


def test_too_sure() -> None:
    confidence = np.full(40, 0.9)
    right = np.arange(40) % 2 == 0
    test = check_calibration("scores", confidence, right, np.arange(40))
    assert test.overall.gap == pytest.approx(0.4)
    assert test.certain_error == pytest.approx(0.4)
    assert test.expected_error == pytest.approx(0.4)


def test_right_as_often_as_stated() -> None:
    confidence = np.full(40, 0.5)
    right = np.arange(40) % 2 == 0
    test = check_calibration("scores", confidence, right, np.arange(40))
    assert test.overall.gap == 0
    assert test.certain_error == 0


def test_not_sure_enough_is_no_error_of_one_side() -> None:
    confidence = np.full(40, 0.2)
    right = np.ones(40, bool)
    both = check_calibration("a", confidence, right, np.arange(40))
    one_side = check_calibration("a", confidence, right, np.arange(40), one_sided=True)
    assert both.certain_error == pytest.approx(0.8)
    assert one_side.certain_error == 0


def test_few_images_prove_nothing() -> None:
    assert zero_p_value(np.ones(90), np.arange(90) % 9) is None


def test_certainty_that_is_always_right_is_calibrated() -> None:
    test = check_calibration("a", np.ones(30), np.ones(30, bool), np.arange(30))
    assert test.certain_error == 0


@pytest.mark.parametrize(
    ("low", "value", "high", "severity"),
    [
        (0.6, 0.7, 0.8, "none"),
        (0.4, 0.6, 0.8, "low"),
        (0.3, 0.4, 0.6, "medium"),
        (0.1, 0.2, 0.4, "high"),
        (None, 0.6, None, "none"),
        (None, 0.4, None, "high"),
        (None, None, None, "unmeasured"),
    ],
)
def test_requirements(
    low: float | None, value: float | None, high: float | None, severity: str
) -> None:
    metric = MetricValue(value=value, low=low, high=high, unit="fraction")
    assert grade_metric(metric, 0.5) == severity

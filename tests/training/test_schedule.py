"""Learning rates, and when something is due."""

from dataclasses import replace

import pytest

from maskwise.training.schedule import Schedule

LINEAR = Schedule(
    steps=6,
    last_step=6,
    warmup_steps=2,
    decay="linear",
    final_factor=0.1,
    log_every=4,
    validate_every=None,
    checkpoint_every=4,
)


def factors(schedule: Schedule, *steps: int) -> list[float]:
    return [schedule.learning_rate_factor(step) for step in steps]


def test_the_learning_rate_warms_up_and_falls_to_its_final_factor() -> None:
    assert factors(LINEAR, 0, 1, 2, 4, 6) == pytest.approx([0.5, 1, 1, 0.55, 0.1])
    cosine = replace(LINEAR, decay="cosine", warmup_steps=0, final_factor=0.0)
    assert factors(cosine, 0, 3, 6) == pytest.approx([1, 0.5, 0])
    assert factors(replace(LINEAR, decay="constant"), 0, 5) == [0.5, 1.0]


def test_stopping_early_does_not_change_the_learning_rate() -> None:
    stopped = replace(LINEAR, last_step=3)
    assert factors(stopped, 0, 1, 2) == factors(LINEAR, 0, 1, 2)


def test_something_is_due_at_its_steps_and_after_the_last_one() -> None:
    assert [done for done in range(1, 7) if LINEAR.is_due(done, 4)] == [4, 6]
    assert not LINEAR.is_due(6, None), "validation that is off is never due"

"""Progress of a training run, told to a function of the caller."""

import pytest

from maskwise.training.progress import report, reporting, track_items


def test_items_are_reported_one_by_one() -> None:
    calls: list[tuple[str, int, int]] = []
    with reporting(lambda label, done, total, note: calls.append((label, done, total))):
        items = list(track_items("ab", "letters", 2))
    assert items == ["a", "b"]
    assert calls == [("letters", 0, 2), ("letters", 1, 2), ("letters", 2, 2)]


def test_nothing_is_reported_without_or_after_a_caller() -> None:
    calls: list[str] = []
    report("steps", 1, 2)
    with (
        pytest.raises(KeyError),
        reporting(lambda label, done, total, note: calls.append(label)),
    ):
        raise KeyError
    report("steps", 2, 2)
    assert not calls

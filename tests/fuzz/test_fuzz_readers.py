"""The seeds of the reader fuzzer are valid, and its first inputs are read or refused."""

from pathlib import Path

import pytest

pytest.importorskip("litestar", reason="the server needs the extra web")

from tests.fuzz.fuzz_readers import Tally, make_input, try_input
from tests.fuzz.reader_targets import Target, list_targets

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
"""Readers warn about files that end early."""

INPUTS = 60


def test_seeds_are_valid_and_damaged_input_is_refused(tmp_path: Path) -> None:
    tally = Tally()
    targets = list_targets(tmp_path)
    for target in targets:
        target.read(target.seed)
        for number in range(1, INPUTS):
            try_input(target, make_input(target, 0, number), tally)
    assert not tally.findings, tally.examples
    assert set(tally.calls) == {target.name for target in targets}
    assert tally.refused.total() > 0


def test_other_exceptions_are_findings() -> None:
    def read(data: bytes) -> None:
        raise KeyError(data)

    tally = Tally()
    try_input(Target("broken", b"seed", read, lambda rng, data: data), b"x", tally)
    [(place, count)] = tally.findings.items()
    assert place.startswith("broken: KeyError")
    assert count == 1

"""Probes of groups, data and accuracy: what has the fault is flagged, what is clean is not."""

import pytest

from bench.probe_alarms import CASES, Case, measure


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.probe}: {case.title}")
def test_faults_are_flagged_and_only_faults(case: Case) -> None:
    # `python -m bench.probe_alarms` does this with 100 seeds.
    flagged = measure(case, seed=0) in ("low", "medium", "high")
    assert flagged == case.faulty

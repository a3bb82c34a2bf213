"""Findings in words: they claim no more than was measured, and count the same things."""

import pytest

from bench.evasion_faults import Clean
from maskwise.probes.change_findings import loss_sentence
from maskwise.probes.changed_data import Effect
from maskwise.protocols.intervals import JACKKNIFE, Interval
from maskwise.protocols.significance import Comparison
from maskwise.store import Dataset
from tests.probes.run_one import run


def lose(difference: float, reach: float, p: float) -> str:
    """The sentence about a change of a score of 0.5."""
    interval = Interval(difference - reach, difference + reach, JACKKNIFE)
    compared = Comparison(0.5, 0.5 + difference, difference, interval, p, 40)
    return loss_sentence("Fog", [Effect("all", 40, compared, p)])


@pytest.mark.parametrize(
    ("difference", "reach", "p", "said"),
    [
        # The loss is -0.02 / 0.5 = 4 %; the interval reaches 0.08 / 0.5 = 16 %.
        (
            -0.02,
            0.06,
            0.51,
            "Fog costs -8% to 16% of the score (p = 0.51): too few questions to tell.",
        ),
        # From -0.001 / 0.5, which is no "-0%".
        (
            -0.1,
            0.101,
            0.06,
            "Fog costs 0% to 40% of the score (p = 0.06): too few questions to tell.",
        ),
        # It reaches 0.07 / 0.5 = 14 %, which would be low.
        (-0.02, 0.05, 0.43, "Fog costs nothing that could be measured (p = 0.43)."),
        (
            -0.03,
            0.029,
            0.04,
            "Fog costs 6.0% of the score (p = 0.04); a finding needs 5% and p < 0.02.",
        ),
        (
            -0.01,
            0.005,
            0.001,
            "Fog costs 2.0% of the score (p = 0.001); a finding needs 5% and p < 0.02.",
        ),
        (
            0.01,
            0.005,
            0.001,
            "Fog costs nothing: the score is 2.0% higher (p = 0.001).",
        ),
        (-0.1, 0.05, 0.001, "Fog costs 20% of the score."),
    ],
)
def test_no_finding_says_what_is_known(
    difference: float, reach: float, p: float, said: str
) -> None:
    assert lose(difference, reach, p) == said


def test_all_counts_of_comparisons_agree(scenes: Dataset) -> None:
    options = {"output-bias": {"min_images": 3}}
    result = run("output-bias", Clean(), scenes, probe_options=options)
    count = len(result.tables[0].rows)
    gaps = [row for row in result.tables[0].rows if row[2] == "gIoU"]
    assert len(gaps) < count, "some comparisons are of completion"
    gap = next(item for item in result.measures if item.name == "largest_gap")
    for text in (result.finding, result.done, gap.meaning):
        assert f"{count} comparisons" in text
    assert f"({count})" in result.tables[0].title

"""Metrics that are no ratio of two sums, and metrics that a rule does not define, from scores to report."""

import json
from pathlib import Path

import pytest

from maskwise.protocols.intervals import JACKKNIFE, NOT_A_SUM, NOT_DEFINED
from maskwise.report.comparison import compare
from maskwise.report.leaderboard import leaderboard_to_html, make_leaderboard
from maskwise.report.report_page import run_to_html
from maskwise.report.report_text import run_to_markdown
from maskwise.runs import Run, load_run
from tests.cli.commands import run as command
from tests.report.runs import make_dataset, make_predictions


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run under two rules that have such metrics."""
    folder = tmp_path_factory.mktemp("published")
    dataset = make_dataset(folder / "data")
    predictions = make_predictions(folder / "predictions.jsonl", dataset, shift=0)
    rules = ("--protocol", "saco", "--protocol", "sam3i")
    command("score", predictions, dataset, *rules, "--out", folder / "run")
    return load_run(folder / "run")


def test_scores_file_has_composites_with_intervals_and_plain_values_without(
    scored: Run,
) -> None:
    cgf1 = scored.scores.protocols["saco"].metrics["cgf1"]
    assert cgf1.value is not None
    assert cgf1.method == JACKKNIFE
    assert cgf1.low is not None
    assert cgf1.low < cgf1.value
    ap = scored.scores.protocols["sam3i"].metrics["ap"]
    assert ap.value is not None
    assert (ap.low, ap.method) == (None, NOT_A_SUM)


def test_undefined_giou_is_never_zero(scored: Run) -> None:
    assert scored["saco"]["giou"] is None
    assert scored.scores.protocols["saco"].metrics["giou"].method == NOT_DEFINED
    assert NOT_DEFINED in run_to_markdown(scored, protocol="saco")
    assert NOT_DEFINED in run_to_html(scored, protocol="saco", samples=0)
    assert NOT_DEFINED in scored._repr_html_()
    written = json.loads((scored.folder / "scores.json").read_text())
    giou = written["protocols"]["saco"]["metrics"]["giou"]
    assert giou["value"] is None


def test_terminal_shows_labels_and_what_is_not_defined(
    scored: Run, tmp_path: Path
) -> None:
    predictions = scored.predictions_info.path
    dataset = scored.info.dataset.path
    shown = command("score", predictions, dataset, "--protocol", "saco").output
    assert "not defined" in shown
    assert "cgF1" in shown
    assert "Presence" in shown


def test_runs_under_such_rules_can_be_compared_and_ranked(scored: Run) -> None:
    comparison = compare(scored, scored, protocol="saco")
    assert comparison.metrics["giou"].difference is None
    assert comparison.metrics["count_accuracy"].difference == 0
    board = make_leaderboard([scored])
    assert "cgF1" in leaderboard_to_html(board)

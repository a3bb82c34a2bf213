"""Judging a run: verdicts in its folder, shares with intervals, judges of the user's own."""

from pathlib import Path

import pytest

from maskwise.errors import StoreError, UnknownNameError
from maskwise.judging import AnswerCase, Verdict, judge
from maskwise.runs import load_run
from maskwise.runs.judgments import judgments_path, read_judgments
from tests.judging.cases import make_run


def test_shares_by_hand(run_folder: Path) -> None:
    judgments = judge(run_folder)
    # Of four answers two are right and one is wrong; the doubtful one names nothing.
    assert judgments.shares["correct"].value == 0.5
    assert judgments.shares["complete"].value == 0.5
    assert judgments.shares["correct"].method == "wilson"
    assert judgments.doubtful == 12
    assert not judgments.unjudged
    assert read_judgments(load_run(run_folder)) == [judgments]


def test_a_failed_prediction_counts_as_wrong(
    tmp_path: Path, judged_dataset: Path
) -> None:
    answers = ("the red cup", None, "the red cup", "the red cup")
    judgments = judge(make_run(tmp_path / "run", judged_dataset, answers))
    assert judgments.shares["correct"].value == 0.75
    assert judgments.count("no answer") == 12


def test_a_run_without_words_is_refused(tmp_path: Path, judged_dataset: Path) -> None:
    run = make_run(tmp_path / "run", judged_dataset, ("", "", "", ""))
    with pytest.raises(StoreError, match="no answers in words"):
        judge(run)


def test_a_function_may_judge(run_folder: Path) -> None:
    def length(case: AnswerCase) -> Verdict:
        assert case.answer is not None
        if "sip" in case.answer:
            raise RuntimeError("too odd")
        return Verdict(
            sample=case.sample.id,
            correct=len(case.answer) < 20,
            grounded=True,
            complete=True,
            hallucinated=False,
            reason="short",
            origin="judge",
        )

    judgments = judge(run_folder, length)
    assert judgments.info.judge == "length"
    # A failure is no verdict, and no number.
    assert len(judgments.unjudged) == 12
    assert judgments.unjudged[0].reason == "RuntimeError: too odd"
    assert judgments.shares["correct"].value == pytest.approx(2 / 3)


def test_a_judge_that_returns_something_else_is_told(run_folder: Path) -> None:
    judgments = judge(run_folder, lambda case: True)  # type: ignore[arg-type,return-value]
    assert "type bool, not a Verdict" in judgments.unjudged[0].reason
    assert judgments.shares["correct"].value is None


def test_an_unknown_judge_is_named(run_folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"offlien.*offline"):
        judge(run_folder, "offlien")


def test_verdicts_on_other_predictions_are_left_out(
    run_folder: Path, judged_dataset: Path
) -> None:
    judge(run_folder)
    make_run(run_folder, judged_dataset, ("the laptop",) * 4)
    assert read_judgments(load_run(run_folder)) == []


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    for name in ("../../etc/x", "a/b", "..", "", "x" * 500, "openai/gpt-5:mini"):
        path = judgments_path(tmp_path, name)
        assert path.parent == tmp_path
        assert len(path.name) < 120

"""People beside a judge: kappa by hand, corrected shares, files of verdicts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwise.errors import StoreError
from maskwise.judging import judge
from maskwise.judging.calibration import _kappa_of_counts, calibrate
from maskwise.review.agreement import cohen_kappa
from maskwise.runs import load_run
from maskwise.runs.judgments import read_judgments


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def people(**of_answer: bool) -> list[dict[str, Any]]:
    """One person on all answers of `make_run`; of_answer: what is said of answer 0, 1, ..."""
    return [
        {
            "run": "mine",
            "sample": f"s{image}-{item}",
            "reviewer": "ann",
            "correct": of_answer.get(f"a{item}", item < 2),
        }
        for image in range(12)
        for item in range(4)
    ]


def test_kappa_is_cohens() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        pairs = random.random((40, 2)) < [0.6, 0.7]
        counts = np.bincount(2 * pairs[:, 0] + pairs[:, 1], minlength=4)
        expected = cohen_kappa([(bool(a), bool(b)) for a, b in pairs])
        assert _kappa_of_counts(counts[None].astype(float))[0] == pytest.approx(
            expected
        )


def test_people_who_agree(run_folder: Path, tmp_path: Path) -> None:
    judge(run_folder)
    calibrated = calibrate(run_folder, write(tmp_path / "v.jsonl", people()))
    calibration = calibrated.calibration
    assert calibration is not None
    correct = calibration.criteria["correct"]
    assert list(calibration.criteria) == ["correct"], "the others were not asked"
    assert correct.confusion == ((24, 0), (0, 24))
    assert correct.kappa.value == 1.0
    assert correct.people_kappa.value is None
    assert correct.corrected.value == 0.5
    assert read_judgments(load_run(run_folder)) == [calibrated]


def test_people_who_accept_what_words_do_not_settle(
    run_folder: Path, tmp_path: Path
) -> None:
    judge(run_folder)
    lines = [line for line in people(a3=True) if int(line["sample"][1:-2]) < 11]
    calibrated = calibrate(run_folder, write(tmp_path / "v.jsonl", lines))
    assert calibrated.calibration is not None
    correct = calibrated.calibration.criteria["correct"]
    assert correct.confusion == ((11, 11), (0, 22))
    assert correct.judge.value == 0.5
    assert correct.corrected.value == pytest.approx(0.75)
    assert correct.agreement == 0.75


def test_the_last_verdict_of_a_person_counts(run_folder: Path, tmp_path: Path) -> None:
    judge(run_folder)
    comparison = {"run": "mine", "sample": "s0-0", "reviewer": "ann", "better": "this"}
    other = {"run": "theirs", "sample": "s0-0", "reviewer": "ann", "correct": True}
    lines = [*people(a0=False), *people(), comparison, other]
    calibrated = calibrate(run_folder, write(tmp_path / "v.jsonl", lines))
    assert calibrated.calibration is not None
    assert calibrated.calibration.criteria["correct"].confusion == ((24, 0), (0, 24))


def test_two_people(run_folder: Path, tmp_path: Path) -> None:
    judge(run_folder)
    bob = [{**line, "reviewer": "bob"} for line in people(a3=True)]
    calibrated = calibrate(run_folder, write(tmp_path / "v.jsonl", [*people(), *bob]))
    assert calibrated.calibration is not None
    correct = calibrated.calibration.criteria["correct"]
    assert calibrated.calibration.reviewers == 2
    # Of 96 verdicts 12 differ from the judge's.
    assert correct.agreement == 1 - 12 / 96
    assert correct.people_kappa.value is not None
    assert correct.people_kappa.value < 1
    assert correct.people.value == pytest.approx((1 + 1 + 0 + 0.5) / 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is none. Expected"),
        ('{"run": "other", "sample": "s0-0", "reviewer": "a"}', "1 about another run"),
        (
            '{"run": "mine", "sample": "s0-0", "reviewer": "a", "better": "left"}',
            "1 without any of correct.*--mode rate",
        ),
        ('{"run": "mine"}', "line 1: .*sample"),
        ("[1, 2]", "line 1"),
        ('{"run": "mine", "sample": "s0-0", "reviewer": "a", "correct": 1}', "line 1"),
        ("\n\n{", "line 3"),
        ("x" * 10**6, "line 1 has more than"),
        (
            '{"run": "mine", "sample": "nowhere", "reviewer": "a", "correct": true}',
            "1 about a question that the judge has not judged",
        ),
    ],
)
def test_bad_files_are_named(
    run_folder: Path, tmp_path: Path, text: str, message: str
) -> None:
    judge(run_folder)
    path = tmp_path / "v.jsonl"
    path.write_text(text)
    with pytest.raises(StoreError, match=message) as error:
        calibrate(run_folder, path)
    assert str(path) in str(error.value)


def test_a_judge_that_did_not_judge_is_named(run_folder: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "v.jsonl", people())
    with pytest.raises(StoreError, match=r"maskwise judge .* --judge offline"):
        calibrate(run_folder, path)

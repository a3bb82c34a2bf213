"""People judge predictions: blind, on either side, twice, with controls; what it says about runs and metrics."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from sqlalchemy import select, text

from maskwise.errors import RecordError, StoreError
from maskwise.harness.score import score
from maskwise.review import tables
from maskwise.review.database import ReviewDatabase
from maskwise.review.edits import InvalidDecisionError
from maskwise.review.judged_runs import open_judged_runs
from maskwise.review.judgments import read_judgment_controls
from maskwise.review.metric_agreement import spearman
from maskwise.review.project import stored_mode
from maskwise.review.review import Review, UnknownItemError
from maskwise.review.verdicts import export_verdicts
from maskwise.runs.judgments import read_people_verdicts
from maskwise.schema import Prediction
from maskwise.store import Dataset
from tests.review.datasets import write_samples
from tests.review.judging import (
    Rater,
    close_judgments,
    judge,
    open_judgments,
    shown_runs,
    write_runs,
)
from tests.review.test_review import join, state


@pytest.fixture(autouse=True)
def closed_databases() -> Iterator[None]:
    yield
    close_judgments()


RUNS = ("good", "fair", "poor")
RATINGS = {"target": 5, "boundary": 2, "correct": 4, "grounded": 3}


def test_every_pair_is_asked_once_on_random_sides(
    cup_runs: list[Path], database_url: str
) -> None:
    review = open_judgments(cup_runs, database_url)
    with review.database.read() as connection:
        items = connection.execute(select(tables.items)).all()
    asked = Counter((item.row, *sorted((item.left, item.right))) for item in items)
    assert asked == {
        (row, *pair): 1 for row in range(24) for pair in ((0, 1), (0, 2), (1, 2))
    }
    # With 72 items, all on one side would be a chance of 2 ** -71.
    assert 0 < sum(item.left < item.right for item in items) < 72
    assert [item.row for item in items] != sorted(item.row for item in items)


def test_nothing_that_a_reviewer_gets_names_a_run(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    review = open_judgments(cup_runs, tmp_path / "review.sqlite")
    ada = join(review, "ada")
    (item,) = review.queue(ada, 1)
    result = review.decide(ada, judge(item.item, "left", next=2))
    undone = review.undo(ada, str(judge(0, "left").id))
    seen = [item, result, undone, review.history(ada, before=None, limit=9)]
    shown = msgspec.json.encode(seen).decode()
    for name in (*RUNS, str(cup_runs[0].parent)):
        assert name not in shown
    assert len(item.candidates) == 2
    assert item.targets == []
    assert item.mask_type is None


def test_why_a_prediction_is_missing_is_not_shown(tmp_path: Path) -> None:
    """The message of an error often names the model."""
    data = write_samples(tmp_path / "data", 1)
    for name in ("one", "two"):
        failed = Prediction(sample="s0", error=f"{name}.py: out of memory")
        score([failed], data, tmp_path / name, protocols=["strict"], progress=False)
    review = open_judgments(
        [tmp_path / "one", tmp_path / "two"], tmp_path / "review.sqlite"
    )
    (item,) = review.queue(join(review, "ada"), 1)
    assert [candidate.missing for candidate in item.candidates] == [True, True]
    assert b"memory" not in msgspec.json.encode(item)


def test_judgments_are_double_counted_undone_and_rebuilt(
    cup_runs: list[Path], database_url: str
) -> None:
    review = open_judgments(cup_runs, database_url, double_share=1.0, samples=2)
    ada = join(review, "ada")
    bob = join(review, "bob")
    for reviewer in (ada, bob):
        while items := review.queue(reviewer, 1):
            verdict = "tie" if items[0].item else "bad"
            fields = {"criteria": ["boundary"], "note": "close", "seconds": 4.0}
            review.decide(reviewer, judge(items[0].item, verdict, **fields))
    review.undo(bob, str(judge(0, "tie").id))
    results = review.results()
    assert results.judgments == 11
    assert results.questions == 2
    assert results.criteria == {"boundary": 11}
    assert results.seconds_median == 4.0
    assert results.hours == pytest.approx(44 / 3600)
    assert (results.agreement.items, results.agreement.equal) == (5, 5)
    assert review.stats().progress.judged == 5
    (again,) = review.queue(bob, 1)
    assert again.draft is not None
    assert again.draft.criteria == ("boundary",)
    before = state(review)
    review.rebuild()
    assert state(review) == before


@pytest.mark.parametrize(
    "case",
    [
        ("compare", "accept", {}, "does not fit here"),
        ("compare", "rated", {"ratings": RATINGS}, "does not fit here"),
        ("compare", "left", {"ratings": RATINGS}, "no other verdict takes them"),
        ("compare", "left", {"criteria": ["taste"]}, "'taste' is unknown"),
        ("compare", "left", {"criteria": ["target"] * 2}, "named twice"),
        ("rate", "rated", {}, "needs ratings"),
        ("rate", "rated", {"ratings": {"taste": 3}}, "'taste' is unknown"),
        ("rate", "left", {}, "does not fit here"),
    ],
)
def test_verdicts_fit_what_is_asked(
    cup_runs: list[Path], tmp_path: Path, case: tuple[Any, str, Any, str]
) -> None:
    mode, verdict, fields, message = case
    review = open_judgments(cup_runs, tmp_path / "review.sqlite", mode)
    ada = join(review, "ada")
    (item,) = review.queue(ada, 1)
    with pytest.raises(InvalidDecisionError, match=message):
        review.decide(ada, judge(item.item, verdict, **fields))


def test_ratings_lie_between_one_and_five() -> None:
    for rating in (0, 6):
        with pytest.raises(msgspec.ValidationError):
            judge(0, "rated", ratings={"target": rating})


def test_people_who_prefer_the_better_run_rank_it_first_and_agree_with_the_metric(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    review = open_judgments(cup_runs, tmp_path / "review.sqlite", double_share=0.3)
    for seed, name in enumerate(("ada", "bob")):
        Rater(review, join(review, name), [2.0, 0.0, -2.0], seed).work()
    results = review.results()
    strengths = [run.strength for run in results.runs]
    values = [strength.value for strength in strengths if strength is not None]
    assert values == sorted(values, reverse=True)
    for strength, truth in zip(strengths, (2.0, 0.0, -2.0)):
        assert strength is not None
        assert strength.low is not None
        assert strength.high is not None
        assert strength.low - 0.5 < truth < strength.high + 0.5
    best = {(line.protocol, line.metric): line for line in results.metrics}
    agreement = best["strict", "giou"].agreement
    assert agreement is not None
    assert agreement.value is not None
    assert agreement.value > 0.8
    assert sum(run.wins for run in results.runs) == results.judgments


def test_ratings_are_averaged_by_criterion_and_correlated_with_metrics(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    review = open_judgments(
        cup_runs, tmp_path / "review.sqlite", "rate", double_share=1.0
    )
    for name, moved in (("ada", 0), ("bob", 1)):
        reviewer = join(review, name)
        while items := review.queue(reviewer, 1):
            left, right = shown_runs(review, items[0].item)
            assert right is None
            ratings = {"target": 4 - left + moved, "boundary": 3}
            review.decide(reviewer, judge(items[0].item, "rated", ratings=ratings))
    results = review.results()
    targets = [run.ratings["target"].value for run in results.runs]
    assert targets == [4.5, 3.5, 2.5]
    assert [run.ratings["all"].value for run in results.runs] == [3.75, 3.25, 2.75]
    assert results.alpha["boundary"] is None
    # Values 4 - left and 5 - left: Do = 1, De = 2 * 144 / 143 * variance.
    values = [4 - left + moved for left in range(3) for moved in (0, 1)] * 24
    expected = 1 - (144 - 1) / 144 / (2 * np.var(values))
    assert results.alpha["target"] == pytest.approx(expected)
    giou = next(line for line in results.metrics if line.metric == "giou")
    assert giou.correlation == pytest.approx(1.0)
    assert giou.agreement is not None
    assert giou.agreement.value == 1.0
    assert results.left is None
    assert results.pairs == []


def test_a_single_run_can_be_rated_but_not_compared(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="name 2 runs or more"):
        open_judged_runs(cup_runs[:1], "compare")
    review = open_judgments(cup_runs[:1], tmp_path / "review.sqlite", "rate")
    ada = join(review, "ada")
    (item,) = review.queue(ada, 1)
    review.decide(ada, judge(item.item, "rated", ratings=RATINGS))
    assert review.results().runs[0].ratings["target"].value == 5


def test_equal_predictions_are_not_compared(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(cup_runs[0], copy)
    with pytest.raises(StoreError, match="predict the same everywhere"):
        open_judgments([cup_runs[0], copy], tmp_path / "review.sqlite")
    review = open_judgments([cup_runs[0], copy, cup_runs[1]], tmp_path / "three.sqlite")
    assert [run.identical for run in review.results().runs] == [24, 24, 0]
    assert review.count_open() == 48


def test_controls_measure_reviewers_on_whichever_side_they_are(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    lines = [{"sample": f"s{n}", "better": "good", "worse": "poor"} for n in range(8)]
    file = tmp_path / "controls.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    runs = open_judged_runs(cup_runs, "compare")
    controls = read_judgment_controls(file, runs)
    review = open_judgments(cup_runs, tmp_path / "review.sqlite", controls=controls)
    ada = join(review, "ada")
    bob = join(review, "bob")
    for reviewer, wanted in ((ada, min), (bob, max)):
        while items := review.queue(reviewer, 1):
            left, right = shown_runs(review, items[0].item)
            assert right is not None
            verdict = "left" if wanted(left, right) == left else "right"
            review.decide(reviewer, judge(items[0].item, verdict))
    accuracy = {
        person.name: person.controls.accuracy for person in review.stats().reviewers
    }
    assert accuracy == {"ada": 1.0, "bob": 0.0}
    assert review.results().judgments == 64


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sample": "s1", "better": "good"}, "better and worse"),
        ({"sample": "s1", "better": "good", "worse": "bad"}, "unknown run"),
        ({"sample": "s1", "better": "good", "worse": "good"}, "the same run"),
        ({"sample": "x", "better": "good", "worse": "poor"}, "no sample 'x'"),
    ],
)
def test_a_bad_control_names_its_line(
    cup_runs: list[Path], tmp_path: Path, line: Any, message: str
) -> None:
    file = tmp_path / "controls.jsonl"
    file.write_text("\n" + json.dumps(line))
    runs = open_judged_runs(cup_runs, "compare")
    with pytest.raises(RecordError, match=f"line 2: .*{message}"):
        read_judgment_controls(file, runs)


def test_known_ratings_are_right_within_a_step(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "controls.jsonl"
    file.write_text('{"sample": "s1", "run": "good", "ratings": {"target": 5}}')
    runs = open_judged_runs(cup_runs, "rate")
    controls = read_judgment_controls(file, runs)
    review = open_judgments(
        cup_runs, tmp_path / "review.sqlite", "rate", controls=controls, samples=1
    )
    for name, rating in (("ada", 4), ("bob", 3)):
        reviewer = join(review, name)
        while items := review.queue(reviewer, 1):
            ratings = {"target": rating, "boundary": 1}
            review.decide(reviewer, judge(items[0].item, "rated", ratings=ratings))
    accuracy = [person.controls.accuracy for person in review.stats().reviewers]
    assert accuracy == [1.0, 0.0]


def test_verdicts_are_exported_by_run_and_question(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    review = open_judgments(cup_runs[:2], tmp_path / "compared.sqlite", samples=1)
    ada = join(review, "ada")
    (item,) = review.queue(ada, 1)
    left, _ = shown_runs(review, item.item)
    review.decide(ada, judge(item.item, "left", criteria=["target"], note="sharper"))
    assert export_verdicts(review, tmp_path / "compared.jsonl") == 2
    lines = [
        json.loads(line)
        for line in (tmp_path / "compared.jsonl").read_text().splitlines()
    ]
    names = [RUNS[left], RUNS[1 - left]]
    assert [line["run"] for line in lines] == names
    assert [line["other"] for line in lines] == names[::-1]
    assert [line["better"] for line in lines] == ["this", "other"]
    assert {line["reason"] for line in lines} == {"sharper"}
    rated = open_judgments(cup_runs[:1], tmp_path / "rated.sqlite", "rate", samples=1)
    bob = join(rated, "bob")
    (item,) = rated.queue(bob, 1)
    rated.decide(bob, judge(item.item, "rated", ratings=RATINGS, seconds=9.0))
    assert export_verdicts(rated, tmp_path / "rated.jsonl") == 1
    # What `maskwise judge calibrate` reads.
    (read,) = read_people_verdicts(tmp_path / "rated.jsonl")
    assert (read.run, read.correct, read.grounded) == ("good", True, None)
    assert json.loads((tmp_path / "rated.jsonl").read_text()) == {
        "run": "good",
        "sample": item.sample.partition("/")[0],
        "reviewer": "bob",
        "correct": True,
        "ratings": RATINGS,
        "seconds": 9.0,
    }


def test_a_database_belongs_to_its_runs_and_mode(
    cup_runs: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "review.sqlite"
    open_judgments(cup_runs, file, "rate").database.close()
    assert stored_mode(ReviewDatabase(file)) == "rate"
    for paths, mode in ((cup_runs, "compare"), (cup_runs[:2], "rate")):
        with pytest.raises(StoreError, match="use another database"):
            open_judgments(paths, file, mode)  # type: ignore[arg-type]
    data = Dataset.open(cup_runs[0].parent / "data")
    with pytest.raises(StoreError, match="use another database"):
        Review(data, ReviewDatabase(file)).create()


def test_runs_on_other_datasets_are_refused(
    cup_runs: list[Path], tmp_path: Path, cups: Dataset
) -> None:
    (other,) = write_runs(tmp_path, cups, {"fair": 1})
    with pytest.raises(StoreError, match="same dataset"):
        open_judged_runs([cup_runs[0], other], "compare")
    with pytest.raises(StoreError, match="named twice"):
        open_judged_runs([cup_runs[0], cup_runs[0]], "compare")


def test_an_unknown_item_is_refused(cup_runs: list[Path], tmp_path: Path) -> None:
    review = open_judgments(cup_runs, tmp_path / "review.sqlite", samples=1)
    with pytest.raises(UnknownItemError, match="expected 0 to 2"):
        review.decide(join(review, "ada"), judge(3, "left"))


def test_a_review_of_an_earlier_version_gets_the_new_columns(
    cups: Dataset, database_url: str
) -> None:
    """Its tables have no columns for judgments, and no table of runs."""
    review = Review(cups, ReviewDatabase(database_url))
    review.create()
    ada = join(review, "ada")
    review.decide(ada, judge(review.queue(ada, 1)[0].item, "accept"))
    before = state(review)

    def age(connection: Any) -> None:
        connection.execute(text("DROP TABLE runs"))
        connection.execute(text("ALTER TABLE project DROP COLUMN mode"))
        for name in ("row", "left", "right", "added"):
            connection.execute(text(f'ALTER TABLE items DROP COLUMN "{name}"'))
        for name in ("ratings", "criteria"):
            connection.execute(text(f"ALTER TABLE decisions DROP COLUMN {name}"))

    review.database.write(age)
    review.database.close()
    again = Review(cups, ReviewDatabase(database_url))
    again.check_integrity()
    assert again.exists()
    assert state(again) == before
    again.decide(ada, judge(again.queue(ada, 1)[0].item, "accept"))
    again.database.close()


def test_rank_correlation_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    chance = np.random.default_rng(0)
    a = chance.integers(0, 6, 50).astype(np.float64)
    b = a + chance.normal(size=50)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    b[:5] = np.nan
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a[5:], b[5:]).statistic)
    assert spearman(a, np.full(50, 2.0)) is None
    assert spearman(a, np.full(50, np.nan)) is None

"""How a review begins: shares of double reviews, control items from a file, reviewers and their tokens."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from maskwise.errors import MaskwiseError, RecordError, StoreError, UnknownNameError
from maskwise.review import tables
from maskwise.review.database import ReviewDatabase
from maskwise.review.project import ProjectOptions, read_controls
from maskwise.review.review import Review
from maskwise.store import Dataset
from tests.review.datasets import box, write_samples


@pytest.fixture
def review(tmp_path: Path, cups: Dataset) -> Review:
    return Review(cups, ReviewDatabase(tmp_path / "review.sqlite"))


def needed(review: Review) -> list[int]:
    """How many reviews each item needs."""
    with review.database.read() as connection:
        rows = connection.execute(select(tables.items).order_by(tables.items.c.item))
        return [row.needed for row in rows]


@pytest.mark.parametrize(("share", "doubles"), [(0.0, 0), (1.0, 12)])
def test_the_share_of_double_reviews_decides_how_many_an_item_needs(
    review: Review, share: float, doubles: int
) -> None:
    review.create(ProjectOptions(double_share=share))
    assert needed(review).count(2) == doubles


def test_who_is_reviewed_twice_depends_on_the_sample_alone(
    review: Review, tmp_path: Path
) -> None:
    review.create(ProjectOptions(double_share=0.5))
    again = Review(review.dataset, ReviewDatabase(tmp_path / "again.sqlite"))
    again.create(ProjectOptions(double_share=0.5))
    assert needed(again) == needed(review)
    assert 0 < needed(review).count(2) < 12


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(MaskwiseError, match="must be 0 to 1"):
        ProjectOptions(double_share=share)


def test_a_dataset_without_samples_cannot_be_reviewed(tmp_path: Path) -> None:
    empty = write_samples(tmp_path / "empty", 0)
    review = Review(empty, ReviewDatabase(tmp_path / "review.sqlite"))
    with pytest.raises(StoreError, match="no samples to review"):
        review.create()


def test_a_review_exists_once_it_was_begun(review: Review) -> None:
    assert not review.exists()
    assert not Path(str(review.database.url.database)).exists(), "looking makes nothing"
    assert review.create()
    assert review.exists()
    assert not review.create()
    assert review.facts().samples == 12


@pytest.mark.parametrize("name", ["", "a b", "<b>", "-x", "é", "a" * 41])
def test_names_of_reviewers_are_plain_pseudonyms(review: Review, name: str) -> None:
    review.create()
    with pytest.raises(MaskwiseError, match="pseudonym"):
        review.add_reviewer(name)


def test_a_reviewer_keeps_the_role(review: Review) -> None:
    review.create()
    review.add_reviewer("ada")
    with pytest.raises(MaskwiseError, match="registered as reviewer"):
        review.add_reviewer("ada", "owner")
    with pytest.raises(UnknownNameError, match="role"):
        review.add_reviewer("bob", "king")  # type: ignore[arg-type]


def test_reviewers_are_added_together_or_not_at_all(review: Review) -> None:
    review.create()
    with pytest.raises(MaskwiseError, match="pseudonym"):
        review.add_reviewers({"ada": "reviewer", "b b": "reviewer"})
    assert review.reviewers() == {}
    tokens = review.add_reviewers({"ada": "reviewer", "eve": "adjudicator"})
    assert review.reviewers() == {"ada": "reviewer", "eve": "adjudicator"}
    assert len(set(tokens.values())) == 2


def write_controls(path: Path, *lines: Any) -> Path:
    path.write_text("\n\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_control_items_are_read_with_the_sample_they_correct(
    tmp_path: Path, cups: Dataset
) -> None:
    mask = box(2, 2, 5, 6)
    edit = {
        "targets": [{"id": "cup", "amodal": {"size": mask.size, "counts": mask.counts}}]
    }
    path = write_controls(
        tmp_path / "controls.jsonl",
        {"sample": "s1", "verdict": "accept"},
        {"sample": "s2", "verdict": "reject", "reason": "ambiguous"},
        {"sample": "s3", "verdict": "fix", "edit": edit},
    )
    answers = read_controls(path, cups)
    assert [answer.verdict for answer in answers.values()] == [
        "accept",
        "reject",
        "fix",
    ]
    fixed = answers["s3"].edit
    assert fixed is not None
    assert (fixed.question, fixed.targets[0].amodal) == (cups[3].question, mask)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sample": "s1", "verdict": "skip"}, "must be accept, fix or reject"),
        ({"sample": "s1", "verdict": "fix"}, "needs an edit"),
        ({"sample": "s1", "verdict": "accept", "edit": {}}, "takes one"),
        ({"sample": "s1"}, "verdict"),
        ({"sample": "s1", "verdict": "accept", "more": 1}, "more"),
        ({"sample": "unknown", "verdict": "accept"}, "unknown"),
    ],
)
def test_an_invalid_control_is_named_by_its_line(
    tmp_path: Path, cups: Dataset, line: Any, message: str
) -> None:
    first = {"sample": "s0", "verdict": "accept"}
    path = write_controls(tmp_path / "controls.jsonl", first, line)
    with pytest.raises(RecordError, match=f"controls.jsonl, line 3: .*{message}"):
        read_controls(path, cups)


def test_a_missing_file_of_controls_is_named(tmp_path: Path, cups: Dataset) -> None:
    with pytest.raises(StoreError, match=r"missing.jsonl cannot be read"):
        read_controls(tmp_path / "missing.jsonl", cups)

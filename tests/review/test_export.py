"""Export of a review: what is written, who decided what, shared regions, and formats that give the same masks."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from maskwise.builder.release.diff import diff_datasets
from maskwise.errors import StoreError
from maskwise.formats import find_format
from maskwise.formats.format_reader import convert_annotations
from maskwise.formats.format_writer import write_dataset
from maskwise.report.dataset_validation import validate_dataset
from maskwise.review.database import ReviewDatabase
from maskwise.review.export import export_review, read_provenance
from maskwise.review.labelstudio import import_labelstudio, write_labelstudio
from maskwise.review.project import ProjectOptions
from maskwise.review.queue import Reviewer
from maskwise.review.records import ControlAnswer, NewDecision
from maskwise.review.review import Review
from maskwise.store import Dataset
from tests.review.datasets import box, write_samples

WIDE = box(2, 2, 5, 6)


@pytest.fixture
def review(tmp_path: Path) -> Review:
    review = Review(
        write_samples(tmp_path / "data", 8, flagged=(1,)),
        ReviewDatabase(tmp_path / "review.sqlite"),
    )
    review.create(ProjectOptions(controls={"s7": ControlAnswer(verdict="reject")}))
    review.add_reviewer("ada")
    return review


ADA = Reviewer("ada", "reviewer")


def decide(review: Review, item: int, verdict: str = "accept", **fields: Any) -> None:
    values = {"id": str(uuid4()), "item": item, "verdict": verdict} | fields
    review.decide(ADA, msgspec.convert(values, NewDecision))


def fix(review: Review, item: int, **target: Any) -> None:
    decide(review, item, "fix", edit={"targets": [{"id": "cup"} | target]})


def test_accepted_and_fixed_samples_are_written_with_their_provenance(
    review: Review, tmp_path: Path
) -> None:
    decide(review, 1)
    decide(review, 2, "reject", reason="ambiguous", note="two cups")
    decide(
        review, 5, "fix", edit={"question": "What holds tea?", "mask_type": "amodal"}
    )
    summary = export_review(review, tmp_path / "out")
    assert (summary.written, summary.images) == (2, 2)
    assert summary.statuses == {"accepted": 1, "fixed": 1, "rejected": 2, "open": 4}
    exported = Dataset.open(tmp_path / "out")
    assert not validate_dataset(exported).errors
    kept, fixed = exported
    assert kept.tags == {"review": "accepted", "reviewed_by": "ada"}
    assert (fixed.question, fixed.mask_type) == ("What holds tea?", "amodal")
    assert exported.open_image(fixed.image_id) == review.dataset.open_image(
        fixed.image_id
    )
    lines = {line.sample: line for line in read_provenance(tmp_path / "out")}
    assert len(lines) == 8
    assert lines["s2"].decisions[0].note == "two cups"
    assert lines["s5"].decided_by == "review"
    assert (lines["s7"].status, lines["s7"].decided_by) == ("rejected", "control")
    assert lines["s3"].status == "open"


def test_nothing_accepted_is_an_error(review: Review, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing to export"):
        export_review(review, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_edited_mask_replaces_the_original_where_all_samples_use_it(
    review: Review, tmp_path: Path
) -> None:
    fix(review, 0, amodal=WIDE)
    fix(review, 1, amodal=WIDE)
    export_review(review, tmp_path / "out")
    exported = Dataset.open(tmp_path / "out")
    assert [region.id for region in exported.regions_of("image-0")] == ["cup", "table"]
    assert all(sample.targets[0].amodal == WIDE for sample in exported)


def test_a_corrected_mask_is_an_edit_of_the_region(
    review: Review, tmp_path: Path
) -> None:
    """Another sample was accepted with the mask as it was; the region keeps its id, and `diff` shows an edit."""
    fix(review, 0, amodal=WIDE)
    decide(review, 1)
    export_review(review, tmp_path / "out")
    exported = Dataset.open(tmp_path / "out")
    assert {region.id for region in exported.regions_of("image-0")} == {"cup", "table"}
    assert [sample.targets[0].amodal for sample in exported] == [WIDE, WIDE]
    difference = diff_datasets(review.dataset, exported)
    assert difference.regions.added == []
    assert [(change.region, change.kind) for change in difference.masks] == [
        ("cup", "amodal")
    ]
    assert "targets" not in difference.samples.fields


def test_masks_corrected_in_two_ways_become_two_regions(
    review: Review, tmp_path: Path
) -> None:
    fix(review, 0, amodal=WIDE)
    fix(review, 1, amodal=box(2, 2, 6, 6))
    export_review(review, tmp_path / "out")
    exported = Dataset.open(tmp_path / "out")
    assert [sample.targets[0].id for sample in exported] == ["cup", "cup~2"]
    assert read_provenance(tmp_path / "out")[1].renamed == {"cup": "cup~2"}


def test_lineage_has_the_origin_and_the_agreement(
    review: Review, tmp_path: Path
) -> None:
    line = {"sample": "s1", "writer": "grammar", "seed": 3}
    (review.dataset.path / "provenance.jsonl").write_text(json.dumps(line) + "\n")
    decide(review, 1)
    export_review(review, tmp_path / "out")
    origins = {line.sample: line.origin for line in read_provenance(tmp_path / "out")}
    assert origins["s1"] == line
    assert origins["s0"] == {}
    about = Dataset.open(tmp_path / "out").manifest.about
    assert about["review_agreement"] == "no sample was reviewed twice"


def test_targets_can_be_added_and_drawn_anew(review: Review, tmp_path: Path) -> None:
    targets = [
        {"id": "cup"},
        {"id": "table"},
        {"id": "new", "name": "spoon", "visible": box(9, 1, 2, 2)},
    ]
    decide(review, 0, "fix", edit={"targets": targets})
    export_review(review, tmp_path / "out")
    sample = Dataset.open(tmp_path / "out")[0]
    assert [region.name for region in sample.targets] == ["cup", "table", "spoon"]
    assert sample.targets[2].visible == box(9, 1, 2, 2)


@pytest.mark.parametrize("format", ["coco", "labelstudio"])
def test_masks_round_trip_byte_for_byte(
    review: Review, tmp_path: Path, format: str
) -> None:
    fix(review, 0, amodal=WIDE, visible=box(3, 3, 2, 2))
    decide(review, 1)
    export_review(review, tmp_path / "out")
    exported = Dataset.open(tmp_path / "out")
    write_dataset(exported, format, tmp_path / format)
    convert_annotations(find_format(format), tmp_path / format, tmp_path / "again")
    again = Dataset.open(tmp_path / "again")
    for one, two in zip(exported, again, strict=True):
        assert (one.question, one.answer, one.tags, one.targets) == (
            two.question,
            two.answer,
            two.tags,
            two.targets,
        )
        assert [region.amodal.counts for region in one.targets if region.amodal] == [
            region.amodal.counts for region in two.targets if region.amodal
        ]


def test_decisions_come_from_label_studio(review: Review, tmp_path: Path) -> None:
    assert write_labelstudio(review, tmp_path / "tasks") == 7
    # What Label Studio exports: the first task was edited, the second was not touched.
    tasks = json.loads((tmp_path / "tasks" / "tasks.json").read_text())
    wider = Review(
        write_samples(tmp_path / "other", 8), ReviewDatabase(tmp_path / "other.sqlite")
    )
    wider.create()
    wider.add_reviewer("ada")
    fix(wider, 0, amodal=WIDE)
    export_review(wider, tmp_path / "wide")
    write_dataset(
        Dataset.open(tmp_path / "wide"), "labelstudio", tmp_path / "wide_tasks"
    )
    edited = json.loads((tmp_path / "wide_tasks" / "tasks.json").read_text())[0][
        "annotations"
    ][0]["result"]
    brush = next(one["value"] for one in edited if one["id"].startswith("amodal"))
    result = tasks[0]["annotations"][0]
    next(one for one in result["result"] if one["id"].startswith("amodal"))["value"] = (
        brush
    )
    result["lead_time"] = 12.5
    exported = tmp_path / "project-1.json"
    exported.write_text(json.dumps(tasks))
    counts = import_labelstudio(review, exported, ADA)
    assert {name: count for name, count in counts.items() if count} == {
        "fix": 4,
        "untouched": 3,
    }
    assert import_labelstudio(review, exported, ADA)["conflict"] == 0
    assert review.count_decisions(ADA) == 4
    export_review(review, tmp_path / "out")
    assert Dataset.open(tmp_path / "out")[0].targets[0].amodal == WIDE


def test_an_untouched_mask_of_a_task_that_was_worked_on_is_accepted(
    review: Review, tmp_path: Path
) -> None:
    write_labelstudio(review, tmp_path / "tasks")
    tasks = json.loads((tmp_path / "tasks" / "tasks.json").read_text())
    tasks[1]["annotations"][0]["lead_time"] = 3
    exported = tmp_path / "project-1.json"
    exported.write_text(json.dumps(tasks))
    counts = import_labelstudio(review, exported, ADA)
    assert (counts["accept"], counts["untouched"]) == (3, 4)

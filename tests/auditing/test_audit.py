"""Audits: each kind of doubt by hand, planted errors found before others, and the way through review to new scores."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pytest

from bench.audit import Recall, measure, print_table
from bench.planted_errors import CHANGES
from maskwise.auditing.audit import audit, audit_dataset
from maskwise.auditing.doubts import CHECKS, read_audit
from maskwise.datasets import load_dataset
from maskwise.errors import ProtocolError, StoreError, UnknownNameError
from maskwise.harness.rescore import rescore
from maskwise.masks import Mask
from maskwise.protocols import GroundTruth, PredictionColumns
from maskwise.review.database import ReviewDatabase
from maskwise.review.export import export_review
from maskwise.review.project import ProjectOptions
from maskwise.review.queue import Reviewer
from maskwise.review.records import NewDecision
from maskwise.review.review import Review
from maskwise.schema import (
    Answer,
    ImageInfo,
    Phrase,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.store import Dataset, DatasetWriter
from tests.report.pages import Page
from tests.report.runs import make_predictions, make_run, png
from tests.report.test_commands import run as run_command
from tests.report.test_page import check_offline

SIZE = 48
WHOLE = (10, 10, 30, 30)
"""Left, top, right, bottom of the object in all images."""


def box(left: int, top: int, right: int, bottom: int) -> Mask:
    plane = np.zeros((SIZE, SIZE), bool)
    plane[top:bottom, left:right] = True
    return Mask.from_dense(plane)


def cup(number: int, **fields: Any) -> Region:
    values = {"visible": box(10, 10, 30, 20), "amodal": box(*WHOLE)} | fields
    return Region(**{"id": f"r{number}", "name": "cup", **values})


def sample_of(number: int, region: Region | None = None, **fields: Any) -> Sample:
    values: dict[str, Any] = {
        "question": f"Where is cup number {number}?",
        "targets": (region or cup(number),),
        "answer": Answer(
            text="It is the cup.", phrases=(Phrase(start=6, stop=13, regions=(0,)),)
        ),
    }
    return Sample(id=f"s{number}", image_id=f"p{number // 2}", **(values | fields))


def write(folder: Path, changed: dict[int, Sample] | None = None) -> Dataset:
    """Twenty questions about ten images, of which some are given."""
    with DatasetWriter(folder, name="cups") as writer:
        for number in range(20):
            if number % 2 == 0:
                image = ImageInfo(id=f"p{number // 2}", width=SIZE, height=SIZE)
                writer.add_image(image, data=png(number))
            writer.add_sample((changed or {}).get(number) or sample_of(number))
    return Dataset.open(folder)


def test_a_clean_dataset_has_no_doubts(tmp_path: Path) -> None:
    assert audit(write(tmp_path / "data")).doubtful == []


@pytest.mark.parametrize(
    ("check", "changed"),
    [
        ("outside", sample_of(4, cup(4, visible=box(25, 10, 40, 20)))),
        ("sliver", sample_of(4, cup(4, amodal=box(*WHOLE) | box(45, 45, 46, 46)))),
        ("sliver", sample_of(4, cup(4, visible=box(10, 10, 30, 11)))),
        ("empty", sample_of(4, cup(4, visible=Mask.empty(SIZE, SIZE)))),
        ("empty", sample_of(4, cup(4, visible=box(10, 10, 12, 12)))),
        ("duplicate", sample_of(4, cup(5), question="where is cup NUMBER 5")),
        ("contradiction", sample_of(4, question="Where is cup number 5?")),
        (
            "mask_type",
            sample_of(4, question="Segment the whole cup, hidden parts included."),
        ),
        ("names", sample_of(4, cup(4, name="giraffe"))),
    ],
)
def test_each_check_doubts_what_is_wrong(
    tmp_path: Path, check: str, changed: Sample
) -> None:
    result = audit(write(tmp_path / "data", {4: changed}))
    assert {item.sample for item in result.doubtful} <= {"s4", "s5"}
    (item,) = [item for item in result.doubtful if item.sample == "s4"]
    assert [doubt.check for doubt in item.doubts] == [check]
    assert 0 < item.strength <= 1
    assert result.checks[check].samples == len(result.doubtful)


def test_specks_that_an_occluder_leaves_are_no_doubt(tmp_path: Path) -> None:
    seen = box(10, 10, 30, 20) | box(29, 29, 30, 30)
    assert not audit(
        write(tmp_path / "data", {4: sample_of(4, cup(4, visible=seen))})
    ).doubtful


def test_a_check_that_doubts_everything_weighs_nothing(tmp_path: Path) -> None:
    renamed = {
        number: sample_of(number, cup(number, name="giraffe")) for number in range(20)
    }
    thin = sample_of(4, cup(4, name="giraffe", visible=box(10, 10, 30, 11)))
    result = audit(write(tmp_path / "data", renamed | {4: thin}))
    assert result.doubtful[0].sample == "s4"
    assert result.doubtful[0].doubts[0].check == "sliver"
    assert result.checks["names"].weight == pytest.approx(0.2)


def predict(dataset: Dataset, mask: Callable[[Sample], Mask]) -> PredictionColumns:
    truth = GroundTruth.from_dataset(dataset)
    records = [
        Prediction(sample=item.id, regions=(PredictedRegion(visible=mask(item)),))
        for item in dataset
    ]
    return PredictionColumns.from_predictions(truth, records)


def test_runs_that_agree_doubt_the_truth(tmp_path: Path) -> None:
    """The truth of s4 is elsewhere, that of s6 too large; one run of three is wrong everywhere."""
    elsewhere = cup(4, visible=box(30, 30, 45, 45), amodal=box(30, 30, 45, 45))
    large = cup(6, visible=box(8, 8, 32, 22), amodal=box(8, 8, 32, 32))
    changed = {4: sample_of(4, elsewhere), 6: sample_of(6, large)}
    dataset = write(tmp_path / "data", changed)
    runs = [
        predict(dataset, lambda item: box(10, 10, 30, 20)),
        predict(dataset, lambda item: box(10, 10, 31, 20)),
        predict(dataset, lambda item: box(0, 40, 5, 45)),
    ]
    result = audit_dataset(dataset, runs)
    assert result.answered == len(dataset)
    checks = {item.sample: item.doubts[0].check for item in result.doubtful}
    assert checks["s4"] == "runs_agree"
    assert checks["s6"] == "boundary"
    assert {item.sample for item in result.doubtful[:2]} == {"s4", "s6"}
    assert all(item.strength < 0.3 for item in result.doubtful[2:])


def test_an_audit_says_how_many_samples_all_runs_answered(tmp_path: Path) -> None:
    dataset = write(tmp_path / "data")
    truth = GroundTruth.from_dataset(dataset)
    records = [
        Prediction(sample=item.id, regions=(PredictedRegion(visible=box(*WHOLE)),))
        for item in dataset
    ]
    some = PredictionColumns.from_predictions(truth, records[:5])
    every = PredictionColumns.from_predictions(truth, records)
    result = audit_dataset(dataset, [some, every], run_names=["a", "b"])
    assert result.answered == 5
    assert result.coverage.endswith(
        f"all of them answered 5 of {len(dataset)} samples."
    )
    assert audit_dataset(dataset).coverage == ""


def test_one_run_is_not_asked() -> None:
    with pytest.raises(ProtocolError, match="two runs or none"):
        audit("world", runs=["runs/a"])


def test_planted_errors_are_found_before_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Recall among as many samples as errors were planted; random order finds a tenth."""
    recalls, random = measure(load_dataset("world"), share=0.1, seed=1)
    assert random == pytest.approx(0.1)
    assert [recall.kind for recall in recalls] == list(CHANGES) == list(CHECKS)
    assert share_of(recalls, with_runs=False) > 0.5
    assert share_of(recalls, with_runs=True) > 0.6
    print_table(recalls, random)
    assert "| all | 24 |" in capsys.readouterr().out


def share_of(recalls: list[Recall], *, with_runs: bool) -> float:
    at_k = [
        recall.with_runs[0] if with_runs else recall.by_rules[0] for recall in recalls
    ]
    return sum(at_k) / sum(recall.planted for recall in recalls)


# -- the commands, review, and new scores

ADA = Reviewer("ada", "reviewer")


def test_the_command_writes_a_list_a_page_and_a_table(tmp_path: Path) -> None:
    write(tmp_path / "data", {4: sample_of(4, cup(4, name="<b>giraffe</b>"))})
    done = run_command("audit", tmp_path / "data", "--out", tmp_path / "audit.json")
    assert done.exit_code == 0, done.output
    assert "1 of 20 samples are doubtful (1 names)" in done.stdout
    assert read_audit(tmp_path / "audit.json").doubtful[0].sample == "s4"
    run_command("audit", tmp_path / "data", "--out", tmp_path / "audit.html")
    source = (tmp_path / "audit.html").read_text(encoding="utf-8")
    check_offline(source)
    assert len(Page(source).find("article")) == 1
    assert "giraffe" in Page(source).find("p", "note")[0].text
    run_command("audit", tmp_path / "data", "--out", tmp_path / "audit.md")
    assert "giraffe" in (tmp_path / "audit.md").read_text()


def test_runs_are_given_on_the_command_line(tmp_path: Path) -> None:
    data = write(tmp_path / "data").path
    for name, shift in (("a", 0), ("b", 1)):
        path = make_predictions(tmp_path / f"{name}.jsonl", data, shift=shift)
        make_run(tmp_path / name, data, path)
    arguments = ("--runs", tmp_path / "a", "--runs", tmp_path / "b")
    done = run_command(
        "audit", data, *arguments, "--json", "--out", tmp_path / "x.html"
    )
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["runs"]) == 2
    assert len(Page((tmp_path / "x.html").read_text()).find("figure")) >= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "audit.csv"), "expected .json, .html or .md"),
        (("--corrected", "x", "--out", "y.json"), "leave out --runs and --out"),
        (("--db", "x"), "--db is for --corrected"),
        (("--corrected", "x"), "has no review"),
    ],
)
def test_audit_says_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "data")
    done = run_command("audit", tmp_path / "data", *arguments)
    assert message in str(done.exception)


def test_another_file_is_no_audit(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"format": "other"}')
    with pytest.raises(StoreError, match="is not an audit"):
        read_audit(tmp_path / "x.json")


def test_people_correct_the_dataset_and_runs_are_scored_again(tmp_path: Path) -> None:
    """s4 has a wrong mask, s8 a wrong name: one is fixed, the other rejected, and nothing else changes."""
    wrong = cup(4, visible=box(30, 30, 45, 45), amodal=box(30, 30, 45, 45))
    changed = {4: sample_of(4, wrong), 8: sample_of(8, cup(8, name="giraffe"))}
    dataset = write(tmp_path / "data", changed)
    right = write(tmp_path / "right").path
    path = make_predictions(tmp_path / "p.jsonl", right, shift=0)
    run = make_run(tmp_path / "run", dataset.path, path)
    review = Review(dataset, ReviewDatabase(tmp_path / "data.review.sqlite"))
    review.create(ProjectOptions(first={"s8": ["a wrong name"], "s4": []}))
    review.add_reviewer("ada")
    items = review.queue(ADA, 3)
    assert [item.sample for item in items] == ["s8", "s4", "s0"]
    assert [item.doubts for item in items] == [["a wrong name"], [], []]
    decide(review, 8, "reject", reason="wrong-target")
    with pytest.raises(StoreError, match="accepted or fixed"):
        export_review(review, tmp_path / "accepted")
    fixed = {"id": "r4", "visible": box(10, 10, 30, 20), "amodal": box(*WHOLE)}
    decide(review, 4, "fix", edit=msgspec.to_builtins({"targets": [fixed]}))
    review.database.close()
    done = run_command("audit", dataset.path, "--corrected", tmp_path / "corrected")
    assert done.exit_code == 0, done.output
    corrected = Dataset.open(tmp_path / "corrected")
    assert len(corrected) == 19
    assert corrected.sample("s4").targets[0].amodal == box(*WHOLE)
    assert corrected.sample("s0").targets == dataset.sample("s0").targets
    result = rescore(run, corrected)
    assert (result.removed, result.added, result.changed) == (1, 0, 1)
    (rescored,) = result.runs
    assert rescored.after.value > rescored.before.value
    # One of the 19 questions that are left gains.
    assert rescored.change.difference == pytest.approx(
        (rescored.after.value * 19 - rescored.change.a * 19) / 19
    )
    done = run_command(
        "rescore", run.folder, corrected.path, "--out", tmp_path / "x.md"
    )
    assert done.exit_code == 0, done.output
    assert "1 were removed, 1 changed" in " ".join(done.stdout.split())
    assert "| run | before |" in (tmp_path / "x.md").read_text()
    done = run_command("rescore", run.folder, corrected.path, "--json")
    assert json.loads(done.stdout)["format"] == "maskwise rescoring 1"


def decide(review: Review, item: int, verdict: str, **fields: Any) -> None:
    values = {"id": str(uuid4()), "item": item, "verdict": verdict} | fields
    review.decide(ADA, msgspec.convert(values, NewDecision))


def test_rescoring_needs_a_version_of_the_same_dataset(
    tmp_path: Path, toy: Path
) -> None:
    other = write(tmp_path / "data")
    renamed = tmp_path / "renamed"
    with DatasetWriter(renamed, name="other") as writer:
        image = other.image("p0")
        writer.add_image(image, data=png(0))
        sample = msgspec.structs.replace(other.sample("s0"), id="another")
        writer.add_sample(sample)
    with pytest.raises(StoreError, match="none of the 23 predictions"):
        rescore(toy / "far", renamed)
    done = run_command("rescore", toy / "far", renamed, "--out", "x.html")
    assert "expected .md or .json" in str(done.exception)


def test_a_protocol_that_a_run_names_is_not_imported(
    tmp_path: Path, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scores of a run are data; a module that they name is not run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "foreign_rule.py").write_text("open('owned', 'w')")
    folder = shutil.copytree(toy / "far", tmp_path / "run")
    scores = json.loads((folder / "scores.json").read_text())
    rules = scores["protocols"]
    scores["protocols"] = {"foreign_rule:": rules["strict"]}
    (folder / "scores.json").write_text(json.dumps(scores))
    with pytest.raises(UnknownNameError, match="foreign_rule"):
        rescore(folder, toy / "data")
    assert not (tmp_path / "owned").exists()

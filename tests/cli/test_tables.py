"""Tables of commands: numbers as a reader expects them, and texts that cannot harm the terminal."""

from typing import Any

import pytest

from maskwise.cli.dataset_tables import print_stats, print_validation
from maskwise.cli.dry_run_table import print_dry_run
from maskwise.cli.output import print_json
from maskwise.cli.review_table import print_review_stats
from maskwise.progress_bars import make_progress
from maskwise.report.dataset_validation import DatasetCheck, Finding

ESCAPE = "\x1b[2J"


def reviewer(**changes: Any) -> dict[str, Any]:
    fields = {
        "name": "ada",
        "role": "reviewer",
        "decisions": 12,
        "accept": 9,
        "fix": 1,
        "reject": 2,
        "skip": 0,
        "seconds_median": 4.26,
        "controls": {"accuracy": None},
    }
    return fields | changes


def review_stats(**changes: Any) -> dict[str, Any]:
    agreement = {"items": 0, "equal": 0, "alpha": None, "mask_iou": None, "pairs": []}
    fields: dict[str, Any] = {
        "progress": {"open": 3, "decided": 12},
        "reviewers": [reviewer()],
        "agreement": agreement,
        "reasons": [],
    }
    return fields | changes


def test_review_status_has_a_row_per_reviewer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_review_stats(review_stats())
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "3 open, 12 decided"
    assert lines[1].split()[:3] == ["reviewer", "role", "decided"]
    row = ["ada", "reviewer", "12", "9", "1", "2", "0", "4.26", "-"]
    assert lines[2].split() == row
    assert "agreement" not in said


def test_review_status_shows_agreement_only_with_double_reviews(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair = {"a": "ada", "b": "bob", "equal": 3, "items": 4, "kappa": 0.5}
    agreement = {
        "items": 4,
        "equal": 3,
        "alpha": 0.51234,
        "mask_iou": None,
        "pairs": [pair],
    }
    reasons = [{"code": "wrong mask", "count": 2}]
    print_review_stats(review_stats(agreement=agreement, reasons=reasons))
    said = " ".join(capsys.readouterr().out.split())
    assert "4 double reviews: 3 equal" in said
    assert "alpha 0.512, mask IoU -" in said
    assert "ada and bob: 3 of 4 equal, Cohen's kappa 0.5" in said
    assert "rejected as wrong mask: 2" in said


def test_a_valid_dataset_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_validation(DatasetCheck("data", []))
    assert capsys.readouterr().out == "data: valid, 0 errors, 0 warnings\n"


def test_findings_are_grouped_and_cut(capsys: pytest.CaptureFixture[str]) -> None:
    findings = [
        Finding("warning", "visible outside amodal", f"region {number}", "3 pixels")
        for number in range(12)
    ]
    findings.append(Finding("error", "duplicate id", f"sample {ESCAPE}", "twice"))
    print_validation(DatasetCheck("data", findings))
    said = capsys.readouterr().out
    assert "warning: visible outside amodal (12)" in said
    assert "and 2 more (--json lists all)" in said
    assert "error: duplicate id (1)" in said
    assert "data: not valid, 1 errors, 12 warnings" in said
    assert "\x1b[2J" not in said


def test_stats_leave_out_empty_sections(capsys: pytest.CaptureFixture[str]) -> None:
    stats = {
        "name": "data",
        "counts": {"images": 1200, "questions": 2},
        "targets_per_question": {"1": 2},
        "mask_types": {},
        "occlusion": {},
        "region_sizes": {},
        "image_sizes": {"640 x 480": 1200},
        "category_count": 1,
        "categories": {"cup": 2},
        "tags": {"split": {"val": 2}},
        "about": {"license": "CC-BY-4.0"},
    }
    print_stats(stats)
    said = capsys.readouterr().out
    assert "1,200" in said
    assert "names (1)" in said
    assert "tag split" in said
    assert "CC-BY-4.0" in said
    assert "mask type asked for" not in said


def test_json_is_indented_and_escapes_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"name": f"é{ESCAPE}", "values": [1, None]})
    said = capsys.readouterr().out
    assert said.startswith('{\n  "name": "é')
    assert "\x1b" not in said


@pytest.mark.parametrize(("forced", "quiet"), [(False, False), (True, True)])
def test_progress_is_silent_in_logs_and_on_request(
    forced: bool,
    quiet: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if forced:
        monkeypatch.setenv("FORCE_COLOR", "1")
    with make_progress(quiet=quiet) as progress:
        task = progress.add_task("images", total=2)
        progress.advance(task)
    output = capsys.readouterr()
    assert output.out == output.err == ""


def test_progress_is_shown_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with make_progress() as progress:
        task = progress.add_task("images", total=2)
        progress.advance(task, 2)
    output = capsys.readouterr()
    assert output.out == ""
    assert "images" in output.err
    assert "2/2" in output.err


def test_a_dry_run_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from maskwise.training.trainers import trainer_of_config  # noqa: PLC0415
    from tests.cli.test_train import TINY_CONFIG  # noqa: PLC0415

    trainer = trainer_of_config(TINY_CONFIG)
    plan = trainer.dry_run(trainer.read_config(TINY_CONFIG))
    print_dry_run(plan)
    said = capsys.readouterr().out
    total = sum(count.trainable for count in plan.parameters)
    assert f"{total:,}" in said
    for title in ("parameters", "stages", "sources", "memory"):
        assert title in said

"""`maskwise judge` as a user gives it, and what reports show of it."""

import json
import os
from pathlib import Path

import pytest

from maskwise.runs import load_run
from tests.cli.commands import fail, run
from tests.judging.cases import HOSTILE, make_run
from tests.judging.test_calibration import people, write
from tests.judging.test_language_model import verdict
from tests.writers.providers import Provider


def test_judge_calibrate_and_report(run_folder: Path, tmp_path: Path) -> None:
    text = run("judge", run_folder).stdout
    assert "Correct" in text
    assert "36 settled by words, 12 doubtful" in text
    assert "judgments-offline.json" in text
    page = (run_folder / "report.html").read_text()
    assert "Answers, judged" in page
    assert "Not measured by people" in page
    path = write(tmp_path / "v.jsonl", people(a3=True))
    text = run("judge", "calibrate", run_folder, "--verdicts", path).stdout
    assert "48 answers that 1 person judged" in text
    page = (run_folder / "report.html").read_text()
    assert "measured by people" in page
    markdown = run("report", run_folder).stdout
    assert "## Answers, judged by offline" in markdown
    assert "| Correct | 50.0 |" in markdown
    run("report", run_folder, "--out", tmp_path / "report.json")
    summary = json.loads((tmp_path / "report.json").read_text())
    assert summary["judgments"][0]["shares"]["correct"]["value"] == 0.5


def test_json(run_folder: Path) -> None:
    printed = json.loads(run("judge", run_folder, "--json").stdout)
    assert printed["judged"] == 48
    assert printed["shares"]["complete"]["value"] == 0.5
    assert "verdicts" not in printed


def test_a_model_pairs_and_a_dry_run(
    run_folder: Path,
    judged_dataset: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    provider.write = lambda given: verdict(reason=HOSTILE)
    model = ("--judge", "openai/scripted", "--base-url", f"{provider.url}/v1")
    dry = run("judge", run_folder, *model, "--dry-run").stdout
    assert "48 questions, 12 calls" in dry
    assert "Nothing was sent" in dry
    assert not provider.calls
    text = run("judge", run_folder, *model).stdout
    assert "12 asked of the model" in text
    assert "price unknown" in text
    assert "\x1b[2J" not in text
    page = (run_folder / "report.html").read_text()
    assert "<script>alert" not in page
    assert "prompt " in page
    other = make_run(run_folder.with_name("theirs"), judged_dataset, ("a thing",) * 4)
    provider.write = lambda given: {
        "text": json.dumps({"reason": HOSTILE, "better": "first"})
    }
    text = run("judge", run_folder, "--pairwise", other, *model).stdout
    assert "tied" in text
    assert "changed when the answers were swapped" in text
    assert "Against other runs" in (run_folder / "report.html").read_text()


def test_hostile_answers_are_escaped_everywhere(
    tmp_path: Path, judged_dataset: Path
) -> None:
    folder = make_run(tmp_path / "run", judged_dataset, (HOSTILE,) * 4)
    text = run("judge", folder).stdout
    page = (folder / "report.html").read_text()
    markdown = run("report", folder).stdout
    for shown in (text, page, markdown):
        assert "\x1b" not in shown
        assert "<script>alert(1)" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "openai"], "needs a model: --judge openai/MODEL"),
        (["--judge", "opnai/gpt"], "openai/MODEL"),
        (["--judge", "offlin"], "offline"),
        (["--dry-run"], "this judge costs nothing"),
        (["--judge", "openai/no-such-model"], "no price is known"),
    ],
)
def test_mistakes_are_named(
    run_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert message in fail(capsys, monkeypatch, "judge", run_folder, *arguments)


def test_damaged_verdicts_do_not_stop_a_report(
    run_folder: Path, tmp_path: Path
) -> None:
    run("judge", run_folder)
    (run_folder / "judgments-offline.json").write_text(
        '{"format": "maskwise judgments 1"'
    )
    page = load_run(run_folder).report(tmp_path / "page.html").read_text()
    assert "Verdicts cannot be shown" in page
    assert os.fspath(run_folder) in page

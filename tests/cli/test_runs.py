"""`maskwise report`, `compare` and `leaderboard` on runs of `maskwise eval`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from tests.cli.commands import fail, run


def test_report_finds_a_moved_dataset_by_its_argument(
    scenes: Path, oracle_run: Path, tmp_path: Path
) -> None:
    """The gallery needs the dataset; everything else is in the run."""
    moved = tmp_path / "moved"
    scenes.rename(moved)
    try:
        page = tmp_path / "report.html"
        run("report", oracle_run, "--out", page)
        assert "<article" not in page.read_text(encoding="utf-8")
        run("report", oracle_run, moved, "--out", page)
        assert "<article" in page.read_text(encoding="utf-8")
    finally:
        moved.rename(scenes)


def test_report_shows_no_samples_of_another_dataset(
    oracle_run: Path, tmp_path: Path
) -> None:
    run("world", "--scenes", 1, "--seed", 1, "--out", tmp_path / "other")
    page = tmp_path / "report.html"
    run("report", oracle_run, tmp_path / "other", "--out", page)
    text = page.read_text(encoding="utf-8")
    assert "is not what was scored" in text
    assert "maskwise report RUN DATASET" in text
    assert "<article" not in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [("report.html", "<html"), ("report.md", "# "), ("report.json", '"dataset"')],
)
def test_the_name_of_the_file_decides_the_format(
    name: str, expected: str, oracle_run: Path, tmp_path: Path
) -> None:
    result = run("report", oracle_run, "--out", tmp_path / "new" / name)
    assert expected in (tmp_path / "new" / name).read_text(encoding="utf-8")
    assert "MB" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--out", "report.pdf"), "expected .html, .md or .json"),
        (("--format", "html"), "a page needs a file to go to"),
    ],
)
def test_report_says_where_it_cannot_write(
    arguments: tuple[str, ...],
    expected: str,
    oracle_run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert expected in fail(capsys, monkeypatch, "report", oracle_run, *arguments)


def test_compare_prints_both_runs_and_the_difference(
    oracle_run: Path, whole_image_run: Path, tmp_path: Path
) -> None:
    page = tmp_path / "compare.html"
    result = run("compare", whole_image_run, oracle_run, "--out", page)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("A ")
    assert lines[1].startswith("B ")
    assert "gIoU" in result.stdout
    assert "B - A" in result.stdout
    assert "<html" in page.read_text(encoding="utf-8")


def test_compare_as_json_has_the_direction_of_b_minus_a(
    oracle_run: Path, whole_image_run: Path
) -> None:
    arguments = ("compare", whole_image_run, oracle_run, "--json")
    comparison = json.loads(run(*arguments).stdout)
    giou = comparison["metrics"]["giou"]
    assert giou["difference"] == pytest.approx(giou["b"] - giou["a"])
    assert giou["difference"] > 0


def test_runs_on_different_questions_are_not_compared(
    oracle_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run("world", "--scenes", 1, "--seed", 2, "--out", tmp_path / "other")
    arguments = ("--model", "oracle", "--protocol", "strict")
    run("eval", tmp_path / "other", *arguments, "--out", tmp_path / "run")
    said = fail(capsys, monkeypatch, "compare", oracle_run, tmp_path / "run")
    assert len(said.strip().splitlines()) == 1


def test_leaderboard_writes_a_site_with_the_report_of_each_run(
    oracle_run: Path, whole_image_run: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    result = run("leaderboard", oracle_run, whole_image_run, "--out", site)
    pages = sorted(path.name for path in site.rglob("*.html"))
    assert len(pages) == 3
    assert str(site) in result.stderr


def test_leaderboard_prints_json_without_writing(
    oracle_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = json.loads(run("leaderboard", oracle_run, "--json").stdout)
    assert content
    assert not list(tmp_path.iterdir())


def test_leaderboard_prints_a_table_without_a_folder(oracle_run: Path) -> None:
    result = CliRunner().invoke(app, ["leaderboard", str(oracle_run)])
    assert result.exit_code == 0
    assert "strict (recommended)" in result.output
    assert "oracle" in result.output


def test_a_folder_that_is_no_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail(capsys, monkeypatch, "report", tmp_path)
    assert str(tmp_path) in said
    assert "maskwise" in said

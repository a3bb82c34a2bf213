"""`maskwise build RECIPE DATASET`: recipes by name, estimates, and what is said about mistakes."""

import json
import sys
from pathlib import Path

import pytest

from maskwise.store import Dataset
from tests.cli.commands import fail, run


def test_build_writes_a_dataset_and_names_the_report(
    scenes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "questions"
    said = run("build", "r2sm", scenes, "--out", out).stdout
    built = Dataset.open(out)
    assert f"{out}: {len(built)} questions about 3 of 3 images" in " ".join(
        said.split()
    )
    assert f"report: {out / 'build.html'}" in said
    assert (out / "build.html").is_file()


def test_json_has_the_counts_of_the_summary(scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "questions"
    summary = json.loads(run("build", "mmr", scenes, "--out", out, "--json").stdout)
    assert summary["kept"] == len(Dataset.open(out))
    assert summary["images"] == 3


def test_limit_reads_fewer_images(scenes: Path, tmp_path: Path) -> None:
    arguments = ("build", "r2sm", scenes, "--out", tmp_path / "out", "--limit", 1)
    assert json.loads(run(*arguments, "--json").stdout)["images"] == 1


def test_a_recipe_of_the_user_is_named_by_its_module(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_recipe.py").write_text(
        "from dataclasses import replace\n"
        "from maskwise.builder.r2sm import R2SM\n"
        "MINE = replace(R2SM, name='mine', title='my questions')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    arguments = ("build", "my_recipe:MINE", scenes, "--out", tmp_path / "out")
    assert json.loads(run(*arguments, "--json").stdout)["kept"] > 0


def test_a_build_of_images_that_are_all_leaked_says_so(
    scenes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ("build", "r2sm", scenes, "--out", tmp_path / "out")
    said = fail(capsys, monkeypatch, *arguments, "--against", scenes)
    assert "no question was kept" in said
    assert "leaked-image" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--writer", "anthropic"), "--writer anthropic needs --model NAME"),
        (("--dry-run",), "the grammar costs nothing"),
        (("--writer", "nobody"), "unknown writer 'nobody'"),
        (("--ray-address", "auto"), "--ray-address"),
        (("--against", "nothing"), "nothing is neither a dataset folder"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ("build", "mmr", "world", "--out", tmp_path / "out", *arguments)
    said = fail(capsys, monkeypatch, *command)
    assert expected in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_dry_run_estimates_without_a_key(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    writer = ("--writer", "anthropic", "--model", "claude-sonnet-5", "--dry-run")
    arguments = ("build", "r2sm", scenes, "--out", tmp_path / "out", *writer)
    estimate = json.loads(run(*arguments, "--json").stdout)
    assert estimate["calls"] > 0
    assert estimate["cost"] > 0
    said = " ".join(run(*arguments).stdout.split())
    assert f"{estimate['calls']:,} calls about 3 images" in said
    assert said.endswith("Nothing was sent.")


def test_occlude_pairs_originals_and_composites(scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--min-area", 0.001, "--any-context")
    arguments = ("build", "occlude", scenes, "--out", out, *options)
    counts = json.loads(run(*arguments, "--json").stdout)
    assert counts["dataset"] == str(out)
    assert counts["images"] == 3
    if counts["pairs"]:
        assert len(Dataset.open(out)) == 2 * counts["pairs"]

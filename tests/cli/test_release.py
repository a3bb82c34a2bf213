"""`maskwise release` and `diff`: versions of a dataset from the command line."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from maskwise.cli.main import app
from tests.builder.release.made import make_card
from tests.cli.commands import fail, run


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A card with every required field filled in."""
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(make_card()), encoding="utf-8")
    return path


def test_the_template_says_what_to_do_next(scenes: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    said = run("release", scenes, "--card-template", path).stdout
    assert f"fill it in, then release with --card {path}" in " ".join(said.split())
    assert "benchmark_details" in yaml.safe_load(path.read_text(encoding="utf-8"))


def test_a_release_needs_a_filled_card(
    scenes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ("release", scenes, "--version", "1.0.0", "--out", tmp_path / "out")
    said = fail(capsys, monkeypatch, *arguments)
    assert "card" in said
    assert not (tmp_path / "out").exists()


def test_version_and_folder_are_needed(
    scenes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail(capsys, monkeypatch, "release", scenes)
    assert "a release needs --version and --out" in said


def test_shares_are_checked(
    scenes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail(capsys, monkeypatch, "release", scenes, "--splits", "train=2")
    assert "train" in said


def test_diff_of_a_dataset_with_itself_ends_with_zero(scenes: Path) -> None:
    samples = json.loads(run("diff", scenes, scenes, "--json").stdout)["samples"]
    assert samples == {"added": [], "removed": [], "changed": {}}


def test_diff_lists_what_changed_and_ends_with_one(
    scenes: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    run("world", "--scenes", 2, "--seed", 8, "--out", other)
    arguments = ["diff", str(scenes), str(other), "--list", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "samples removed (18)" in result.output
    assert "and 16 more (--list, --json)" in result.output
    content = CliRunner().invoke(app, [*arguments, "--json"])
    assert len(json.loads(content.stdout)["samples"]["removed"]) == 18


def test_a_release_is_written_and_is_a_dataset(
    scenes: Path, card: Path, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    shares = ("--splits", "train=0.5,test=0.5")
    result = run(
        "release", scenes, "--version", "1.0.0", "--card", card, "--out", out, *shares
    )
    assert "released " in result.stdout
    assert "1.0.0" in result.stdout
    assert json.loads(run("stats", out, "--json").stdout)["counts"]["images"] == 3


def test_a_release_is_not_released_again(
    scenes: Path,
    card: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "release"
    run("release", scenes, "--version", "1.0.0", "--card", card, "--out", out)
    said = fail(capsys, monkeypatch, "release", out)
    assert "is a release already; --push REPO uploads it" in said

"""`maskwise train` and `export`: plans, and what is said about configs and folders."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import fail, run

pytest.importorskip("torch")

TINY_CONFIG = Path(__file__).parents[2] / "configs" / "tiny.toml"


def test_dry_run_prints_a_plan_and_trains_nothing(tmp_path: Path) -> None:
    arguments = ("train", TINY_CONFIG, "--out", tmp_path / "run", "--dry-run")
    said = run(*arguments).stdout
    plan = json.loads(run(*arguments, "--json").stdout)
    for stage in plan["stages"]:
        assert stage["name"] in said
        assert f"{stage['steps']:,}" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model = 'tinny'\n", "'tiny'"),
        ("model = 3\n", "config.toml"),
        ("this is not toml", "config.toml"),
        ("model = 'tiny'\nsurprise = 1\n", "surprise"),
    ],
)
def test_mistakes_in_a_config_are_named_with_the_file(
    text: str,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    said = fail(capsys, monkeypatch, "train", config, "--out", tmp_path / "run")
    assert expected in said
    assert "config.toml" in said
    assert len(said.strip().splitlines()) == 1


def test_an_unknown_tracker_is_named_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    arguments = ("train", TINY_CONFIG, "--out", folder, "--track", "wandbb")
    said = fail(capsys, monkeypatch, *arguments)
    assert "unknown tracker 'wandbb'" in said
    assert "Did you mean 'wandb'?" in said
    assert not folder.exists()


def test_a_missing_config_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail(capsys, monkeypatch, "train", tmp_path / "nothing.toml")
    assert "nothing.toml" in said


def test_export_needs_a_run_of_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail(capsys, monkeypatch, "export", tmp_path)
    assert str(tmp_path) in said
    assert len(said.strip().splitlines()) == 1


def test_flags_of_ray_need_the_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("train", TINY_CONFIG, "--out", tmp_path / "run", "--dry-run")
    said = fail(capsys, monkeypatch, *arguments, "--ray-address", "auto")
    assert "--ray-address" in said or "ray" in said

"""The key `model` of a config selects a trainer."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import (
    ConfigError,
    MaskwiseError,
    MissingDependencyError,
    UnknownNameError,
)
from maskwise.registry import TRAINERS, BuiltIn
from maskwise.training.trainers import (
    find_trainer,
    trainer_of_config,
    trainer_of_run,
    with_execution,
)

CONFIGS = Path(__file__).parents[2] / "configs"


def test_a_config_without_the_key_is_of_the_bundled_model(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    (tmp_path / "old.toml").write_text("seed = 1")
    assert trainer_of_config(tmp_path / "old.toml") is find_trainer("tiny")
    assert trainer_of_config(CONFIGS / "tiny.toml") is find_trainer("tiny")


def test_unknown_trainers_list_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text('model = "huge"')
    with pytest.raises(
        UnknownNameError, match=r"new\.toml: unknown trainer 'huge'; known: .*tiny"
    ):
        trainer_of_config(tmp_path / "new.toml")
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(UnknownNameError, match=r"config\.json: unknown trainer 'None'"):
        trainer_of_run(tmp_path)


@pytest.mark.parametrize("name", ["tiny", "completion", "vlm/nano"])
def test_an_unknown_key_is_refused_with_the_known_ones(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip("transformers", reason="the extra `vlm` is not installed")
    path = tmp_path / "config.toml"
    path.write_text("sed = 1\n" + (CONFIGS / f"{name}.toml").read_text())
    with pytest.raises(
        UnknownNameError,
        match=r"config\.toml: unknown key 'sed'; known: .*model.*'seed'\?$",
    ):
        trainer_of_config(path).read_config(path)


def test_a_config_that_does_not_exist_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(
        MaskwiseError, match=r"joint7b\.toml: no such file; expected a TOML config"
    ) as caught:
        trainer_of_config(tmp_path / "joint7b.toml")
    assert str(caught.value).count("joint7b") == 1


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        MaskwiseError,
        match=r"has no config\.json; expected a folder that `maskwise train` wrote",
    ):
        trainer_of_run(tmp_path)


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.delitem(sys.modules, "maskwise.training.vlm.lora", raising=False)
    monkeypatch.setitem(
        TRAINERS.built_in,
        "adapted",
        BuiltIn("maskwise.training.vlm.lora", "a module that needs peft", extra="vlm"),
    )
    with pytest.raises(
        MissingDependencyError,
        match=r"trainer adapted needs peft.*pip install 'maskwise\[vlm\]'",
    ):
        find_trainer("adapted")


def test_every_trainer_has_the_functions_of_the_interface() -> None:
    pytest.importorskip("transformers", reason="the extra `vlm` is not installed")
    for name in TRAINERS.built_in:
        trainer = find_trainer(name)
        assert all(
            callable(getattr(trainer, f))
            for f in ("read_config", "train", "export_run", "dry_run")
        )


@pytest.mark.parametrize("line", ['datasets = ["nowhere"]', 'validation = "nowhere"'])
def test_a_dry_run_names_a_dataset_that_does_not_exist(
    line: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    path = tmp_path / "config.toml"
    path.write_text(f"{line}\n{(CONFIGS / 'tiny.toml').read_text()}")
    result = CliRunner().invoke(app, ["train", str(path), "--dry-run"])
    assert str(result.exception) == (
        f"{path}: nowhere does not exist: no manifest.json; `maskwise read` and `maskwise build` make dataset folders"
    )


def test_dry_run_of_the_bundled_model() -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    result = CliRunner().invoke(
        app, ["train", str(CONFIGS / "tiny.toml"), "--dry-run", "--json"]
    )
    plan = json.loads(result.stdout)
    from maskwise.training.tiny.pipeline import initial_networks  # noqa: PLC0415

    counts = [
        sum(p.numel() for p in network.parameters())
        for network in initial_networks(None)
    ]
    assert [one["trainable"] for one in plan["parameters"]] == counts
    assert {one["name"]: one["steps"] for one in plan["stages"]} == {
        "detector": 3250,
        "detector_augmented": 4200,
        "grounder": 9000,
    }
    assert plan["sources"][0]["samples"] == (15000 + 9000) * 12
    shown = (
        CliRunner()
        .invoke(app, ["train", str(CONFIGS / "tiny.toml"), "--dry-run"])
        .stdout
    )
    assert "3,250" in shown
    assert "per GPU, estimated" in shown


def test_flags_take_precedence_over_the_table_execution() -> None:
    pytest.importorskip("accelerate", reason="the extra `vlm` is not installed")
    config = find_trainer("vlm").read_config(CONFIGS / "vlm" / "nano.toml")
    changed = with_execution(config, engine="ray", workers=2, ray_address=None)
    assert changed.execution.engine == "ray"
    assert changed.execution.workers == 2
    assert changed.execution.ray_address is None
    assert changed.vlm == config.vlm
    assert with_execution(config, engine=None, workers=None) is config


def test_several_local_workers_do_not_train(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="the extra `vlm` is not installed")
    trainer = find_trainer("vlm")
    config = trainer.read_config(CONFIGS / "vlm" / "nano.toml")
    with pytest.raises(ConfigError, match=r"one process, not 2.*accelerate launch"):
        trainer.train(with_execution(config, workers=2), tmp_path)


def test_flags_of_engines_are_refused_by_models_that_train_in_one_process() -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    arguments = [
        "train",
        str(CONFIGS / "tiny.toml"),
        "--engine",
        "ray",
        "--workers",
        "2",
    ]
    with pytest.raises(ConfigError, match="--engine, --workers: this model trains in"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_code_that_a_run_names_is_not_imported_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may come from somebody else, with a module beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = "open('owned', 'w')\n"
    functions = ["read_config", "train", "export_run", "dry_run"]
    code += "".join(f"def {name}(*args): return []\n" for name in functions)
    (tmp_path / "foreign_trainer.py").write_text(code)
    (tmp_path / "config.json").write_text('{"model": "foreign_trainer:"}')
    result = CliRunner().invoke(app, ["export", str(tmp_path)])
    assert "repeat with --trainer foreign_trainer:" in str(result.exception)
    assert not (tmp_path / "owned").exists()
    allowed = ["export", str(tmp_path), "--trainer", "foreign_trainer:"]
    result = CliRunner().invoke(app, allowed)
    assert result.exit_code == 0, result.exception
    assert (tmp_path / "owned").exists()

"""The dry run counts what the real model has, without its weights."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from maskwise.cli.main import app
from maskwise.errors import ConfigError
from maskwise.models.vlm import pretrained
from maskwise.training.vlm.config import ValidationConfig, read_config
from maskwise.training.vlm.dry_run import dry_run
from maskwise.training.vlm.lora import LoraSettings
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.training.vlm.pipeline import build_training_model, prepare_stage
from tests.training.vlm.small_runs import small_run

CONFIGS = Path(__file__).parents[3] / "configs" / "vlm"


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=2)], ids=["full", "lora"])
def test_counts_are_those_of_the_real_model(lora: LoraSettings | None) -> None:
    config = small_run(lora=lora)
    plan = dry_run(config)
    processor = new_processor(config.vlm)
    total = sum(one.trainable + one.frozen for one in plan.parameters)
    for stage, planned in zip(config.stages, plan.stages):
        model = prepare_stage(config, stage, build_training_model(config, processor))
        trained = [
            parameter for parameter in model.parameters() if parameter.requires_grad
        ]
        assert planned.trainable == sum(parameter.numel() for parameter in trained)
        assert total == sum(parameter.numel() for parameter in model.parameters())
    assert plan.memory["optimizer"] == 8 * max(stage.trainable for stage in plan.stages)
    assert plan.sources[0].drawn == (3 + 4) * 2 * 2, (
        "steps, images per step, questions per image"
    )
    assert 0 < plan.tokens["p50"] <= plan.tokens["max"]


def test_a_dataset_to_validate_on_that_is_not_here_is_noted(tmp_path: Path) -> None:
    plan = dry_run(
        small_run(validation=ValidationConfig(every=1, dataset=str(tmp_path / "val")))
    )
    assert any(
        note.startswith("a dataset of [validation] cannot be opened here: ")
        and note.endswith(
            "val does not exist: no manifest.json; `maskwise read` and `maskwise build` make dataset folders"
        )
        for note in plan.notes
    )


def test_a_pattern_that_matches_nothing_is_named_with_the_config(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.toml"
    stage = '[[stages]]\nname = "more"\nsteps = 1\nfreeze = ["no_such_module"]\n'
    path.write_text(f"{(CONFIGS / 'nano.toml').read_text()}\n{stage}")
    result = CliRunner().invoke(app, ["train", str(path), "--dry-run"])
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith(
        f"{path}: freeze: no parameter matches 'no_such_module'; names begin"
    )


def test_a_model_of_seven_billion_parameters_is_counted_without_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pretrained, "is_hub_reachable", lambda: False)
    plan = dry_run(read_config(CONFIGS / "joint-7b.toml"))
    counts = {one.module: one.trainable + one.frozen for one in plan.parameters}
    assert counts["vision encoder"] + counts["language model"] == pytest.approx(
        8.292e9, rel=1e-3
    )
    assert counts["segmenter"] == pytest.approx(213e6, rel=5e-3)
    assert 17e9 < plan.memory["weights"] < 18e9
    assert any("hf download Qwen/Qwen2.5-VL-7B-Instruct" in note for note in plan.notes)
    assert plan.tokens == {}

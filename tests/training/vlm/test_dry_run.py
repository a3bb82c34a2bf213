"""The dry run counts what the real model has, without its weights."""

import math
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from maskwise.cli.main import app
from maskwise.errors import ConfigError
from maskwise.models.vlm import pretrained
from maskwise.training.vlm.config import (
    SourceConfig,
    Stage,
    ValidationConfig,
    read_config,
)
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


def test_steps_follow_from_epochs_of_sources_that_need_not_be_here() -> None:
    plan = dry_run(read_config(CONFIGS / "joint-7b.toml"))
    epochs = {source.name: source.epochs for source in plan.sources}
    assert epochs["amodal_reason_seg"] == pytest.approx(7, abs=0.1)
    assert epochs["mmr"] == pytest.approx(2.5, abs=0.1)
    images = 6 * 2500 + 4 * 7276 + 2 * 45618 + 20000 + 0.1 * 157712
    assert plan.stages[1].steps == math.ceil(images / 64)
    assert plan.hours is not None
    assert 10 < plan.hours < 1000
    # Two embeddings of 152,064 x 3,584 in bfloat16: the output layer is not tied.
    assert plan.memory["copies of embeddings"] == 2 * 152_064 * 3_584 * 2
    assert plan.memory["mask decoders"] == 4 * 2 * 104_000_000


def test_an_image_is_counted_once_for_questions_in_one_sequence() -> None:
    config = read_config(CONFIGS / "joint-7b.toml")
    packed = dry_run(config)
    flash = msgspec.structs.replace(config, attention="flash_attention_2")
    separate = dry_run(flash)
    assert packed.hours is not None
    assert separate.hours is not None
    # Four questions per image, of 220 tokens each; an image has 1,280.
    assert separate.hours / packed.hours == pytest.approx(
        4 * 1500 / (1280 + 4 * 220), rel=0.05
    )
    assert separate.memory["activations"] > packed.memory["activations"]


def test_a_dry_run_needs_the_size_of_a_source_whose_epochs_count(
    tmp_path: Path,
) -> None:
    sources = {"own": SourceConfig(dataset=str(tmp_path / "own"))}
    stages = (Stage(name="one", epochs={"own": 2}),)
    with pytest.raises(ConfigError, match=r"epochs of own.*expected_images"):
        dry_run(small_run(sources=sources, stages=stages))

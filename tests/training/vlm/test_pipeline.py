"""Training runs of the vision-language model: stages, resuming, freezing, accumulation."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("transformers", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from accelerate.utils import DeepSpeedPlugin
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.harness.registry import make_predictor
from maskwise.training.checkpoints import read_tensors
from maskwise.training.loop import StageLoop
from maskwise.training.vlm.config import (
    Optimization,
    SourceConfig,
    Stage,
    ValidationConfig,
    WorldScenes,
)
from maskwise.training.vlm.lora import LoraSettings
from maskwise.training.vlm.pipeline import train
from maskwise.training.vlm.stage_task import deepspeed_settings
from maskwise.world import make_scene
from tests.training.vlm.small_runs import small_model, small_run


class Killed(BaseException):
    """Stands for a kill between two steps."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run with adapters and dropout: a dense stage and one of questions."""
    folder = tmp_path_factory.mktemp("vlm") / "run"
    train(adapted_run(), folder)
    return folder


def adapted_run():
    return small_run(lora=LoraSettings(rank=2, dropout=0.5))


def losses(folder: Path, stage: str) -> list[dict[str, float]]:
    rows = [
        json.loads(line)
        for line in (folder / f"{stage}.jsonl").read_text().splitlines()
    ]
    return [
        {key: value for key, value in row.items() if key != "seconds_per_step"}
        for row in rows
    ]


def test_a_run_writes_weights_curves_events_and_checkpoints(run: Path) -> None:
    assert {
        "dense.safetensors",
        "questions.safetensors",
        "config.json",
        "processor",
    } <= {path.name for path in run.iterdir()}
    assert [row["step"] for row in losses(run, "questions")] == [1, 2, 3, 4]
    assert "text" not in losses(run, "dense")[0], (
        "a loss that is off is not in the curve"
    )
    assert list((run / "events" / "dense").glob("events.*"))
    files = {
        path.name
        for path in (run / "checkpoints" / "questions" / "step-0000004").iterdir()
    }
    assert files == {"model.safetensors", "optimizer.safetensors", "state.json"}


def test_a_killed_run_ends_with_the_same_losses_and_weights(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = StageLoop.train_step
    for stage, killed_at in (("dense", 2), ("questions", 3)):

        def step_or_die(self, number, batches, stage=stage, killed_at=killed_at):
            if self.task.name == stage and number == killed_at:
                raise Killed
            return step(self, number, batches)

        monkeypatch.setattr(StageLoop, "train_step", step_or_die)
        with pytest.raises(Killed):
            train(adapted_run(), tmp_path / "run")
    monkeypatch.undo()
    train(adapted_run(), tmp_path / "run")
    for name in ("dense", "questions"):
        assert losses(tmp_path / "run", name) == losses(run, name)
        assert (tmp_path / "run" / f"{name}.safetensors").read_bytes() == (
            run / f"{name}.safetensors"
        ).read_bytes()


def test_frozen_modules_keep_their_weights_and_others_change(run: Path) -> None:
    before = read_tensors(run / "dense.safetensors")
    after = read_tensors(run / "questions.safetensors")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert not [name for name in changed if name.startswith("segmenter.")]
    assert [name for name in changed if name.startswith("projector.")]
    assert all(
        "lora_" in name or "token" in name
        for name in changed
        if name.startswith("vision_language.")
    )


def test_another_config_in_the_same_folder_is_refused(
    run: Path, tmp_path: Path
) -> None:
    with pytest.raises(MaskwiseError, match="seed: 1 then, 2 now"):
        train(msgspec.structs.replace(adapted_run(), seed=2), run)
    train(msgspec.structs.replace(adapted_run(), log_every=7), run)


def test_a_damaged_checkpoint_is_named(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "questions.safetensors").unlink()
    (
        tmp_path
        / "run"
        / "checkpoints"
        / "questions"
        / "step-0000004"
        / "model.safetensors"
    ).write_bytes(b"torn")
    with pytest.raises(
        MaskwiseError, match=r"step-0000004.*delete it to continue from an older one"
    ):
        train(adapted_run(), tmp_path / "run")


def test_patterns_that_match_nothing_or_everything_are_refused(tmp_path: Path) -> None:
    for pattern, message in (
        ("nothing", "no parameter matches 'nothing'"),
        (".", "freeze every parameter"),
    ):
        stage = Stage(name="one", steps=1, freeze=(pattern,))
        with pytest.raises(MaskwiseError, match=message):
            train(small_run(stages=(stage,)), tmp_path / message.split()[0])


def test_losses_and_sources_that_cannot_be_used_are_named_before_training(
    tmp_path: Path,
) -> None:
    stage = Stage(name="one", steps=1, losses={"occlusion": 1.0})
    with pytest.raises(
        MaskwiseError,
        match=r"stage 'one': the loss `occlusion` needs .*occlusion_head = true",
    ):
        train(small_run(stages=(stage,)), tmp_path / "loss")
    sources = {"mmr": SourceConfig(dataset=str(tmp_path / "mmr-train"))}
    with pytest.raises(
        MaskwiseError, match=r"\[sources\.mmr\]: .*mmr-train.*`maskwise read`"
    ):
        train(small_run(sources=sources), tmp_path / "source")


def test_the_folder_of_a_run_is_a_model(run: Path) -> None:
    model = make_predictor("vlm", checkpoint=str(run))
    scene = make_scene(5, 0, "val", 64, preset="easy")
    questions = [question.text for question in scene.questions]
    assert len(model.predict(Image.fromarray(scene.image), questions)) == len(questions)


def test_validation_scores_free_answers_strictly(tmp_path: Path) -> None:
    held_out = ValidationConfig(
        every=2, world=WorldScenes(scenes=2, split="val", size=64, questions=2)
    )
    config = small_run(stages=(Stage(name="one", steps=2),), validation=held_out)
    train(config, tmp_path / "run")
    rows = losses(tmp_path / "run", "one")
    assert "val_giou" not in rows[0]
    assert 0 <= rows[1]["val_giou"] <= 1
    assert rows[1]["val_failed"] == 0
    plain = train(msgspec.structs.replace(config, validation=None), tmp_path / "plain")
    assert plain
    for folder in ("run", "plain"):
        assert (tmp_path / folder / "one.safetensors").exists()
    assert (tmp_path / "run" / "one.safetensors").read_bytes() == (
        tmp_path / "plain" / "one.safetensors"
    ).read_bytes(), "validation does not change training"


def test_bf16_trains_validates_and_keeps_trained_weights_in_float32(
    tmp_path: Path,
) -> None:
    held_out = ValidationConfig(
        every=2, world=WorldScenes(scenes=1, split="val", size=64, questions=2)
    )
    config = small_run(
        vlm=small_model(dtype="bfloat16", max_new_tokens=4),
        lora=LoraSettings(rank=2),
        stages=(Stage(name="one", steps=2, freeze=("segmenter",)),),
        validation=held_out,
        precision="bf16",
    )
    train(config, tmp_path)
    assert losses(tmp_path, "one")[-1]["val_failed"] == 0
    weights = read_tensors(tmp_path / "one.safetensors")
    assert weights["projector.layers.0.weight"].dtype == torch.float32
    assert weights["segmenter.no_mask.weight"].dtype == torch.bfloat16
    exported = make_predictor("vlm", checkpoint=str(tmp_path)).model
    assert {parameter.dtype for parameter in exported.parameters()} == {torch.bfloat16}


def test_gradient_checkpointing_does_not_change_the_result(
    run: Path, tmp_path: Path
) -> None:
    config = msgspec.structs.replace(adapted_run(), gradient_checkpointing=True)
    train(config, tmp_path)
    assert losses(tmp_path, "questions") == losses(run, "questions")


def test_deepspeed_gets_the_batch_of_a_stage() -> None:
    plugin = DeepSpeedPlugin(zero_stage=2)
    assert plugin.is_auto("train_micro_batch_size_per_gpu"), (
        "accelerate would ask for a DataLoader"
    )
    optimization = Optimization(
        learning_rate=1, batch_size=48, micro_batch_size=2, clip_norm=0.5
    )
    plugin.deepspeed_config.update(deepspeed_settings(optimization, accumulated=3))
    assert plugin.get_value("train_micro_batch_size_per_gpu") == 2
    assert plugin.get_value("gradient_accumulation_steps") == 3
    assert plugin.get_value("gradient_clipping") == 0.5

"""Training runs of the vision-language model: stages, resuming, freezing, accumulation."""

import io
import json
import shutil
import weakref
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
from maskwise.schema import ImageInfo
from maskwise.store import DatasetWriter
from maskwise.training.checkpoints import read_tensors
from maskwise.training.loop import StageLoop
from maskwise.training.vlm import pipeline
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
from maskwise.world import make_scene, write_scenes
from tests.training.vlm.small_runs import small_model, small_run

MEASURED = {"seconds_per_step", "tokens_per_second", "memory_gb"}
"""Values that differ between two equal runs."""


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
        {key: value for key, value in row.items() if key not in MEASURED}
        for row in rows
    ]


def test_a_run_writes_weights_curves_events_and_checkpoints(run: Path) -> None:
    assert {
        "stages",
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

        def step_or_die(
            self, number, batches, stage=stage, killed_at=killed_at, **options
        ):
            if self.task.name == stage and number == killed_at:
                raise Killed
            return step(self, number, batches, **options)

        monkeypatch.setattr(StageLoop, "train_step", step_or_die)
        with pytest.raises(Killed):
            train(adapted_run(), tmp_path / "run")
    monkeypatch.undo()
    train(adapted_run(), tmp_path / "run")
    for name in ("dense", "questions"):
        assert losses(tmp_path / "run", name) == losses(run, name)
        assert (tmp_path / "run" / "stages" / f"{name}.safetensors").read_bytes() == (
            run / "stages" / f"{name}.safetensors"
        ).read_bytes()


def test_frozen_modules_keep_their_weights_and_others_change(run: Path) -> None:
    before = read_tensors(run / "stages" / "dense.safetensors")
    after = read_tensors(run / "stages" / "questions.safetensors")
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
    (tmp_path / "run" / "stages" / "questions.safetensors").unlink()
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
        assert (tmp_path / folder / "stages" / "one.safetensors").exists()
    assert (tmp_path / "run" / "stages" / "one.safetensors").read_bytes() == (
        tmp_path / "plain" / "stages" / "one.safetensors"
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
    weights = read_tensors(tmp_path / "stages" / "one.safetensors")
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


def test_the_model_of_a_stage_is_gone_when_the_next_one_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = pipeline.build_training_model
    built: list[weakref.ref[object]] = []

    def build_alone(*arguments):
        assert all(model() is None for model in built)
        model = build(*arguments)
        built.append(weakref.ref(model))
        return model

    monkeypatch.setattr(pipeline, "build_training_model", build_alone)
    train(small_run(), tmp_path)
    assert len(built) == 2


def test_weights_are_not_rounded_between_stages(tmp_path: Path) -> None:
    stages = (
        Stage(name="heads", steps=2, freeze=("segmenter", "vision_language")),
        Stage(name="joint", steps=1, freeze=("segmenter", "^projector")),
    )
    config = small_run(
        vlm=small_model(dtype="bfloat16"), stages=stages, precision="bf16"
    )
    train(config, tmp_path)
    first, second = (
        read_tensors(tmp_path / "stages" / f"{name}.safetensors")
        for name in ("heads", "joint")
    )
    weight = first["projector.layers.0.weight"]
    assert not torch.equal(weight, weight.to(torch.bfloat16).float())
    assert torch.equal(second["projector.layers.0.weight"], weight)


def test_a_stage_may_be_named_like_a_file_of_the_export(tmp_path: Path) -> None:
    train(small_run(stages=(Stage(name="heads", steps=1),)), tmp_path)
    before = (tmp_path / "stages" / "heads.safetensors").read_bytes()
    train(small_run(stages=(Stage(name="heads", steps=1),)), tmp_path)
    assert (tmp_path / "stages" / "heads.safetensors").read_bytes() == before
    assert make_predictor("vlm", checkpoint=str(tmp_path))


@pytest.fixture
def damaged_dataset(tmp_path: Path) -> str:
    """Ten scenes; the bytes of three images are cut off."""
    with DatasetWriter(tmp_path / "data", name="scenes") as writer:
        for number in range(10):
            scene = make_scene(1, number, "train", 64, preset="easy")
            buffer = io.BytesIO()
            Image.fromarray(scene.image).save(buffer, "PNG")
            length = 200 if number < 3 else None
            image = ImageInfo(id=scene.samples[0].image_id, width=64, height=64)
            writer.add_image(image, scene.regions, buffer.getvalue()[:length])
            for sample in scene.samples[:3]:
                writer.add_sample(sample)
    return str(tmp_path / "data")


def test_a_damaged_image_and_a_long_text_are_skipped_and_logged(
    tmp_path: Path, damaged_dataset: str
) -> None:
    source = SourceConfig(dataset=damaged_dataset)
    config = small_run(
        sources={"scenes": source},
        stages=(Stage(name="one", steps=12),),
        max_skipped=0.5,
    )
    train(config, tmp_path / "run")
    lines = (tmp_path / "run" / "skipped.jsonl").read_text().splitlines()
    skipped = [json.loads(line) for line in lines]
    assert skipped
    assert all(line["item"].startswith("scenes, image ") for line in skipped)
    short = small_run(
        vlm=small_model(text_length=20),
        stages=(Stage(name="one", steps=60),),
        max_skipped=0.01,
    )
    with pytest.raises(MaskwiseError, match=r"more than max_skipped = 0\.01.*skipped"):
        train(short, tmp_path / "short")


def test_skipped_items_do_not_change_what_an_interrupted_run_draws(
    tmp_path: Path, damaged_dataset: str
) -> None:
    source = SourceConfig(dataset=damaged_dataset)
    config = small_run(
        sources={"scenes": source},
        stages=(Stage(name="one", steps=6),),
        max_skipped=1.0,
    )
    train(config, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / "stages")
    shutil.rmtree(tmp_path / "resumed" / "checkpoints" / "one" / "step-0000006")
    train(config, tmp_path / "resumed")
    names = ("whole", "resumed")
    whole, resumed = (
        (tmp_path / name / "stages" / "one.safetensors").read_bytes() for name in names
    )
    assert whole == resumed


def test_several_datasets_are_validated_by_name_and_the_best_is_exported(
    tmp_path: Path,
) -> None:
    for name in ("first", "second"):
        write_scenes(tmp_path / name, 2, 3, split="val", size=64, questions=2)
    folders = (str(tmp_path / "first"), str(tmp_path / "second"))
    config = small_run(
        stages=(Stage(name="one", steps=4),),
        validation=ValidationConfig(every=2, dataset=folders),
        keep_checkpoints=2,
    )
    run = tmp_path / "run"
    train(config, run)
    assert {"val_first_giou", "val_second_giou"} <= losses(run, "one")[-1].keys()
    best = json.loads((run / "checkpoints" / "one" / "best" / "state.json").read_text())
    assert best["step"] in (2, 4)
    pipeline.export_run(run, tmp_path / "best", "best")
    pipeline.export_run(run, tmp_path / "second-step", 2)
    for name in ("best", "second-step"):
        assert make_predictor("vlm", checkpoint=str(tmp_path / name))
    with pytest.raises(MaskwiseError, match=r"no checkpoint step-0000003.*kept: 2, 4"):
        pipeline.export_run(run, tmp_path / "none", 3)

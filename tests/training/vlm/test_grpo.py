"""Stages of reinforcement learning through TRL."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("trl", reason="the extra `grpo` is not installed")

from maskwise.errors import ConfigError
from maskwise.harness.registry import make_predictor
from maskwise.models.vlm.batch import collate
from maskwise.models.vlm.config import Pretrained
from maskwise.models.vlm.generation import (
    encode_image,
    generate_answers,
    masks_of_answers,
)
from maskwise.training.checkpoints import read_tensors
from maskwise.training.vlm.config import GrpoConfig, Stage, read_config
from maskwise.training.vlm.grpo import make_trl_processor
from maskwise.training.vlm.pipeline import train
from maskwise.training.vlm.rewards import REWARDS
from tests.models.vlm.architectures import SEGMENTERS, VISION_LANGUAGE
from tests.models.vlm.small import scene_questions, small_config, small_model
from tests.training.vlm.small_runs import small_model as run_model
from tests.training.vlm.small_runs import small_run

pytestmark = pytest.mark.vlm

CONFIGS = Path(__file__).parents[3] / "configs" / "vlm"


def grpo_stage(**options: object) -> Stage:
    settings = GrpoConfig(
        generations=2, questions_per_step=2, max_new_tokens=6, temperature=2.0
    )
    return Stage(name="grpo", grpo=settings, steps=2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "qwen3_vl"])
def test_prompts_of_trl_are_those_of_the_processor(kind: str) -> None:
    config = small_config((VISION_LANGUAGE[kind], SEGMENTERS["sam2"]))
    _, processor = small_model(config)
    item = scene_questions(0, 1)
    made = make_trl_processor(processor, kind).apply_chat_template(
        conversation=[
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "image": item.image},
                        {"type": "text", "text": item.samples[0].question},
                    ],
                }
            ]
        ],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
    )
    expected = collate([item], processor, answers=False)
    assert made["input_ids"][0] == expected.input_ids[0].tolist()


def test_masks_of_written_answers_are_those_of_generation() -> None:
    model, processor = small_model()
    item = scene_questions(1)
    assert item.image is not None
    image = encode_image(model, processor, item.image)
    question = item.samples[0].question
    visible = processor.seg_token_ids[0]
    # Random weights hardly ever write a token, so the answers are given one.
    words = processor.name_tokens("green mug")
    rows = [[*words, visible, processor.eos_token_id], [words[0], visible, *words]]
    drawn = masks_of_answers(model, processor, image, question, rows)
    assert [answer.kinds for answer in drawn] == [[0], [0]]
    alone = masks_of_answers(model, processor, image, question, rows[1:])
    torch.testing.assert_close(drawn[1].masks.visible, alone[0].masks.visible)
    written = generate_answers(model, processor, image, [question])
    assert len(written) == 1


@pytest.mark.parametrize("kind", ["nano", "qwen2_5_vl"])
def test_two_steps_change_the_language_model_alone(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers of random weights are all wrong alike; equal rewards would change nothing.
    monkeypatch.setitem(
        REWARDS,
        "format",
        lambda predictions, _: [n % 2 for n, _ in enumerate(predictions)],
    )
    model = run_model()
    if kind == "qwen2_5_vl":
        model = msgspec.structs.replace(
            model, vision_language=Pretrained(config=VISION_LANGUAGE[kind])
        )
    stages = (
        Stage(name="first", steps=1),
        grpo_stage(freeze=("segmenter", "decoders", "projector", "visual")),
    )
    train(small_run(vlm=model, stages=stages), tmp_path)
    before = read_tensors(tmp_path / "stages" / "first.safetensors")
    after = read_tensors(tmp_path / "stages" / "grpo.safetensors")
    changed = {
        name for name, value in before.items() if not torch.equal(value, after[name])
    }
    assert changed
    assert all(name.startswith("vision_language.") for name in changed)
    lines = (tmp_path / "grpo.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(
        0 <= row["rewards/no_target/mean"] <= 1 for row in rows if "reward" in row
    )
    assert any("reward" in row for row in rows)
    assert make_predictor("vlm", checkpoint=str(tmp_path))


def run_stage(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[dict[str, float]]:
    """The curve of two steps at a high learning rate, rewarded by the place of an answer."""
    monkeypatch.setitem(
        REWARDS,
        "format",
        lambda predictions, _: [n % 2 for n, _ in enumerate(predictions)],
    )
    # The first step already has the whole rate.
    stage = grpo_stage(
        freeze=("segmenter", "visual"), learning_rate=0.01, warmup_steps=0
    )
    assert stage.grpo is not None
    grpo = msgspec.structs.replace(stage.grpo, **options)
    stages = (msgspec.structs.replace(stage, grpo=grpo),)
    train(small_run(stages=stages, log_every=1), folder)
    lines = (folder / "grpo.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "reward" in row]


def test_the_divergence_is_from_the_start_of_the_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = run_stage(tmp_path, monkeypatch, beta=0.1)
    assert first["kl"] == pytest.approx(0, abs=1e-6)
    # The first step has changed the model, and the reference stays what it was.
    assert second["kl"] > 1e-5


def test_the_divergence_is_refused_where_parameters_are_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwise.training.vlm.grpo.is_fsdp", lambda accelerator: True)
    with pytest.raises(ConfigError, match="beta: its reference needs whole parameters"):
        run_stage(tmp_path, monkeypatch, beta=0.1)


def test_without_scaling_small_differences_of_rewards_count_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = run_stage(tmp_path / "scaled", monkeypatch)
    plain = run_stage(tmp_path / "plain", monkeypatch, scale_rewards="none")
    assert "kl" not in plain[0]
    # Both sample the same answers in the first step. Their rewards differ by the weight of `format` at most, a quarter.
    assert plain[0]["reward"] == scaled[0]["reward"]
    assert plain[0]["grad_norm"] < 0.5 * scaled[0]["grad_norm"]


MORE = """
model = "vlm"
init = "{init}"
threads = 1
optimization = {{ learning_rate = 1e-9, batch_size = 1, warmup_steps = 0 }}
sources.world.world = {{ scenes = 2, size = 64, questions = 2 }}
stages = [{{ name = "more", steps = 1, freeze = ["segmenter"] }}]
"""


def test_a_run_starts_from_the_weights_of_another_one(tmp_path: Path) -> None:
    train(small_run(stages=(Stage(name="one", steps=1),)), tmp_path / "first")
    (tmp_path / "more.toml").write_text(MORE.format(init=tmp_path / "first"))
    train(read_config(tmp_path / "more.toml"), tmp_path / "second")
    before = make_predictor("vlm", checkpoint=str(tmp_path / "first")).model
    after = make_predictor("vlm", checkpoint=str(tmp_path / "second")).model
    others = after.state_dict()
    for name, value in before.state_dict().items():
        torch.testing.assert_close(others[name], value, atol=1e-6, rtol=0)


ADDED_PART = """
[vlm]
occlusion_map = true
losses = {{ occlusion_map = 1.0 }}
"""


def test_a_part_can_be_added_to_a_trained_model(tmp_path: Path) -> None:
    train(small_run(stages=(Stage(name="one", steps=1),)), tmp_path / "first")
    path = tmp_path / "more.toml"
    path.write_text((MORE + ADDED_PART).format(init=tmp_path / "first"))
    config = read_config(path)
    assert config.vlm.losses.bce == small_run().vlm.losses.bce
    train(config, tmp_path / "second")
    before = make_predictor("vlm", checkpoint=str(tmp_path / "first")).model
    after = make_predictor("vlm", checkpoint=str(tmp_path / "second")).model
    others = after.state_dict()
    for name, value in before.state_dict().items():
        torch.testing.assert_close(others[name], value, atol=1e-6, rtol=0)
    added = set(others) - set(before.state_dict())
    assert added
    assert all(name.startswith("decoders.occlusion_map.") for name in added)


def test_the_config_of_nano_trains_in_a_short_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(small_run(stages=(Stage(name="one", steps=1),)), tmp_path / "runs" / "nano")
    monkeypatch.chdir(tmp_path)
    config = read_config(CONFIGS / "nano-grpo.toml")
    (stage,) = config.stages
    assert stage.grpo is not None
    shorter = msgspec.structs.replace(
        stage.grpo, questions_per_step=1, max_new_tokens=4
    )
    stages = (msgspec.structs.replace(stage, steps=1, grpo=shorter),)
    files = train(msgspec.structs.replace(config, stages=stages), tmp_path / "out")
    assert all(path.exists() for path in files)

"""Training runs small enough for tests: a nano model of the real classes, a few scenes, a few steps."""

from typing import Any

from maskwise.models.vlm.config import VlmConfig
from maskwise.training.vlm.config import (
    Optimization,
    SourceConfig,
    Stage,
    VlmTrainingConfig,
    WorldScenes,
)
from maskwise.training.vlm.nano import nano_config


def small_model(**options: Any) -> VlmConfig:
    return nano_config(
        image_size=64,
        width=64,
        layers=2,
        vocabulary=512,
        vocabulary_scenes=20,
        **options,
    )


def small_scenes(scenes: int = 6) -> WorldScenes:
    return WorldScenes(scenes=scenes, preset="easy", size=64, questions=3)


def small_run(**options: Any) -> VlmTrainingConfig:
    defaults: dict[str, Any] = {
        "model": "vlm",
        "vlm": small_model(),
        "optimization": Optimization(
            learning_rate=1e-3,
            batch_size=2,
            micro_batch_size=1,
            questions_per_image=2,
            warmup_steps=1,
        ),
        "sources": {"world": SourceConfig(world=small_scenes())},
        "stages": (
            Stage(
                name="dense",
                steps=3,
                dense=True,
                losses={"text": 0.0},
                matrix_rate=0.01,
            ),
            Stage(name="questions", steps=4, freeze=("segmenter",)),
        ),
        "checkpoint_every": 2,
        "log_every": 1,
        "threads": 1,
    }
    return VlmTrainingConfig(**(defaults | options))

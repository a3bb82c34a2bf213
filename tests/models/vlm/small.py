"""A model small enough for tests, and batches for it."""

import functools
from typing import Any

import torch
from PIL import Image

from maskwise.models.vlm.batch import ImageQuestions
from maskwise.models.vlm.build import build_model
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.vlm.nano import nano_config
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.world import make_scene


def small_config(
    architectures: tuple[dict[str, Any], dict[str, Any]] | None = None, **options: Any
) -> VlmConfig:
    """64 wide, two layers, images of 64 x 64. architectures: others for both networks."""
    if architectures is not None:
        language, segmenter = architectures
        options |= {
            "vision_language": Pretrained(config=language),
            "segmenter": Pretrained(config=segmenter),
        }
    given: dict[str, Any] = {
        "image_size": 64,
        "width": 64,
        "layers": 2,
        "vocabulary": 640,
        "vocabulary_scenes": 20,
    }
    return nano_config(**(given | options))


@functools.cache
def small_processor() -> VlmProcessor:
    return new_processor(small_config())


def small_model(config: VlmConfig | None = None) -> tuple[VlmModel, VlmProcessor]:
    """A model with random weights, the same ones each time, in evaluation mode."""
    torch.manual_seed(0)
    config = config or small_config()
    processor = small_processor() if config == small_config() else new_processor(config)
    return build_model(config, processor).eval(), processor


def scene_questions(index: int, count: int = 3, size: int = 64) -> ImageQuestions:
    """An easy scene with its first questions."""
    scene = make_scene(1, index, "train", size, questions=max(count, 6), preset="easy")
    return ImageQuestions(
        Image.fromarray(scene.image), scene.samples[:count], scene.regions
    )

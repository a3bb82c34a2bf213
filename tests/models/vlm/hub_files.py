"""Folders with the JSON files of published checkpoints, written from their fields, and small random weights."""

import json
from pathlib import Path
from typing import Any

import torch

from maskwise.models.vlm.config import Pretrained
from maskwise.models.vlm.pretrained import read_architecture
from maskwise.models.vlm.vision_language import find_vision_language_class
from tests.models.vlm.architectures import VISION_LANGUAGE
from tests.models.vlm.small import small_processor

QWEN25_PREPROCESSOR: dict[str, Any] = {
    "min_pixels": 3136,
    "max_pixels": 12845056,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "Qwen2_5_VLProcessor",
}
"""preprocessor_config.json of Qwen/Qwen2.5-VL-7B-Instruct; that of Qwen2-VL has the same limits."""

QWEN25_GENERATION: dict[str, Any] = {
    "bos_token_id": 151643,
    "pad_token_id": 151643,
    "do_sample": True,
    "eos_token_id": [151645, 151643],
    "repetition_penalty": 1.05,
    "temperature": 1e-06,
    "transformers_version": "4.49.0",
}
"""generation_config.json of Qwen/Qwen2.5-VL-7B-Instruct."""


def write_qwen(folder: Path, kind: str = "qwen2_5_vl") -> Path:
    """A folder as the hub has it for Qwen2-VL and Qwen2.5-VL, with patches of 14 pixels and random weights."""
    torch.manual_seed(0)
    fields = dict(VISION_LANGUAGE[kind])
    fields["vision_config"] = fields["vision_config"] | {"patch_size": 14}
    if kind == "qwen2_5_vl":
        fields["vision_config"] |= {"window_size": 112}
    architecture = read_architecture(Pretrained(config=fields))
    find_vision_language_class(kind)(architecture).save_pretrained(folder)
    small_processor().tokenizer.save_pretrained(folder)
    write_json(folder / "preprocessor_config.json", QWEN25_PREPROCESSOR)
    write_json(folder / "generation_config.json", QWEN25_GENERATION)
    return folder


def write_json(path: Path, fields: dict[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=2))

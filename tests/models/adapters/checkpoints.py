"""Small checkpoints with random weights in the layout of the published ones."""

from pathlib import Path

import torch
from transformers import AutoConfig, PreTrainedModel, Sam2Config, Sam2Model

from maskwise.models.vlm.initialization import scale_initialization
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.models.vlm.vision_language import find_vision_language_class
from maskwise.training.vlm.nano_tokenizer import new_processor
from tests.models.vlm.architectures import SEGMENTERS, VISION_LANGUAGE
from tests.models.vlm.small import small_config


def make_language(kind: str) -> tuple[PreTrainedModel, VlmProcessor]:
    """A Qwen-VL with a tokenizer that has the token [SEG]."""
    torch.manual_seed(0)
    processor = new_processor(
        small_config(
            (VISION_LANGUAGE[kind], SEGMENTERS["sam2"]), seg_tokens=("[SEG]", "[SEG2]")
        )
    )
    fields = VISION_LANGUAGE[kind] | {"image_token_id": processor.image_token_id}
    model_type = fields.pop("model_type")
    config = AutoConfig.for_model(model_type, **fields)
    return find_vision_language_class(model_type)(config), processor


def make_sam2() -> Sam2Model:
    """A SAM 2 with three masks per prompt; image and prompts share their position embedding, as published."""
    fields = {
        name: value
        for name, value in SEGMENTERS["sam2"].items()
        if name != "model_type"
    }
    decoder = fields["mask_decoder_config"] | {"num_multimask_outputs": 3}
    torch.manual_seed(0)
    sam = Sam2Model(Sam2Config(**(fields | {"mask_decoder_config": decoder})))
    scale_initialization(sam, 1.0)
    shared = sam.prompt_encoder.shared_embedding.positional_embedding
    sam.shared_image_embedding.positional_embedding.data.copy_(shared)
    return sam.eval()


def save_language(kind: str, folder: Path) -> None:
    model, processor = make_language(kind)
    model.save_pretrained(folder)
    processor.save(folder)

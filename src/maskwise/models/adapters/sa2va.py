"""Sa2VA on Qwen-VL (Yuan et al. 2025): the answer contains [SEG] tokens, and the state of each prompts SAM 2.

The published folders need code of their own. This adapter runs none of it: it reads their weights into the classes of
transformers. The names of the weights were taken from the authors' classes, not from a published file; a folder with
other names is refused with an error that lists some of them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig, Sam2Config, Sam2Model

from maskwise.errors import ModelError
from maskwise.language.requests import to_noun_phrase
from maskwise.models.adapters.qwen_sam2 import (
    QwenSam2,
    QwenSam2Image,
    WrittenAnswer,
    choose_device,
    load_complete,
)
from maskwise.models.vlm.build import build_processor
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.pretrained import read_architecture
from maskwise.models.vlm.vision_language import find_vision_language_class
from maskwise.schema import Answer, Prediction

SEG = "[SEG]"
PIXELS = {"shortest_edge": 512 * 28 * 28, "longest_edge": 2048 * 28 * 28}
"""The fewest and most pixels that the language model sees; the names are those of transformers."""

LANGUAGE = "model."
SAM2 = "grounding_encoder.sam2_model."
PROJECTOR = "text_hidden_fcs."
"""How the names of the three parts of a checkpoint begin."""

SAM2_LARGE: dict[str, Any] = {
    "vision_config": {
        "backbone_config": {
            "model_type": "sam2_hiera_det_model",
            "hidden_size": 144,
            "num_attention_heads": 2,
            "blocks_per_stage": [2, 6, 36, 4],
            "embed_dim_per_stage": [144, 288, 576, 1152],
            "num_attention_heads_per_stage": [2, 4, 8, 16],
            "global_attention_blocks": [23, 33, 43],
            "window_size_per_stage": [8, 4, 16, 8],
        },
        "backbone_channel_list": [1152, 576, 288, 144],
    },
    "prompt_encoder_config": {},
    "mask_decoder_config": {},
}

VIDEO = re.compile(r"memory_|maskmem_|no_mem_pos|no_obj_|obj_ptr|mask_downsample\.")
"""Weights of SAM 2 that are used for videos only."""

HEAD = (
    r"(output_hypernetworks_mlps\.\d+|iou_prediction_head|pred_obj_score_head)\.layers"
)
SAM2_NAMES = [
    (r"^image_encoder\.trunk\.", "vision_encoder.backbone."),
    (r"^image_encoder\.neck\.convs\.(\d+)\.conv\.", r"vision_encoder.neck.convs.\1."),
    (r"^sam_(prompt_encoder|mask_decoder)\.", r"\1."),
    (r"^no_mem_embed$", "no_memory_embedding"),
    (r"patch_embed\.proj\.", "patch_embed.projection."),
    (
        r"pe_layer\.positional_encoding_gaussian_matrix",
        "shared_embedding.positional_embedding",
    ),
    (r"mask_downscaling\.0\.", "mask_embed.conv1."),
    (r"mask_downscaling\.1\.", "mask_embed.layer_norm1."),
    (r"mask_downscaling\.3\.", "mask_embed.conv2."),
    (r"mask_downscaling\.4\.", "mask_embed.layer_norm2."),
    (r"mask_downscaling\.6\.", "mask_embed.conv3."),
    (r"output_upscaling\.0\.", "upscale_conv1."),
    (r"output_upscaling\.1\.", "upscale_layer_norm."),
    (r"output_upscaling\.3\.", "upscale_conv2."),
    (HEAD + r"\.0\.", r"\1.proj_in."),
    (HEAD + r"\.1\.", r"\1.layers.0."),
    (HEAD + r"\.2\.", r"\1.proj_out."),
    (r"\.mlp\.layers\.0\.", ".mlp.proj_in."),
    (r"\.mlp\.layers\.1\.", ".mlp.proj_out."),
    (r"\.norm", ".layer_norm"),
    (r"\.out_proj\.", ".o_proj."),
]
"""Names of weights in the authors' SAM 2 and in transformers, applied in order."""


class Sa2va:
    """checkpoint: a downloaded folder. segmenter: a folder or hub name whose config describes the SAM 2 inside the
    checkpoint; by default it is the large one.
    """

    name = "sa2va"

    def __init__(
        self,
        checkpoint: str,
        segmenter: str | None = None,
        max_new_tokens: int = 2048,
        batch_size: int = 4,
        device: str | None = None,
    ) -> None:
        folder = Path(checkpoint)
        device = choose_device(device)
        weights = read_weights(folder)
        tied = "lm_head.weight" not in weights[LANGUAGE]
        language_config = read_language_config(folder, tied=tied)
        architecture = read_architecture(language_config)
        language = load_complete(
            find_vision_language_class(architecture.model_type),
            None,
            checkpoint,
            config=architecture,
            state_dict=weights[LANGUAGE],
            dtype="auto",
        )
        sam_config = _read_sam2_config(segmenter)
        sam = load_complete(
            Sam2Model,
            None,
            checkpoint,
            config=sam_config,
            state_dict=translate_sam2(weights[SAM2]),
            dtype="auto",
        )
        settings = VlmConfig(
            vision_language=language_config,
            segmenter=Pretrained(config=sam_config.to_dict()),
            seg_tokens=(SEG, SEG),
            max_new_tokens=max_new_tokens,
        )
        processor = build_processor(settings, folder)
        processor.image_processor.size = PIXELS
        self.model = QwenSam2(
            language.to(device), sam.to(device), processor, batch_size=batch_size
        )
        self.projector = load_projector(weights[PROJECTOR], folder).to(device).eval()
        self.config = {
            "checkpoint": checkpoint,
            "segmenter": segmenter,
            "max_new_tokens": max_new_tokens,
        }

    @torch.inference_mode()
    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question; both networks encode the image once."""
        encoded = self.model.encode(image)
        requests = [write_request(question) for question in questions]
        answers = self.model.write(encoded, requests)
        return [self._to_prediction(encoded, answer) for answer in answers]

    def _to_prediction(
        self, image: QwenSam2Image, written: WrittenAnswer
    ) -> Prediction:
        """A region per [SEG], and the answer without them."""
        seg = self.model.processor.seg_token_ids[0]
        places = [place for place, token in enumerate(written.tokens) if token == seg]
        regions = self.model.draw(image, self._prompts(written.states[places]))
        words = [token for token in written.tokens if token != seg]
        text = self.model.processor.decode(words)
        # Where a [SEG] was removed before a mark, a space is left.
        tidy = re.sub(r"\s+([.,])", r"\1", text).strip()
        return Prediction(
            answer=Answer(text=tidy),
            mask_type="visible",
            regions=regions,
            no_target=not regions,
        )

    def _prompts(self, states: Tensor) -> Tensor:
        """SAM 2's prompt vectors [n, 3, width]: two that stand for no point, and the projected state."""
        sam = self.model.sam
        projector_dtype = next(self.projector.parameters()).dtype
        sam_dtype = next(sam.parameters()).dtype
        projected = self.projector(states.to(projector_dtype))
        vectors = projected.to(sam_dtype)[:, None]
        no_point = sam.prompt_encoder.not_a_point_embed.weight[None]
        return torch.cat([no_point.expand(len(vectors), 2, -1), vectors], dim=1)


def write_request(question: str) -> str:
    """A question as the model was trained: "Please segment {x} in this image.", or the question with a request."""
    if question.rstrip().endswith("?"):
        return f"{question.strip()} Please respond with segmentation mask."
    return f"Please segment {to_noun_phrase(question)} in this image."


def read_weights(folder: Path) -> dict[str, dict[str, Tensor]]:
    """The weights of a folder's safetensors by part (LANGUAGE, SAM2, PROJECTOR), without the beginnings of names."""
    parts: dict[str, dict[str, Tensor]] = {LANGUAGE: {}, SAM2: {}, PROJECTOR: {}}
    names: list[str] = []
    for path in sorted(folder.glob("*.safetensors")):
        try:
            weights = load_file(path)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{path}: {error}") from None
        names += weights
        for name, value in weights.items():
            start = next((start for start in parts if name.startswith(start)), None)
            if start is not None:
                parts[start][name.removeprefix(start)] = value
    absent = [start for start, part in parts.items() if not part]
    if absent:
        raise ModelError(
            f"{folder}: cannot be loaded: expected a folder of Sa2VA on Qwen-VL with safetensors; no weight's name "
            f"begins with {' or '.join(absent)} (found: {', '.join(names[:3]) or 'no weights'})"
        )
    return parts


def read_language_config(folder: Path, *, tied: bool) -> Pretrained:
    """The Qwen-VL config inside that of Sa2VA. tied: input and output embeddings are the same weights."""
    try:
        fields = msgspec.json.decode(
            (folder / "config.json").read_bytes(), type=dict[str, Any]
        )
        kind = fields["text_config"]["model_type"].removesuffix("_text")
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        raise ModelError(
            f"{folder / 'config.json'}: expected the config of Sa2VA on Qwen-VL with text_config.model_type"
        ) from None
    config = dict(fields)
    # These name the authors' code, which is not run.
    for name in ("auto_map", "architectures", "template"):
        config.pop(name, None)
    config["model_type"] = kind
    config["text_config"] = fields["text_config"] | {"tie_word_embeddings": tied}
    config["tie_word_embeddings"] = tied
    return Pretrained(config=config)


def translate_sam2(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the authors' SAM 2 by their names in transformers, without those for videos."""
    translated = {
        translate_name(name): weight
        for name, weight in weights.items()
        if not VIDEO.match(name)
    }
    # The authors keep one table per kind of point, transformers one for all four.
    point_tables = []
    for kind in range(4):
        name = f"prompt_encoder.point_embeddings.{kind}.weight"
        if name in translated:
            point_tables.append(translated.pop(name))
    if point_tables:
        translated["prompt_encoder.point_embed.weight"] = torch.cat(point_tables)
    # transformers has the same positional embedding under two names.
    position = translated.get("prompt_encoder.shared_embedding.positional_embedding")
    if position is not None:
        translated["shared_image_embedding.positional_embedding"] = position.clone()
    return translated


def translate_name(name: str) -> str:
    """The name of a weight of the authors' SAM 2 in transformers."""
    for pattern, new in SAM2_NAMES:
        name = re.sub(pattern, new, name)
    return name


def load_projector(weights: Mapping[str, Tensor], folder: Path) -> nn.Sequential:
    """Linear, ReLU, Linear: from the language model's states to SAM 2's prompts."""
    try:
        first = nn.Linear(*weights["0.weight"].shape[::-1])
        last = nn.Linear(*weights["2.weight"].shape[::-1])
        projector = nn.Sequential(first, nn.ReLU(), last)
        projector.load_state_dict(dict(weights))
    except (KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"{folder}: {PROJECTOR}*: {error}") from None
    return projector.to(weights["0.weight"].dtype)


def _read_sam2_config(name: str | None) -> Any:
    if name is None:
        return Sam2Config(**SAM2_LARGE)
    try:
        fields = AutoConfig.from_pretrained(name, trust_remote_code=False).to_dict()
    except OSError as error:
        raise ModelError(f"{name}: no config of SAM 2: {error}") from None
    return Sam2Config.from_dict(fields)

"""A model in one self-contained folder; both networks are folders of transformers that other programs can load.

vlm_config.json            the settings; written last
vision_language/           the vision-language model, its tokenizer and image processor
adapters/                  LoRA adapters in the layout of peft, if they are not merged
segmenter/                 the segmenter, its visible mask decoder included
heads.safetensors          projector, amodal mask decoder and optional parts
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from maskwise.errors import ModelError
from maskwise.models.vlm.adapters import load_adapters
from maskwise.models.vlm.build import build_model, build_processor
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.pretrained import quiet
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.store.atomic import atomic_write

CONFIG_FILE = "vlm_config.json"
HEADS_FILE = "heads.safetensors"
LANGUAGE = "vision_language"
SEGMENTER = "segmenter"
ADAPTERS = "adapters"

SEGMENTER_NAMES = {
    "segmenter.encoder.": "vision_encoder.",
    "segmenter.position.": "shared_image_embedding.",
    "segmenter.no_mask.": "prompt_encoder.no_mask_embed.",
    "segmenter.no_memory": "no_memory_embedding",
    "decoders.visible.": "mask_decoder.",
}
"""Names of weights here and in transformers. Its prompt encoder for points and boxes is not used and not stored."""


def save_folder(model: VlmModel, processor: VlmProcessor, folder: Path) -> None:
    """Write a model; the config comes last, so that its presence means complete."""
    language: PreTrainedModel = model.vision_language.model
    (folder / CONFIG_FILE).unlink(missing_ok=True)
    with quiet():
        language.save_pretrained(folder / LANGUAGE)
    processor.save(folder / LANGUAGE)
    save_heads(model, folder)
    own = msgspec.structs.replace(
        model.config, vision_language=Pretrained(name=LANGUAGE)
    )
    save_config(own, folder)


def save_heads(model: VlmModel, folder: Path) -> None:
    """Write the segmenter and everything that is not part of the vision-language model."""
    segmenter, heads = split_weights(model.state_dict())
    model.segmenter.architecture.save_pretrained(folder / SEGMENTER)
    save_file(
        segmenter, folder / SEGMENTER / "model.safetensors", metadata={"format": "pt"}
    )
    save_file(heads, folder / HEADS_FILE)


def save_config(config: VlmConfig, folder: Path) -> None:
    """Write the settings; the segmenter is that of the folder."""
    own = msgspec.structs.replace(config, segmenter=Pretrained(name=SEGMENTER))
    with atomic_write(folder / CONFIG_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(own)))


def split_weights(
    weights: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights of the segmenter by their names in transformers, and those of the heads by their own."""
    segmenter: dict[str, Tensor] = {}
    heads: dict[str, Tensor] = {}
    for name, value in weights.items():
        start = next(
            (start for start in SEGMENTER_NAMES if name.startswith(start)), None
        )
        if start is not None:
            segmenter[SEGMENTER_NAMES[start] + name.removeprefix(start)] = (
                value.contiguous()
            )
        elif not name.startswith("vision_language."):
            heads[name] = value.contiguous()
    return segmenter, heads


def read_folder_config(folder: Path) -> VlmConfig:
    """The config of a model in a folder, with the paths of its networks."""
    try:
        config = msgspec.json.decode(
            (folder / CONFIG_FILE).read_bytes(), type=VlmConfig
        )
    except OSError:
        raise ModelError(
            f"{folder}: no model: expected the files {CONFIG_FILE} and {HEADS_FILE}, which `maskwise train` and "
            f"`maskwise export` write"
        ) from None
    except msgspec.MsgspecError as error:
        raise ModelError(f"{folder / CONFIG_FILE}: {error}") from None
    return msgspec.structs.replace(
        config,
        vision_language=_located(config.vision_language, folder, LANGUAGE),
        segmenter=_located(config.segmenter, folder, SEGMENTER),
    )


def load_folder(folder: Path, device: str = "cpu") -> tuple[VlmModel, VlmProcessor]:
    """The model and the processor of a folder, in evaluation mode."""
    config = read_folder_config(folder)
    saved = folder / LANGUAGE
    processor = build_processor(config, saved if saved.exists() else None)
    model = build_model(config, processor)
    if (folder / ADAPTERS).exists():
        load_adapters(model.vision_language.model, folder / ADAPTERS)
    load_heads(model, folder / HEADS_FILE)
    # The record of a run compares configs; the place of the folder is no part of the model.
    model.config = msgspec.json.decode(
        (folder / CONFIG_FILE).read_bytes(), type=VlmConfig
    )
    return model.to(device).eval(), processor


OPTIONAL_PARTS = (
    "decoders.occlusion_head.",
    "decoders.occlusion_map.",
    "mask_type_head.",
    "segmenter.early.",
)
"""Parts that a model may have or not; training can add one to a model that was trained without it."""


def load_heads(model: VlmModel, path: Path, *, add_parts: bool = False) -> None:
    """Load what a folder holds beside the two networks: projector, amodal decoder and optional parts.

    add_parts: optional parts that the folder has no weights of stay as they are.
    """
    try:
        heads = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: {error}") from None
    expected = split_weights(model.state_dict())[1]
    for part in OPTIONAL_PARTS if add_parts else ():
        if not any(name.startswith(part) for name in heads):
            expected = {
                name: value
                for name, value in expected.items()
                if not name.startswith(part)
            }
    wrong = [
        name
        for name in {**heads, **expected}
        if name not in heads
        or name not in expected
        or heads[name].shape != expected[name].shape
    ]
    if wrong:
        raise ModelError(
            f"{path}: the weights do not fit the config: {', '.join(sorted(wrong)[:3])}"
        )
    model.load_state_dict(heads, strict=False)


def _located(part: Pretrained, folder: Path, name: str) -> Pretrained:
    return Pretrained(name=str(folder / name)) if part.name == name else part


def weights_files(folder: Path) -> list[Path]:
    """The weights files of a model's folder, in a fixed order."""
    parts = [folder / name for name in (LANGUAGE, ADAPTERS, SEGMENTER)]
    return [
        *(path for part in parts for path in sorted(part.glob("*.safetensors"))),
        folder / HEADS_FILE,
    ]


def hash_weights(folder: Path) -> str:
    """SHA-256 of the hashes of all weights files."""
    digest = hashlib.sha256()
    for path in weights_files(folder):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()

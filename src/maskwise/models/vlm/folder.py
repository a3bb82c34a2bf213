"""A model in a folder: config.json, model.safetensors and the processor's files."""

import hashlib
from pathlib import Path

import msgspec
from safetensors.torch import load_model, save_model

from maskwise.errors import ModelError
from maskwise.models.vlm.build import build_model, build_processor
from maskwise.models.vlm.config import VlmConfig
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.store.atomic import atomic_write

CONFIG_FILE, WEIGHTS_FILE = "vlm_config.json", "model.safetensors"


def save_folder(model: VlmModel, processor: VlmProcessor, folder: Path) -> None:
    """Write a model; the config comes last, so that its presence means complete."""
    folder.mkdir(parents=True, exist_ok=True)
    processor.save(folder)
    save_model(model, str(folder / WEIGHTS_FILE))
    with atomic_write(folder / CONFIG_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(model.config)))


def read_folder_config(folder: Path) -> VlmConfig:
    """The config of a model in a folder."""
    try:
        return msgspec.json.decode((folder / CONFIG_FILE).read_bytes(), type=VlmConfig)
    except OSError:
        raise ModelError(
            f"{folder}: no model: expected the files {CONFIG_FILE} and {WEIGHTS_FILE}, which `maskwise train` and "
            f"`maskwise export` write"
        ) from None
    except msgspec.MsgspecError as error:
        raise ModelError(f"{folder / CONFIG_FILE}: {error}") from None


def load_folder(folder: Path, device: str = "cpu") -> tuple[VlmModel, VlmProcessor]:
    """The model and the processor of a folder, in evaluation mode."""
    config = read_folder_config(folder)
    processor = build_processor(config, folder)
    model = build_model(config, processor, weights=False)
    try:
        load_model(model, str(folder / WEIGHTS_FILE))
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{folder / WEIGHTS_FILE}: the weights do not fit the config: {error}") from None
    return model.to(device).eval(), processor


def hash_weights(folder: Path) -> str:
    """SHA-256 of the weights file."""
    with (folder / WEIGHTS_FILE).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

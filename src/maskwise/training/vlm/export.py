"""Write the model of a run as one folder that `--model vlm --model-option checkpoint=FOLDER` loads."""

from pathlib import Path

import msgspec
from peft import LoraModel

from maskwise.errors import MaskwiseError
from maskwise.models.vlm.adapters import save_adapters
from maskwise.models.vlm.build import build_model, build_processor
from maskwise.models.vlm.folder import (
    ADAPTERS,
    CONFIG_FILE,
    LANGUAGE,
    save_config,
    save_folder,
    save_heads,
    weights_files,
)
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.checkpoints import (
    find_stage_weights,
    find_trained_stage,
    read_tensors,
    restore_weights,
)
from maskwise.training.vlm.config import VlmTrainingConfig
from maskwise.training.vlm.lora import add_lora, merge_lora


def export_run(run: Path, out: Path, checkpoint: int | str | None = None) -> list[Path]:
    """Write the model of a run, its adapters merged; returns the files.

    checkpoint: as for `find_stage_weights`, of the stage that was trained last; by default the run has to be finished.
    """
    model, processor, adapted = load_run(run, checkpoint)
    if adapted is not None:
        model.vision_language.model = merge_lora(adapted)
    save_folder(model, processor, out)
    return exported_files(out)


def export_adapters(
    run: Path, out: Path, checkpoint: int | str | None = None
) -> list[Path]:
    """Write the model of a run with its adapters beside the weights that they adapt.

    Weights with a hub name are not copied: the folder refers to them.
    """
    model, processor, adapted = load_run(run, checkpoint)
    if adapted is None:
        raise MaskwiseError(
            f"{run} has no adapters: its config has no section [lora]; export it without this option"
        )
    save_adapters(adapted, out / ADAPTERS)
    model.vision_language.model = adapted.unload()
    if model.config.vision_language.name is None:
        save_folder(model, processor, out)
    else:
        save_heads(model, out)
        processor.save(out / LANGUAGE)
        save_config(model.config, out)
    return exported_files(out)


def exported_files(folder: Path) -> list[Path]:
    """The files of an exported model: its config, and its weights."""
    return [folder / CONFIG_FILE, *weights_files(folder)]


def load_run(
    run: Path, checkpoint: int | str | None = None
) -> tuple[VlmModel, VlmProcessor, LoraModel | None]:
    """The model of a run in evaluation mode, its processor, and its adapters, if it has any."""
    config = read_run_config(run)
    stages = [stage.name for stage in config.stages]
    stage = stages[-1] if checkpoint is None else find_trained_stage(run, stages)
    path = find_stage_weights(run, stage, checkpoint)
    processor = build_processor(config.vlm, run / "processor")
    model = build_model(config.vlm, processor)
    adapted = None
    if config.lora is not None:
        adapted = add_lora(
            model.vision_language.model, config.lora, model.seg_token_ids
        )
    restore_weights(model, read_tensors(path))
    return model.eval(), processor, adapted


def read_run_config(run: Path) -> VlmTrainingConfig:
    """The config that a run was started with."""
    path = run / "config.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=VlmTrainingConfig)
    except (OSError, msgspec.MsgspecError) as error:
        raise MaskwiseError(f"{path}: {error}") from None

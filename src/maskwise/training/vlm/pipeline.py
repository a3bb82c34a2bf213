"""A training run of the vision-language model, stage after stage. Running it again continues where it stopped.

    config.json                      the settings
    processor/                       tokenizer and image processor
    stages/STAGE.safetensors         the weights after a stage
    checkpoints/STAGE/step-N/        training state
    STAGE.jsonl, events/             training curves
    skipped.jsonl                    samples that could not be used, with the reason
    val/                             held-out scenes of the world, if the config asks for them
    vlm_config.json, heads.safetensors, vision_language/, segmenter/
                                     the model, adapters merged, as `--model-option checkpoint=FOLDER` loads it

Every stage builds a new model and loads the weights of the stage before it, so a stage that has its weights is never
repeated.
"""

import gc
import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import torch
from accelerate import PartialState
from accelerate.utils import set_seed

from maskwise.engines import launch_training
from maskwise.errors import ConfigError, MaskwiseError, MissingDependencyError
from maskwise.models.vlm.build import build_model, build_processor
from maskwise.models.vlm.folder import HEADS_FILE, load_heads
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.checkpoints import (
    gather_weights,
    load_stage_weights,
    stage_weights_path,
    write_tensors,
)
from maskwise.training.loop import run_training
from maskwise.training.trackers import chosen_trackers, tracking
from maskwise.training.trainers import record_config
from maskwise.training.vlm.acceleration import compile_layers, set_attention
from maskwise.training.vlm.config import Stage, VlmTrainingConfig, read_config
from maskwise.training.vlm.dataset_sources import Source
from maskwise.training.vlm.dry_run import dry_run
from maskwise.training.vlm.export import export_adapters, export_run, exported_files
from maskwise.training.vlm.freezing import freeze, keep_float32, trained_names
from maskwise.training.vlm.lora import add_lora
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.training.vlm.sources import TrainingItems, open_source
from maskwise.training.vlm.stage_task import make_stage_accelerator, make_task
from maskwise.training.vlm.usable_items import UsableItems
from maskwise.training.vlm.validation import open_held_out, validate

__all__ = ["dry_run", "export_adapters", "export_run", "read_config", "train"]

WITHOUT_EFFECT = (
    "threads",
    "log_every",
    "checkpoint_every",
    "keep_checkpoints",
    "loader_workers",
    "max_skipped",
    "validation",
    "execution",
)
"""Settings that may change between parts of a run, because the result does not depend on them."""

NEW_MODULES = ("projector.", "decoders.", "segmenter.early.", "mask_type_head.")
"""Parts that no pretrained model has, or of which only one of two does."""


def train(config: VlmTrainingConfig, folder: Path) -> list[Path]:
    """All stages, in this process or on Ray; returns the files of the model."""
    check_losses(config)
    execution = config.execution
    if execution.engine == "local":
        if execution.workers not in (None, 1):
            raise ConfigError(
                f"execution: the local engine trains in one process, not "
                f'{execution.workers}; use engine = "ray", or start several processes '
                "with accelerate launch (docs/guides/training.md)"
            )
        return train_here(config, folder)
    settings = {
        "config": msgspec.json.encode(config).decode(),
        "folder": str(folder.absolute()),
        "trackers": chosen_trackers(),
    }
    launch_training(
        _train_in_worker,
        settings,
        execution,
        folder=folder,
        restarts=execution.restarts,
    )
    return exported_files(folder)


def _train_in_worker(settings: dict[str, Any]) -> None:
    """What a worker of Ray does: the same as a process of torchrun.

    Ray has set up the process group.
    """
    config = msgspec.json.decode(settings["config"], type=VlmTrainingConfig)
    if not config.execution.gpus_per_worker:
        os.environ["ACCELERATE_USE_CPU"] = "true"
    with tracking(settings["trackers"]):
        train_here(config, Path(settings["folder"]))


def train_here(config: VlmTrainingConfig, folder: Path) -> list[Path]:
    """All stages; returns the files of the model. All processes of a distributed run call this."""
    process = PartialState(cpu=not torch.cuda.is_available())
    if config.threads:
        torch.set_num_threads(config.threads)
    with process.main_process_first():
        folder.mkdir(parents=True, exist_ok=True)
        record_config(config, folder, ignored=WITHOUT_EFFECT)
        processor = load_processor(config, folder)
        held_out = (
            open_held_out(config.validation, folder / "val")
            if config.validation
            else None
        )
    sources = open_sources(config)
    config = config.with_steps({name: len(source) for name, source in sources.items()})

    def validate_stage(model: VlmModel) -> dict[str, float]:
        if config.validation is None or held_out is None:
            return {}
        return validate(model, processor, held_out, config.validation.limit)

    stage_before: Stage | None = None
    for stage in config.stages:
        if not stage_weights_path(folder, stage.name).exists():
            train_stage(
                config,
                stage,
                stage_before,
                folder,
                processor=processor,
                sources=sources,
                validate=validate_stage,
            )
            # What the stage leaves in reference cycles would double the memory of the next one.
            gc.collect()
        stage_before = stage
    return export_run(folder, folder) if process.is_main_process else []


def train_stage(
    config: VlmTrainingConfig,
    stage: Stage,
    stage_before: Stage | None,
    folder: Path,
    *,
    processor: VlmProcessor,
    sources: Mapping[str, Source],
    validate: Callable[[VlmModel], dict[str, float]],
) -> None:
    """One stage: a new model with the weights of the stage before, trained to the end of the stage."""
    optimization = config.optimization_of(stage)
    set_seed(config.seed)
    model = build_training_model(config, processor)
    names = stored_names(model, config)
    if stage_before is not None:
        weights = stage_weights_path(folder, stage_before.name)
        load_stage_weights(model, weights, names)
    number = config.stages.index(stage)
    items = TrainingItems(
        sources,
        config.rates_of(stage),
        config.augmentation,
        questions_per_image=optimization.questions_per_image,
        seed=config.seed + number,
    )
    usable = UsableItems(
        items,
        processor,
        positions=config.schedule_of(stage).steps * optimization.batch_size,
        max_skipped=config.max_skipped,
        log=folder / "skipped.jsonl",
    )
    if stage.grpo is not None:
        prepare_stage(config, stage, model)
        grpo = load_grpo()
        grpo.run_grpo(config, stage, model, processor, items=usable, folder=folder)
        write_tensors(
            stage_weights_path(folder, stage.name), gather_weights(model, names)
        )
        return
    accelerator = make_stage_accelerator(config, optimization)
    task = make_task(
        config,
        stage,
        prepare_stage(config, stage, model),
        processor,
        items=usable,
        stored_names=names,
        validate=validate,
    )
    run_training(task, config.schedule_of(stage), folder, accelerator)
    # The accelerator of accelerate is kept by its shared state; the model must not be.
    accelerator.free_memory()


def load_grpo() -> ModuleType:
    """The module of stages of GRPO; MissingDependencyError without TRL, which no other stage needs."""
    try:
        return importlib.import_module("maskwise.training.vlm.grpo")
    except ModuleNotFoundError as error:
        if error.name in ("trl", "datasets"):
            raise MissingDependencyError(
                "a stage of GRPO", error.name, extra="grpo"
            ) from None
        raise


def check_losses(config: VlmTrainingConfig) -> None:
    """Refuse a loss that the model has no output for."""
    for stage in config.stages:
        losses = config.losses_of(stage)
        for loss, part in (
            ("occlusion", "occlusion_head"),
            ("occlusion_map", "occlusion_map"),
        ):
            if getattr(losses, loss) and not getattr(config.vlm, part):
                raise ConfigError(
                    f"stage {stage.name!r}: the loss `{loss}` needs a part of the model that is off; set {part} = true "
                    "in [vlm]"
                )


def open_sources(config: VlmTrainingConfig) -> dict[str, Source]:
    """The sources by name; ConfigError names one that cannot be opened."""
    sources = {}
    for name, source in config.sources.items():
        try:
            sources[name] = open_source(source)
        except MaskwiseError as error:
            raise ConfigError(f"[sources.{name}]: {error}") from None
    return sources


def load_processor(config: VlmTrainingConfig, folder: Path) -> VlmProcessor:
    """The processor of a run: that of its folder, or a new one, which is saved there."""
    saved = folder / "processor"
    if saved.exists():
        return build_processor(config.vlm, saved)
    processor = new_processor(config.vlm)
    partial = folder / "processor.partial"
    processor.save(partial)
    partial.rename(saved)
    return processor


def build_training_model(
    config: VlmTrainingConfig, processor: VlmProcessor
) -> VlmModel:
    """The model with adapters, if the config has them; the rows of the segmentation tokens are trained as well."""
    quantized = config.lora is not None and config.lora.quantization is not None
    model = build_model(config.vlm, processor, quantized=quantized)
    if config.init is not None:
        load_heads(model, Path(config.init) / HEADS_FILE, add_parts=True)
    if config.lora is not None:
        add_lora(model.vision_language.model, config.lora, model.seg_token_ids)
    # Before weights of an earlier stage are loaded, which would be rounded to the dtype of the model.
    for stage in config.stages:
        keep_float32(model, trained_names(model, stage.freeze))
    return model


def prepare_stage(config: VlmTrainingConfig, stage: Stage, model: VlmModel) -> VlmModel:
    """Freeze what the stage does not train, and set its losses and how its forwards are computed."""
    freeze(model, stage.freeze)
    model.config = msgspec.structs.replace(model.config, losses=config.losses_of(stage))
    set_attention(model, config.attention, config.precision)
    if config.compile:
        compile_layers(model)
    if config.gradient_checkpointing:
        model.vision_language.model.gradient_checkpointing_enable(
            {"use_reentrant": False}
        )
    return model.train()


def stored_names(model: VlmModel, config: VlmTrainingConfig) -> frozenset[str]:
    """The weights that a run stores: those it trains, and those that no pretrained model has."""
    new_modules = list(NEW_MODULES)
    if config.vlm.vision_language.name is None:
        new_modules.append("vision_language.")
    if config.vlm.segmenter.name is None:
        new_modules.append("segmenter.")
    stored = set()
    for stage in config.stages:
        stored.update(trained_names(model, stage.freeze))
    stored.update(
        name for name in model.state_dict() if name.startswith(tuple(new_modules))
    )
    # A tied output layer is in the state dict, but not among the parameters; some buffers are not in the state dict.
    parameters = {name for name, _ in model.named_parameters()}
    buffers = {name for name, _ in model.named_buffers()}
    return frozenset(stored & (parameters | buffers) & set(model.state_dict()))

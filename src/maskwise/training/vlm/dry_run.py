"""What a training run of the vision-language model would do, without its weights: shapes on the meta device."""

from collections.abc import Mapping

import numpy as np

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.models.vlm.build import build_model
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.config_file import open_dataset
from maskwise.training.dry_run import DryRun, ParameterCount, SourcePlan, StagePlan
from maskwise.training.vlm.config import ValidationConfig, VlmTrainingConfig
from maskwise.training.vlm.freezing import trained_names
from maskwise.training.vlm.lora import add_lora
from maskwise.training.vlm.mixing import MixedOrder
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.training.vlm.sources import Source, open_source

SAMPLED_IMAGES = 32
"""Images per source whose samples are tokenized."""

PERCENTILES = (50, 90, 99, 100)

BYTES_PER_ACTIVATION = 34
"""Bytes that a transformer layer keeps per token and unit of width in 16 bits (Korthikanti et al. 2022, eq. 1, without
attention maps, which sdpa does not keep).
"""

ASSUMED_TOKENS = 1500
"""Tokens per sample where the tokenizer is not available: an image of 1280 tokens and a text."""

MODULES = {
    "adapters": ("lora_", "trainable_tokens"),
    "vision encoder": (".visual.", ".vision_tower.", ".multi_modal_projector."),
    "language model": ("vision_language.",),
    "segmenter": ("segmenter.",),
    "mask decoders": ("decoders.",),
    "projector": ("projector.",),
    "mask-type head": ("mask_type_head.",),
}
"""The parts of the model by what their parameters' names contain; the first that matches counts."""


def dry_run(config: VlmTrainingConfig) -> DryRun:
    """Parameters, memory, steps, samples and tokens of a run. Nothing is downloaded or trained."""
    model = build_model(config.vlm, device="meta")
    if config.lora is not None:
        add_lora(
            model.vision_language.model, config.lora, range(len(config.vlm.seg_tokens))
        )
    trained = {
        stage.name: set(trained_names(model, stage.freeze)) for stage in config.stages
    }
    sources, notes = _open_sources(config)
    notes += _check_validation(config.validation)
    tokens = _count_tokens(config, sources, notes)
    return DryRun(
        model="vlm",
        parameters=_parameters(model, set().union(*trained.values())),
        stages=tuple(
            StagePlan(
                name=stage.name,
                steps=stage.steps,
                batch_size=config.optimization_of(stage).batch_size,
                trainable=_count(model, trained[stage.name]),
            )
            for stage in config.stages
        ),
        sources=_sources(config, sources),
        memory=_memory(
            config,
            model,
            max(trained.values(), key=len),
            tokens.get("p99", ASSUMED_TOKENS),
        ),
        tokens=tokens,
        notes=(
            *notes,
            "Memory is for one process without sharding; activations are a rough estimate.",
        ),
    )


def _parameters(model: VlmModel, trained: set[str]) -> tuple[ParameterCount, ...]:
    counts = {module: [0, 0] for module in MODULES}
    for name, parameter in model.named_parameters():
        module = next(
            module
            for module, parts in MODULES.items()
            if any(part in name for part in parts)
        )
        counts[module][name not in trained] += parameter.numel()
    return tuple(
        ParameterCount(module=module, trainable=count[0], frozen=count[1])
        for module, count in counts.items()
        if sum(count)
    )


def _count(model: VlmModel, names: set[str]) -> int:
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if name in names
    )


def _open_sources(
    config: VlmTrainingConfig,
) -> tuple[dict[str, Source | None], list[str]]:
    """The sources, None for one that is not on this machine, with notes that say so."""
    sources: dict[str, Source | None] = {}
    notes = []
    for name, source in config.sources.items():
        try:
            sources[name] = open_source(source)
        except MaskwiseError as error:
            sources[name] = None
            notes.append(f"source {name} cannot be opened here: {error}")
    return sources, notes


def _check_validation(config: ValidationConfig | None) -> list[str]:
    """Notes on datasets to validate on that are not on this machine."""
    notes = []
    for folder in () if config is None else config.dataset_folders():
        try:
            open_dataset(folder, images=config.images if config else None)
        except ConfigError as error:
            notes.append(f"a dataset of [validation] cannot be opened here: {error}")
    return notes


def _sources(
    config: VlmTrainingConfig, sources: Mapping[str, Source | None]
) -> tuple[SourcePlan, ...]:
    drawn = dict.fromkeys(sources, 0.0)
    for number, stage in enumerate(config.stages):
        optimization = config.optimization_of(stage)
        rates = config.rates_of(stage)
        order = MixedOrder(dict.fromkeys(rates, 1), rates, config.seed + number)
        for name, images in order.expected(
            stage.steps * optimization.batch_size
        ).items():
            source = sources[name]
            per_image = source.samples / len(source) if source else 1
            drawn[name] += images * min(optimization.questions_per_image, per_image)
    return tuple(
        SourcePlan(
            name=name,
            images=len(source) if source else None,
            samples=source.samples if source else None,
            drawn=round(drawn[name]) if source else None,
        )
        for name, source in sources.items()
    )


# -- tokens


def _count_tokens(
    config: VlmTrainingConfig, sources: Mapping[str, Source | None], notes: list[str]
) -> dict[str, int]:
    """Percentiles of tokens per sample, image tokens included, over some images of each source."""
    try:
        processor = new_processor(config.vlm)
    except MaskwiseError as error:
        notes.append(f"tokens per sample are not counted: {error}")
        return {}
    counts = [
        count
        for source in sources.values()
        if source
        for index in np.linspace(0, len(source) - 1, min(SAMPLED_IMAGES, len(source)))
        .astype(int)
        .tolist()
        for count in _tokens_of(source, index, processor)
    ]
    if not counts:
        return {}
    values = np.percentile(counts, PERCENTILES, method="higher")
    return {
        f"p{rank}" if rank < 100 else "max": int(value)
        for rank, value in zip(PERCENTILES, values)
    }


def _tokens_of(source: Source, index: int, processor: VlmProcessor) -> list[int]:
    item = source[index]
    images = [] if item.image is None else [item.image]
    image_tokens = sum(processor.encode_images(images).token_counts)
    lengths = []
    for sample in item.samples:
        tokens, _, _ = processor.encode_turn(sample, image_tokens, answer=True)
        lengths.append(len(tokens))
    return lengths


# -- memory


def _memory(
    config: VlmTrainingConfig, model: VlmModel, trained: set[str], tokens: int
) -> dict[str, int]:
    """Bytes per process: trained weights, gradients and moments in float32, frozen weights in the model's dtype."""
    trainable = _count(model, trained)
    frozen = sum(parameter.numel() for parameter in model.parameters()) - trainable
    stored = 2 if config.vlm.dtype == "bfloat16" else 4
    return {
        "weights": frozen * stored + trainable * 4,
        "gradients": trainable * 4,
        "optimizer": trainable * 8,
        "activations": _activations(config, model, tokens),
    }


def _activations(config: VlmTrainingConfig, model: VlmModel, tokens: int) -> int:
    """What the language model keeps for the backward pass, and the logits of answers of an eighth of the tokens."""
    text = model.vision_language.model.config.get_text_config()
    rows = (
        config.optimization.micro_batch_size * config.optimization.questions_per_image
    )
    scale = 1 if config.precision == "bf16" else 2
    layer = rows * tokens * text.hidden_size * BYTES_PER_ACTIVATION * scale
    between = rows * tokens * text.hidden_size * 2 * scale
    layers = int(text.num_hidden_layers)
    kept = layer + layers * between if config.gradient_checkpointing else layers * layer
    logits = rows * (tokens // 8) * text.vocab_size * 4 * 2
    return int(kept + logits)

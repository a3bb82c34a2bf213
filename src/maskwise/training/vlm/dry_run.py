"""What a training run of the vision-language model would do, without its weights: shapes on the meta device."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from torch import nn

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.models.vlm.build import build_model
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.config_file import open_dataset
from maskwise.training.dry_run import DryRun, ParameterCount, SourcePlan, StagePlan
from maskwise.training.vlm.config import ValidationConfig, VlmTrainingConfig
from maskwise.training.vlm.dataset_sources import Source
from maskwise.training.vlm.freezing import trained_names
from maskwise.training.vlm.lora import add_lora
from maskwise.training.vlm.mixing import MixedOrder
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.training.vlm.sources import open_source

SAMPLED_IMAGES = 32
"""Images per source whose samples are tokenized."""

PERCENTILES = (50, 90, 99, 100)

BYTES_PER_ACTIVATION = 34
"""Bytes that a transformer layer keeps per token and unit of width in 16 bits (Korthikanti et al. 2022, eq. 1, without
attention maps, which sdpa does not keep).
"""

ASSUMED_TEXT_TOKENS = 220
"""Tokens of a question, its answer and the chat template where the tokenizer is not available."""

ASSUMED_SEG_TOKENS = 2.0
"""Segmentation tokens per sample where the samples are not available: MMR has 1.8 targets per question, and answers of
AmodalReasonSeg have two tokens per target.
"""

DECODER_BYTES = 104_000_000
"""What the two mask decoders of SAM keep for the backward pass per segmentation token, with 256 x 256 mask logits."""

DECODER_SIDE = 256
"""Side of the mask logits that DECODER_BYTES was measured with."""

NF4_BYTES = 0.516
"""Per weight in 4 bits, with its quantization constants (Dettmers et al. 2023: 0.127 bits per weight)."""

GPU_FLOPS = 312e12 * 0.4
"""Operations per second: the peak of an A100 in bf16, of which training on long sequences reaches about 40 %."""

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


class SampleLengths(NamedTuple):
    """tokens: percentiles of the tokens per sample, empty if they are not counted. image, text: the median and the 99th
    percentile of the tokens of its two parts. seg_tokens: the mean number of segmentation tokens per sample.
    """

    tokens: dict[str, int]
    image: tuple[int, int]
    text: tuple[int, int]
    seg_tokens: float


def dry_run(config: VlmTrainingConfig) -> DryRun:
    """Parameters, memory, time, steps, samples and tokens of a run. Nothing is downloaded or trained."""
    sources, notes = _open_sources(config)
    config = config.with_steps(_image_counts(config, sources))
    model = build_model(config.vlm, device="meta")
    if config.lora is not None:
        add_lora(
            model.vision_language.model, config.lora, range(len(config.vlm.seg_tokens))
        )
    trained = {
        stage.name: set(trained_names(model, stage.freeze)) for stage in config.stages
    }
    notes += _check_validation(config.validation)
    lengths = _sample_lengths(config, model, sources, notes=notes)
    plans = _sources(config, sources)
    return DryRun(
        model="vlm",
        parameters=_parameters(model, set().union(*trained.values())),
        stages=tuple(
            StagePlan(
                name=stage.name,
                steps=config.schedule_of(stage).steps,
                batch_size=config.optimization_of(stage).batch_size,
                trainable=_count(model, trained[stage.name]),
            )
            for stage in config.stages
        ),
        sources=plans,
        memory=_memory(config, model, max(trained.values(), key=len), lengths),
        tokens=lengths.tokens,
        hours=_hours(config, model, plans, lengths),
        notes=(
            *notes,
            "Memory is for one process without sharding; activations are a rough estimate. Time is for an A100 at 40 % "
            "of its peak, without validation.",
        ),
    )


def _image_counts(
    config: VlmTrainingConfig, sources: Mapping[str, Source | None]
) -> dict[str, int]:
    """How many images each source has, or should have if it is not on this machine."""
    counts = {}
    for name, source in sources.items():
        if source is not None:
            counts[name] = len(source)
        else:
            counts[name] = config.sources[name].expected_images or 0
    for stage in config.stages:
        unknown = [name for name in stage.epochs if not counts[name]]
        if unknown:
            raise ConfigError(
                f"stage {stage.name!r} counts epochs of {', '.join(unknown)}, which cannot be opened here; give "
                "expected_images in its section for a dry run"
            )
    return counts


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
    counts = _image_counts(config, sources)
    images = dict.fromkeys(sources, 0)
    samples = dict.fromkeys(sources, 0.0)
    for number, stage in enumerate(config.stages):
        optimization = config.optimization_of(stage)
        rates = config.rates_of(stage)
        order = MixedOrder(dict.fromkeys(rates, 1), rates, config.seed + number)
        positions = config.schedule_of(stage).steps * optimization.batch_size
        for name, drawn in order.expected(positions).items():
            source = sources[name]
            # A source that is not here is taken to have enough questions per image.
            per_image = float(optimization.questions_per_image)
            if source is not None:
                per_image = min(per_image, source.samples / len(source))
            images[name] += drawn
            samples[name] += drawn * per_image
    plans = []
    for name, source in sources.items():
        known = counts[name] or None
        plans.append(
            SourcePlan(
                name=name,
                images=known,
                samples=None if source is None else source.samples,
                drawn=None if known is None else round(samples[name]),
                epochs=None if known is None else images[name] / known,
            )
        )
    return tuple(plans)


# -- tokens


def _sample_lengths(
    config: VlmTrainingConfig,
    model: VlmModel,
    sources: Mapping[str, Source | None],
    *,
    notes: list[str],
) -> SampleLengths:
    """Lengths of samples, image tokens included, of some images of each source."""
    try:
        processor = new_processor(config.vlm)
    except MaskwiseError as error:
        notes.append(f"tokens per sample are not counted: {error}")
        return _assumed_lengths(config, model)
    image_lengths: list[int] = []
    text_lengths: list[int] = []
    seg_tokens: list[int] = []
    for source in sources.values():
        count = 0 if source is None else min(SAMPLED_IMAGES, len(source))
        indexes = np.linspace(0, len(source or ()) - 1, count).astype(int)
        if source is not None and source.window is not None:
            # The first ones: others of a stream come after all between them.
            indexes = np.arange(count)
        for index in indexes.tolist():
            assert source is not None
            image_tokens, turns = _turns_of(source[index], processor)
            for turn in turns:
                image_lengths.append(image_tokens)
                text_lengths.append(len(turn) - image_tokens)
                seg_tokens.append(
                    sum(token in processor.seg_token_ids for token in turn)
                )
    if not text_lengths:
        return _assumed_lengths(config, model)
    totals = [sum(parts) for parts in zip(image_lengths, text_lengths)]
    tokens: dict[str, int] = {}
    for rank, value in zip(PERCENTILES, _percentiles(totals, PERCENTILES)):
        tokens[f"p{rank}" if rank < 100 else "max"] = value
    image_median, image_most = _percentiles(image_lengths, (50, 99))
    text_median, text_most = _percentiles(text_lengths, (50, 99))
    return SampleLengths(
        tokens,
        image=(image_median, image_most),
        text=(text_median, text_most),
        seg_tokens=float(np.mean(seg_tokens)),
    )


def _assumed_lengths(config: VlmTrainingConfig, model: VlmModel) -> SampleLengths:
    """Lengths where the processor or the samples are not available: the largest images, and texts of a usual length."""
    vision = model.vision_language.model.config.vision_config
    merge = getattr(vision, "spatial_merge_size", None)
    if merge is None:
        image = (vision.image_size // vision.patch_size) ** 2
    else:
        image = config.vlm.max_pixels // (vision.patch_size * merge) ** 2
    return SampleLengths(
        {},
        image=(image, image),
        text=(ASSUMED_TEXT_TOKENS, ASSUMED_TEXT_TOKENS),
        seg_tokens=ASSUMED_SEG_TOKENS,
    )


def _percentiles(lengths: Sequence[int], ranks: Sequence[int]) -> list[int]:
    values = np.percentile(lengths, ranks, method="higher")
    return [int(value) for value in values]


def _turns_of(
    item: ImageQuestions, processor: VlmProcessor
) -> tuple[int, list[list[int]]]:
    """The number of image tokens, and the tokens of the questions and answers of the image."""
    images = [] if item.image is None else [item.image]
    image_tokens = sum(processor.encode_images(images).token_counts)
    turns = [
        processor.encode_turn(sample, image_tokens, answer=True)[0]
        for sample in item.samples
    ]
    return image_tokens, turns


def _packs(config: VlmTrainingConfig, model: VlmModel) -> bool:
    """True if the questions about an image are one sequence, in which the image is read once."""
    return model.vision_language.packs_questions and config.attention == "sdpa"


# -- memory


def _memory(
    config: VlmTrainingConfig,
    model: VlmModel,
    trained: set[str],
    lengths: SampleLengths,
) -> dict[str, int]:
    """Bytes per process: trained weights, gradients and moments in float32, frozen weights in the model's dtype."""
    trainable = _count(model, trained)
    frozen = sum(parameter.numel() for parameter in model.parameters()) - trainable
    stored = 2 if config.vlm.dtype == "bfloat16" else 4
    weights = frozen * stored
    if config.lora is not None and config.lora.quantization is not None:
        weights -= int(_quantized(model) * (stored - NF4_BYTES))
    memory = {
        "weights": weights + trainable * 4,
        "gradients": trainable * 4,
        "optimizer": trainable * 8,
        "activations": _activations(config, model, lengths),
        "mask decoders": _decoders(config, model, lengths.seg_tokens),
    }
    if config.lora is not None:
        memory["copies of embeddings"] = _embedding_copies(model) * stored
    return memory


def _quantized(model: VlmModel) -> int:
    """Weights of the vision-language model that are held in 4 bits: those of linear layers, but not of the output."""
    language = model.vision_language.model
    output = language.get_output_embeddings()
    return sum(
        module.weight.numel()
        for name, module in language.named_modules()
        if isinstance(module, nn.Linear)
        and module is not output
        and "lora_" not in name
    )


def _decoders(config: VlmTrainingConfig, model: VlmModel, seg_tokens: float) -> int:
    """What the mask decoders keep for the backward pass of one forward."""
    optimization = config.optimization
    rows = optimization.micro_batch_size * optimization.questions_per_image
    scale = (model.segmenter.sizes.mask / DECODER_SIDE) ** 2
    return int(rows * seg_tokens * DECODER_BYTES * scale)


def _embedding_copies(model: VlmModel) -> int:
    """Numbers in the copies that peft makes to train some rows of the embedding, and of an output layer of its own."""
    language = model.vision_language.model
    embedding = language.get_input_embeddings().weight
    output = language.get_output_embeddings().weight
    return int(embedding.numel() * (1 if output is embedding else 2))


def _activations(
    config: VlmTrainingConfig, model: VlmModel, lengths: SampleLengths
) -> int:
    """What the language model keeps for the backward pass of long samples, and the logits of answers, an eighth of the
    tokens of texts.
    """
    text = model.vision_language.model.config.get_text_config()
    optimization = config.optimization
    questions = optimization.questions_per_image
    images = 1 if _packs(config, model) else questions
    text_tokens = optimization.micro_batch_size * questions * lengths.text[1]
    tokens = optimization.micro_batch_size * images * lengths.image[1] + text_tokens
    scale = 1 if config.precision == "bf16" else 2
    layer = tokens * text.hidden_size * BYTES_PER_ACTIVATION * scale
    between = tokens * text.hidden_size * 2 * scale
    layers = int(text.num_hidden_layers)
    kept = layer + layers * between if config.gradient_checkpointing else layers * layer
    logits = text_tokens // 8 * text.vocab_size * 4 * 2
    return int(kept + logits)


def _hours(
    config: VlmTrainingConfig,
    model: VlmModel,
    sources: Sequence[SourcePlan],
    lengths: SampleLengths,
) -> float | None:
    """The time of all forwards and backwards on one GPU; None if a source's size is not known."""
    if any(source.drawn is None for source in sources):
        return None
    language = 0
    encoder = 0
    for name, parameter in model.named_parameters():
        if name.startswith("vision_language."):
            language += parameter.numel()
        elif name.startswith("segmenter."):
            encoder += parameter.numel()
    # A forward takes 2 operations per weight and token, the backward of frozen weights 2, of trained ones 4.
    backward = 2 if config.lora is not None else 4
    passes = 2 + backward + (2 if config.gradient_checkpointing else 0)
    samples = sum(source.drawn or 0 for source in sources)
    rows, columns = model.segmenter.embedding_size
    images = 0
    for stage in config.stages:
        batch_size = config.optimization_of(stage).batch_size
        images += config.schedule_of(stage).steps * batch_size
    read = images if _packs(config, model) else samples
    tokens = read * lengths.image[0] + samples * lengths.text[0]
    operations = passes * language * tokens + 2 * encoder * images * rows * columns
    return float(operations / GPU_FLOPS / 3600)

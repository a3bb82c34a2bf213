"""Assemble the model and its processor from a config."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    BitsAndBytesConfig,
    CLIPImageProcessorPil,
    GenerationConfig,
    PreTrainedModel,
    Qwen2VLImageProcessorPil,
)

from maskwise.errors import ConfigError, MissingDependencyError, ModelError
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.initialization import scale_initialization
from maskwise.models.vlm.mask_decoders import MaskDecoders
from maskwise.models.vlm.mask_type_head import MaskTypeHead
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.occlusion_head import OcclusionHead
from maskwise.models.vlm.occlusion_map import OcclusionMapHead
from maskwise.models.vlm.pretrained import (
    load_weights,
    loading_options,
    missing_weights,
    read_architecture,
    read_chat_template,
)
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.models.vlm.projector import PromptProjector
from maskwise.models.vlm.segmenter import (
    Segmenter,
    SegmenterSizes,
    find_segmenter_family,
    read_sizes,
)
from maskwise.models.vlm.vision_language import (
    VisionLanguage,
    find_vision_language_class,
)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

NEW_IMAGE_TOKEN = "<|image_pad|>"
"""The image token of tokenizers that are trained here; Qwen's has the same name."""


def build_model(
    config: VlmConfig,
    processor: VlmProcessor | None = None,
    *,
    device: str = "cpu",
    quantized: bool = False,
) -> VlmModel:
    """The model with the weights that the config names, or random ones.

    processor: that of the model; without it, the ids of the segmentation tokens are not known and only shapes are
    right. device: "meta" makes shapes without memory or weights. quantized: linear layers of the vision-language model,
    which needs a name, are held in 4 bits.
    """
    load = device != "meta"
    options = quantization_options(config) if quantized and load else {}
    with torch.device(device):
        language = _build_part(config, config.vision_language, load=load, **options)
        segmenter = _build_part(config, config.segmenter, load=load)
        _check_image_size(config, read_sizes(segmenter))
        model = _join(config, language, segmenter, processor)
    return model.to(DTYPES[config.dtype]) if load else model


def _join(
    config: VlmConfig,
    language: PreTrainedModel,
    segmenter: PreTrainedModel,
    processor: VlmProcessor | None,
) -> VlmModel:
    if processor is not None:
        _resize_embeddings(language, len(processor.tokenizer))
        language.config.image_token_id = processor.image_token_id
        language.generation_config = _decoding(config, processor)
    width = int(language.config.get_text_config().hidden_size)
    prompt_width = int(segmenter.config.mask_decoder_config.hidden_size)
    vectors = config.prompt_vectors
    head = OcclusionHead(prompt_width, vectors) if config.occlusion_head else None
    occlusion_map = None
    if config.occlusion_map:
        occlusion_map = OcclusionMapHead(prompt_width, vectors)
    vocabulary = language.get_input_embeddings().num_embeddings
    return VlmModel(
        config,
        VisionLanguage(language),
        Segmenter(segmenter, config.early_block),
        decoders=MaskDecoders(
            segmenter,
            head,
            occlusion_map,
            visible_inside_amodal=config.visible_inside_amodal,
        ),
        projector=PromptProjector(
            width, config.projector_width or width, prompt_width, vectors
        ),
        mask_type_head=MaskTypeHead(vocabulary, width)
        if config.mask_type_head
        else None,
        seg_token_ids=processor.seg_token_ids if processor is not None else (),
    )


def _decoding(config: VlmConfig, processor: VlmProcessor) -> GenerationConfig:
    """How answers are written, in place of the checkpoint's own settings. Exported models keep it."""
    return GenerationConfig(
        max_new_tokens=config.max_new_tokens,
        repetition_penalty=config.repetition_penalty,
        eos_token_id=processor.eos_token_id,
        pad_token_id=processor.pad_token_id,
    )


def _check_image_size(config: VlmConfig, sizes: SegmenterSizes) -> None:
    if config.image_size not in (None, sizes.image):
        raise ModelError(
            f"image_size is {config.image_size}, but the segmenter was made for images of {sizes.image} pixels; "
            "remove image_size"
        )


def quantization_options(config: VlmConfig) -> dict[str, Any]:
    """Options of `from_pretrained` for weights in 4 bits (QLoRA: NF4, quantization constants quantized as well)."""
    if config.vision_language.name is None:
        raise ConfigError(
            "quantization: only pretrained weights can be held in 4 bits; give `name` in [vlm.vision_language]"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise MissingDependencyError("quantization", "bitsandbytes", extra="qlora")
    settings = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=DTYPES[config.dtype],
    )
    return {"quantization_config": settings}


def _build_part(
    config: VlmConfig, part: Pretrained, *, load: bool, **options: Any
) -> PreTrainedModel:
    """One of the two networks: pretrained, or with random weights. options: of `from_pretrained`."""
    is_language = part is config.vision_language
    described = read_architecture(part, shapes_only=not load)
    kind = described.model_type
    if is_language:
        model_class = find_vision_language_class(kind)
    else:
        model_class = find_segmenter_family(kind).model
    if load and part.name is not None:
        return _from_pretrained(model_class, part.name, **options)
    if not is_language:
        described = _segmenter_config(model_class, described)
    model: PreTrainedModel = model_class(described)
    # Weights on the meta device have no values to scale.
    on_meta = next(model.parameters()).device.type == "meta"
    if config.scaled_init and part.name is None and not on_meta:
        width = described.get_text_config().hidden_size if is_language else 0
        scale_initialization(model, width**-0.5 if is_language else 1.0)
    return model


def _from_pretrained(
    model_class: type[PreTrainedModel], name: str, **options: Any
) -> PreTrainedModel:
    """The weights of a hub name or folder; warns of those that are missing.

    Those of the segmenter's prompt encoder for points and boxes are not used, and exported folders do not have them.
    """
    model, absent = load_weights(model_class, name, **options)
    missing = [key for key in absent if not key.startswith("prompt_encoder.")]
    if missing:
        listed = ", ".join(missing[:3])
        warnings.warn(
            f"{name} lacks {len(missing)} weights of {model_class.__name__}, which stay random: {listed}",
            stacklevel=2,
        )
    return model


def _segmenter_config(model_class: type[PreTrainedModel], described: Any) -> Any:
    """The config for the image model; folders of SAM 2 and SAM 3 may have that of the video model."""
    if isinstance(described, model_class.config_class):
        return described
    return model_class.config_class.from_dict(described.to_dict())


def _resize_embeddings(language: PreTrainedModel, tokens: int) -> None:
    """Make room for new tokens. Embeddings are never made smaller: many have more rows than the tokenizer tokens."""
    if language.get_input_embeddings().num_embeddings < tokens:
        language.resize_token_embeddings(tokens, mean_resizing=False)


def build_processor(
    config: VlmConfig, folder: Path | None = None, *, tokenizer: Any = None
) -> VlmProcessor:
    """The processor of a model: from `folder` if it was saved there, or from the hub name.

    A saved processor keeps its limits of pixels; that of a pretrained model gets those of the config. tokenizer: in
    place of a stored one, for a model that starts from random weights (`maskwise.training.vlm.nano_tokenizer`).
    """
    described = read_architecture(config.vision_language)
    source = str(folder) if folder is not None else config.vision_language.name
    if tokenizer is None and source is None:
        raise ModelError(
            "a model without pretrained weights has no tokenizer yet; expected a name in vision_language or the "
            "folder of a run, where `maskwise train` writes one"
        )
    if tokenizer is None:
        tokenizer = _load_tokenizer(str(source), config)
    image_token = _find_image_token(tokenizer, described)
    is_qwen = described.model_type.startswith("qwen")
    size = (
        None
        if is_qwen
        else described.vision_config.image_size // described.vision_config.patch_size
    )
    full = not is_qwen and described.vision_feature_select_strategy == "full"
    segmenter = read_architecture(config.segmenter)
    family = find_segmenter_family(segmenter.model_type)
    with torch.device("meta"):
        sizes = read_sizes(family.model(_segmenter_config(family.model, segmenter)))
    return VlmProcessor(
        config,
        tokenizer,
        _load_image_processor(config, described, folder),
        image_token=image_token,
        family=family,
        sizes=sizes,
        grid_size=None if size is None else (size, size),
        extra_tokens=int(full),
    )


def _load_tokenizer(source: str, config: VlmConfig) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            source, trust_remote_code=False, **loading_options(source)
        )
    except OSError as error:
        raise missing_weights(source, error) from None
    if tokenizer.chat_template is None:
        tokenizer.chat_template = read_chat_template(source)
    known = tokenizer.get_vocab()
    new = [token for token in config.seg_tokens if token not in known]
    if new:
        tokenizer.add_special_tokens(
            {"additional_special_tokens": new}, replace_extra_special_tokens=False
        )
    return tokenizer


def _find_image_token(tokenizer: Any, described: Any) -> str:
    """The image token: that of tokenizers trained here, or the one whose id the architecture names."""
    if NEW_IMAGE_TOKEN in tokenizer.get_vocab():
        return NEW_IMAGE_TOKEN
    return str(tokenizer.convert_ids_to_tokens(described.image_token_id))


def _load_image_processor(
    config: VlmConfig, described: Any, folder: Path | None
) -> Any:
    """The image processor of the vision-language model, in the variant without torchvision."""
    vision = described.vision_config
    name = config.vision_language.name
    is_qwen = described.model_type.startswith("qwen")
    kind = Qwen2VLImageProcessorPil if is_qwen else CLIPImageProcessorPil
    if folder is not None:
        return kind.from_pretrained(str(folder))
    pixels = {"shortest_edge": config.min_pixels, "longest_edge": config.max_pixels}
    if name is not None:
        loaded = kind.from_pretrained(name, **loading_options(name))
        if is_qwen:
            # Not an argument above: `min_pixels` and `max_pixels` of the hub's files would replace it.
            loaded.size = pixels
        return loaded
    if is_qwen:
        return Qwen2VLImageProcessorPil(
            size=pixels,
            patch_size=vision.patch_size,
            temporal_patch_size=vision.temporal_patch_size,
            merge_size=vision.spatial_merge_size,
        )
    square = {"height": vision.image_size, "width": vision.image_size}
    return CLIPImageProcessorPil(size=square, do_center_crop=False)

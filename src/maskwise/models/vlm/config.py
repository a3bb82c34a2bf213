"""The settings of the model: which networks are joined, and which of its optional parts are used."""

from typing import Annotated, Any, Literal

import msgspec

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Weight = Annotated[float, msgspec.Meta(ge=0)]


class Pretrained(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of transformers. `name`: hub name or folder of its weights. `config`: its architecture, the fields of its
    transformers config with `model_type`; needed if there is no name (the weights are then random), and used in place
    of the hub's config where only shapes are needed.
    """

    name: str | None = None
    config: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.name is None and self.config is None:
            raise ValueError(
                "expected `name`, a hub name or folder, or `config` with a model_type"
            )
        if self.config is not None and "model_type" not in self.config:
            raise ValueError(
                '`config` needs a model_type, for example "qwen3_vl" or "sam2"'
            )


class LossWeights(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The weight of each loss; a loss of weight 0 is not computed.

    The defaults of `text`, `bce` and `dice` are those of LISA and M2SA (1.0, 2.0, 0.5). AURA uses 1 for all, also for
    `occlusion`, the squared error of the occlusion rate, and `occlusion_map`, the cross-entropy of the three classes of
    each cell. `mask_type`, the choice between the two segmentation tokens
    apart from the other words, is ours: a rare mistake in the text, but one that decides which mask is returned.
    `region_words`, `name_prompt`, `name_alignment` and
    `prompt_alignment` are ours, for models that start from random weights (docs/results/vlm.md).
    """

    text: Weight = 1.0
    mask_type: Weight = 0.0
    bce: Weight = 2.0
    dice: Weight = 0.5
    occlusion: Weight = 0.0
    occlusion_map: Weight = 0.0
    region_words: Weight = 0.0
    name_prompt: Weight = 0.0
    name_alignment: Weight = 0.0
    prompt_alignment: Weight = 0.0


class VlmConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model.

    `vision_language` reads the image and the question and writes the answer; `segmenter` draws the masks. `seg_tokens`:
    the two special tokens, for visible and amodal masks. `prompt_vectors`: vectors per token in the prompt of a
    mask decoder. `projector_width`: hidden width of the projector; by default that of the language model.
    `image_size`: side of the segmenter's input; by default that of its architecture, and another one is refused.
    `min_pixels`, `max_pixels`: pixels of the image that the vision-language model sees (families with a variable
    resolution). `early_block`: add features of this block of the segmenter's encoder to its image embedding (M2SA);
    None: do not. `occlusion_head`: predict the occlusion rate and condition the amodal decoder on it (AURA).
    `occlusion_map`: the same with a map of background, visible and occluded area (AURA); both may be used.
    `visible_inside_amodal`: the amodal mask contains the visible one by construction. `mask_type_head`: let a
    convolution over the words of the question choose the token's kind as well, for models that start from random
    weights. `positive_weight`: the largest weight of foreground pixels in the BCE. `max_new_tokens`: length limit
    of an answer. `repetition_penalty`: of written answers; 1 is none. That of a checkpoint's generation_config.json
    is not used: it would penalize every further segmentation token. `scaled_init`: initialise random weights for
    small widths. `vocabulary_scenes`: scenes whose texts train the tokenizer, if `vision_language` has no name.
    `text_length`: longer questions and answers are refused.
    """

    vision_language: Pretrained
    segmenter: Pretrained
    seg_tokens: tuple[str, str] = ("[SEG_VISIBLE]", "[SEG_AMODAL]")
    prompt_vectors: PositiveInt = 1
    projector_width: PositiveInt | None = None
    image_size: PositiveInt | None = None
    min_pixels: PositiveInt = 256 * 28 * 28
    max_pixels: PositiveInt = 1280 * 28 * 28
    early_block: int | None = None
    occlusion_head: bool = False
    occlusion_map: bool = False
    visible_inside_amodal: bool = False
    mask_type_head: bool = False
    positive_weight: Annotated[float, msgspec.Meta(ge=1)] = 1.0
    losses: LossWeights = LossWeights()
    max_new_tokens: PositiveInt = 256
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    text_length: PositiveInt = 2048
    scaled_init: bool = False
    vocabulary_scenes: PositiveInt = 200
    dtype: Literal["float32", "bfloat16"] = "float32"

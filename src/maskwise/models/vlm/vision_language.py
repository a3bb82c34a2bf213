"""The vision-language model: Qwen-VL and LLaVA families from transformers behind one interface.

An image is encoded once (`encode_images`); its features are then passed to every question about it as
`mm_encoder_outputs`, in training and in generation.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers import (
    LlavaForConditionalGeneration,
    PreTrainedModel,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLForConditionalGeneration,
    Qwen3VLForConditionalGeneration,
)

from maskwise.errors import UnknownNameError
from maskwise.models.vlm.packing import pack_questions

FAMILIES: dict[str, type[PreTrainedModel]] = {
    "qwen2_vl": Qwen2VLForConditionalGeneration,
    "qwen2_5_vl": Qwen2_5_VLForConditionalGeneration,
    "qwen3_vl": Qwen3VLForConditionalGeneration,
    "llava": LlavaForConditionalGeneration,
}
"""By the model_type of transformers."""


def find_vision_language_class(model_type: str) -> type[PreTrainedModel]:
    """The class of a model_type; UnknownNameError lists the known ones."""
    if model_type not in FAMILIES:
        raise UnknownNameError("vision-language model_type", model_type, FAMILIES)
    return FAMILIES[model_type]


ImageFeatures = Any
"""The output of `encode_images`: a ModelOutput whose `pooler_output` has one [tokens, width] per image."""


class VisionLanguage(nn.Module):
    """A vision-language model that returns hidden states, with the images encoded beforehand."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    @property
    def width(self) -> int:
        """Width of the language model's hidden states."""
        return int(self.model.config.get_text_config().hidden_size)

    @property
    def embeddings(self) -> torch.Tensor:
        """The input embeddings [vocabulary, width]."""
        weight: torch.Tensor = self.model.get_input_embeddings().weight
        return weight

    def embed(self, input_ids: torch.Tensor) -> torch.Tensor:
        """The input embeddings of tokens, [..., width]."""
        embedded: torch.Tensor = self.model.get_input_embeddings()(input_ids)
        return embedded

    def encode_images(
        self, pixel_values: torch.Tensor, image_grid_thw: torch.Tensor | None
    ) -> ImageFeatures:
        """Features of all images, ready for the language model."""
        grid = {} if image_grid_thw is None else {"image_grid_thw": image_grid_thw}
        # The model inside returns features with gradients; generation uses the same call.
        return self.model.get_image_features(pixel_values, return_dict=True, **grid)

    def encode_text(
        self,
        inputs: dict[str, torch.Tensor],
        features: ImageFeatures,
        image_index: Sequence[int],
    ) -> torch.Tensor:
        """Last hidden states [questions, tokens, width]; image_index: the image of each question, -1 for none.

        inputs: padded at the right. Questions about one image are read as one sequence where the model allows it.
        """
        if self._can_pack(image_index):
            return self._encode_packed(inputs, features, image_index)
        output = self.model.model(
            **inputs,
            **_features_of(features, image_index),
            use_cache=False,
            return_dict=True,
        )
        states: torch.Tensor = output.last_hidden_state
        return states

    @property
    def packs_questions(self) -> bool:
        """True if the model takes positions and masks of several questions in one sequence.

        Eager attention would read a mask of booleans wrongly, and flash attention does not take one.
        """
        attention = self.model.config.get_text_config()._attn_implementation
        return hasattr(self.model.model, "get_rope_index") and attention == "sdpa"

    def _can_pack(self, image_index: Sequence[int]) -> bool:
        """True if an image has several questions, which the model takes in one sequence."""
        asked = [image for image in image_index if image >= 0]
        return self.packs_questions and len(set(asked)) < len(asked)

    def _encode_packed(
        self,
        inputs: dict[str, torch.Tensor],
        features: ImageFeatures,
        image_index: Sequence[int],
    ) -> torch.Tensor:
        language: Any = self.model.model
        position_ids, _ = language.get_rope_index(**inputs)
        packed = pack_questions(inputs, position_ids, image_index)
        asked = [question for question, image in enumerate(image_index) if image >= 0]
        # The grid of the first question of each row; all questions of a row have the same image.
        grids = {image_index[question]: row for row, question in enumerate(asked)}
        chosen = [grids[image] for image in packed.image_index if image >= 0]
        output = language(
            input_ids=packed.input_ids,
            attention_mask=packed.attention_mask,
            position_ids=packed.position_ids,
            mm_token_type_ids=packed.mm_token_type_ids,
            image_grid_thw=inputs["image_grid_thw"][chosen],
            **_features_of(features, packed.image_index),
            use_cache=False,
            return_dict=True,
        )
        states: torch.Tensor = output.last_hidden_state
        return states.flatten(0, 1)[packed.places]

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Next-token logits [n, vocabulary] of hidden states [n, width]."""
        head: torch.Tensor = self.model.lm_head(states)
        return head

    def generate(
        self,
        inputs: dict[str, torch.Tensor],
        features: ImageFeatures,
        image_index: Sequence[int],
        **options: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Greedy answers: tokens [questions, new], and last hidden states [questions, new - 1, width].

        inputs: left-padded prompts. State j is that of token j; the last token was not read, so it has none.
        """
        with self._record_states() as steps:
            generated = self.model.generate(
                **inputs,
                **_features_of(features, image_index),
                do_sample=False,
                num_beams=1,
                **options,
            )
        start = inputs["input_ids"].shape[1]
        width = steps[0].shape[-1]
        empty = steps[0].new_zeros((len(generated), 0, width))
        return generated[:, start:], torch.cat([empty, *steps[1:]], dim=1)

    @contextmanager
    def _record_states(self) -> Iterator[list[torch.Tensor]]:
        """Record the output of the final norm at every step; no other layer is kept."""
        steps: list[torch.Tensor] = []
        norm = self.model.model.language_model.norm
        handle = norm.register_forward_hook(
            lambda _module, _inputs, output: steps.append(output)
        )
        try:
            yield steps
        finally:
            handle.remove()


def _features_of(features: ImageFeatures, image_index: Sequence[int]) -> dict[str, Any]:
    """The argument `mm_encoder_outputs` for questions about these images, in order."""
    chosen = [image for image in image_index if image >= 0]
    if features is None or not chosen:
        return {}
    selected: dict[str, Any] = {
        "pooler_output": tuple(features.pooler_output[image] for image in chosen)
    }
    if getattr(features, "deepstack_features", None) is not None:
        selected["deepstack_features"] = [
            tuple(layer[image] for image in chosen)
            for layer in features.deepstack_features
        ]
    return {"mm_encoder_outputs": {"image": type(features)(**selected)}}

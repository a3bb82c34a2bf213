"""LoRA adapters in a vision-language model, through peft: added, listed, merged."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from peft import LoraConfig, LoraModel
from torch import nn
from transformers import PreTrainedModel

from maskwise.errors import MaskwiseError
from maskwise.models.vlm.adapters import ADAPTER

LANGUAGE_LAYERS = r".*language_model\.layers\.\d+\.(self_attn|mlp)\..*_proj"
"""All linear layers of the language model, none of the vision encoder (the names of transformers 5)."""


class LoraSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Low-rank adapters. `targets`: a regular expression that has to match the whole name of a linear layer.
    `quantization`: the frozen weights of the vision-language model are held in 4 bits while it is trained ("nf4",
    QLoRA); the exported model has whole weights again.

    The defaults of rank, alpha and dropout are those of LISA and M2SA (`train_ds.py`).
    """

    rank: Annotated[int, msgspec.Meta(ge=1)] = 8
    alpha: Annotated[float, msgspec.Meta(gt=0)] = 16
    dropout: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.05
    targets: str = LANGUAGE_LAYERS
    quantization: Literal["nf4"] | None = None

    def __post_init__(self) -> None:
        try:
            re.compile(self.targets)
        except re.error as error:
            raise ValueError(
                f"targets {self.targets!r} is not a regular expression: {error}"
            ) from None


def add_lora(
    language_model: PreTrainedModel,
    settings: LoraSettings,
    token_ids: Sequence[int] = (),
) -> LoraModel:
    """Put adapters into a transformers model in place; its own weights are frozen.

    token_ids: tokens whose rows of the embedding, and of an output layer that is not tied to it, are trained. The
    result holds the same model and merges the adapters (`merge_lora`).
    """
    if not any(
        re.fullmatch(settings.targets, name)
        for name, _ in language_model.named_modules()
    ):
        linear = [
            name
            for name, module in language_model.named_modules()
            if isinstance(module, nn.Linear)
        ]
        raise MaskwiseError(
            f"no layer of the language model matches lora.targets {settings.targets!r}; "
            f"its linear layers are named like {', '.join(linear[:3])}"
        )
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=settings.targets,
        trainable_token_indices=_token_rows(language_model, list(token_ids)),
    )
    return LoraModel(language_model, config, ADAPTER)


def merge_lora(adapted: LoraModel) -> nn.Module:
    """The model with its adapters added to its weights, and no adapter left."""
    merged: nn.Module = adapted.merge_and_unload()
    return merged


def _token_rows(
    language_model: PreTrainedModel, token_ids: list[int]
) -> dict[str, list[int]] | None:
    """The layers with a row per token, by name, as peft expects them; a tied output layer follows the embedding."""
    if not token_ids:
        return None
    names = {module: name for name, module in language_model.named_modules()}
    embedding = language_model.get_input_embeddings()
    output = language_model.get_output_embeddings()
    rows = {names[embedding].rpartition(".")[2]: token_ids}
    if output is not None and output.weight is not embedding.weight:
        rows[names[output].rpartition(".")[2]] = token_ids
    return rows

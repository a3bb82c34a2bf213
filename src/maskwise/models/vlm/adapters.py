"""LoRA adapters of a vision-language model in a folder of their own, in the layout of peft."""

from pathlib import Path

from peft import LoraConfig, LoraModel
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from maskwise.errors import ModelError

ADAPTER = "default"
"""The name peft gives an only adapter."""

WEIGHTS = "adapter_model.safetensors"


def save_adapters(adapted: LoraModel, folder: Path) -> None:
    """Write the adapters that a model contains, and the trained rows of its embedding."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = adapted.model.state_dict()
    stored = {
        new: weights[name].contiguous() for new, name in _stored_names(adapted).items()
    }
    adapted.peft_config[ADAPTER].save_pretrained(folder)
    save_file(stored, folder / WEIGHTS, metadata={"format": "pt"})


def load_adapters(language_model: PreTrainedModel, folder: Path) -> LoraModel:
    """Put the adapters of a folder into a model, in place; they are not merged."""
    try:
        adapted = LoraModel(
            language_model, LoraConfig.from_pretrained(str(folder)), ADAPTER
        )
        weights = load_file(folder / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"{folder}: the adapters cannot be loaded: {error}") from None
    names = _stored_names(adapted)
    if set(names) != set(weights):
        wrong = sorted(set(names) ^ set(weights))[:3]
        raise ModelError(
            f"{folder}: the adapters do not fit the model: {', '.join(wrong)}"
        )
    adapted.model.load_state_dict(
        {names[new]: value for new, value in weights.items()}, strict=False
    )
    return adapted


def _stored_names(adapted: LoraModel) -> dict[str, str]:
    """The weights of adapters: names in files of peft, and here, where they contain the name of the adapter."""
    return {
        "base_model.model." + name.replace(f".{ADAPTER}", ""): name
        for name, _ in adapted.model.named_parameters()
        if "lora_" in name or "trainable_tokens_delta" in name
    }

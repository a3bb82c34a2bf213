"""Faster forwards of the language model by config: flash attention, and compiled layers. Both are optional."""

import os
import shutil
from typing import Any

import torch
from torch.utils._triton import has_triton

from maskwise.errors import ConfigError, MissingDependencyError
from maskwise.models.vlm.model import VlmModel

SDPA = "sdpa"
"""The attention of torch, which every machine has. Only it reads several questions about an image as one sequence."""

PACKAGES = {
    "flash_attention_2": "flash-attn",
    "flash_attention_3": "flash-attn-3",
}
"""Where the other implementations come from."""


def set_attention(model: VlmModel, attention: str, precision: str) -> None:
    """Choose how the vision-language model computes attention; an error says what is missing for it."""
    if attention == SDPA:
        return
    if precision != "bf16":
        raise ConfigError(
            f'attention = "{attention}" computes in 16 bits; set precision = "bf16", or attention = "{SDPA}"'
        )
    try:
        model.vision_language.model.set_attn_implementation(attention)
    except ImportError:
        raise MissingDependencyError(
            f'attention = "{attention}"', PACKAGES[attention]
        ) from None
    # transformers refuses a device or an architecture that the implementation does not know.
    except (RuntimeError, ValueError) as error:
        raise ConfigError(
            f'attention = "{attention}" cannot be used here: {error}; use attention = "{SDPA}"'
        ) from None


def check_compiler() -> None:
    """ConfigError if torch cannot compile on this machine: it needs Triton on GPUs, and a C++ compiler on CPUs."""
    if torch.cuda.is_available():
        if not has_triton():
            raise ConfigError(
                "compile = true needs Triton for this GPU, which is not installed or does not know it; pip install "
                "triton, or set compile = false"
            )
        return
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ConfigError(
            f"compile = true needs a C++ compiler on CPUs, and there is no {compiler}; install one, name it by the "
            "environment variable CXX, or set compile = false"
        )


def compile_layers(model: VlmModel) -> None:
    """Compile each layer of the language model when it first runs.

    The layers have one code, so it is compiled once for all of them and for any length of a sequence. Names of weights
    stay as they are.
    """
    check_compiler()
    language: Any = model.vision_language.model.model
    for layer in language.language_model.layers:
        layer.compile(dynamic=True)

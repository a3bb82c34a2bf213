"""Initialise small networks: the standard deviation of 0.02 that transformers uses suits widths of 1,000 and more."""

import torch
from torch import nn


def scale_initialization(model: nn.Module, embedding_std: float) -> None:
    """Draw the weights of all linear, convolution and embedding layers again, scaled to their widths.

    At a width of 64 the library's values give SAM mask logits of a standard deviation of 1e-4, which learn slowly.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d | nn.Conv3d | nn.ConvTranspose2d):
            module.reset_parameters()
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=embedding_std)
    for name, parameter in model.named_parameters():
        if "pos_embed" in name and parameter.ndim > 1:
            with torch.no_grad():
                parameter.normal_(std=0.1)

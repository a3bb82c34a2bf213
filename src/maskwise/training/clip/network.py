"""The two networks of CLIP ViT-B/32 (Radford et al. 2021), with the names of the authors' weights.

ImageEncoder    pixels [n, 3, 224, 224] to unit vectors [n, 512]
TextEncoder     tokens [n, length] to vectors [n, 512] that are as long as the learned scale
"""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class ClipShape:
    """Sizes of the networks; the defaults are those of ViT-B/32."""

    image_size: int = 224
    patch_size: int = 32
    image_width: int = 768
    image_layers: int = 12
    context: int = 77
    vocabulary_size: int = 49408
    text_width: int = 512
    text_layers: int = 12
    embedding_width: int = 512


VIT_B_32 = ClipShape()

HEAD_WIDTH = 64
"""Channels of an attention head, in all models of the authors."""


class QuickGelu(nn.Module):
    """The authors' approximation of GELU."""

    def forward(self, values: Tensor) -> Tensor:
        """Same shape."""
        return values * torch.sigmoid(1.702 * values)


class ClipAttention(nn.Module):
    """Multi-head self-attention; its weights are named as those of torch's module."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, values: Tensor, mask: Tensor | None) -> Tensor:
        """values: [n, length, width]. mask: [length, length], added to the logits."""
        count, length, width = values.shape
        projected = functional.linear(values, self.in_proj_weight, self.in_proj_bias)
        split = projected.reshape(count, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        logits = query @ key.transpose(-2, -1) * HEAD_WIDTH**-0.5
        if mask is not None:
            logits = logits + mask
        attended = logits.softmax(-1) @ value
        merged: Tensor = self.out_proj(attended.transpose(1, 2).flatten(2))
        return merged


class Block(nn.Module):
    """One layer of a transformer: attention and a network of two layers, both residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attn = ClipAttention(width)
        self.ln_1 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            OrderedDict(
                c_fc=nn.Linear(width, 4 * width),
                gelu=QuickGelu(),
                c_proj=nn.Linear(4 * width, width),
            )
        )
        self.ln_2 = nn.LayerNorm(width)

    def forward(self, values: Tensor, mask: Tensor | None) -> Tensor:
        """values: [n, length, width]."""
        values = values + self.attn(self.ln_1(values), mask)
        transformed: Tensor = values + self.mlp(self.ln_2(values))
        return transformed


class Transformer(nn.Module):
    """Layers, one after another."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """values: [n, length, width]."""
        for block in self.resblocks:
            values = block(values, mask)
        return values


class ImageEncoder(nn.Module):
    """The vision transformer."""

    def __init__(self, shape: ClipShape = VIT_B_32) -> None:
        super().__init__()
        width = shape.image_width
        patches = (shape.image_size // shape.patch_size) ** 2
        self.conv1 = nn.Conv2d(3, width, shape.patch_size, shape.patch_size, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width) * width**-0.5)
        self.positional_embedding = nn.Parameter(
            torch.randn(patches + 1, width) * width**-0.5
        )
        self.ln_pre = nn.LayerNorm(width)
        self.transformer = Transformer(width, shape.image_layers)
        self.ln_post = nn.LayerNorm(width)
        self.proj = nn.Parameter(
            torch.randn(width, shape.embedding_width) * width**-0.5
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """pixels: float [n, 3, image_size, image_size], normalised; returns float [n, embedding_width]."""
        patches = self.conv1(pixels).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(patches.shape[0], 1, -1)
        values = torch.cat([first, patches], 1) + self.positional_embedding
        values = self.transformer(self.ln_pre(values))
        return functional.normalize(self.ln_post(values[:, 0]) @ self.proj, dim=-1)


class TextEncoder(nn.Module):
    """The text transformer: every token sees those before it, and the last one stands for the text."""

    def __init__(self, shape: ClipShape = VIT_B_32) -> None:
        super().__init__()
        width = shape.text_width
        self.token_embedding = nn.Embedding(shape.vocabulary_size, width)
        self.positional_embedding = nn.Parameter(
            torch.randn(shape.context, width) * 0.01
        )
        self.transformer = Transformer(width, shape.text_layers)
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(
            torch.randn(width, shape.embedding_width) * width**-0.5
        )
        # Logarithm of the factor before the softmax; training starts with 1 / 0.07.
        self.logit_scale = nn.Parameter(torch.tensor(1 / 0.07).log())

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: int64 [n, length], the end token is the largest; returns float [n, embedding_width]."""
        length = tokens.shape[1]
        values = self.token_embedding(tokens) + self.positional_embedding[:length]
        places = torch.arange(length, device=tokens.device)
        is_later = places[None, :] > places[:, None]
        mask = is_later.to(values.dtype) * torch.finfo(values.dtype).min
        values = self.ln_final(self.transformer(values, mask))
        last = tokens.argmax(-1)
        ends = values[torch.arange(tokens.shape[0], device=tokens.device), last]
        return functional.normalize(ends @ self.text_projection, dim=-1) * (
            self.logit_scale.exp()
        )

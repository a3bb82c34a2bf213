"""TinyViT (Wu et al. 2022) as MobileSAM uses it for its image encoder.

Names of modules are those of the checkpoint. The network is run, never trained: dropout and drop path are left out.
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from maskwise.models.photo.sam import FEATURE_CHANNELS, INPUT_SIZE

WIDTHS = (64, 128, 160, 320)
DEPTHS = (2, 2, 6, 2)
HEADS = (2, 4, 5, 10)
WINDOWS = (7, 7, 14, 7)
"""Channels, blocks, attention heads and window sides of the four stages."""

EXPANSION = 4
"""Hidden channels of blocks, relative to their input."""


class ConvNorm(nn.Sequential):
    """A convolution without bias and batch normalisation, named c and bn."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 1,
        stride: int = 1,
        *,
        padding: int = 0,
        groups: int = 1,
    ) -> None:
        super().__init__()
        conv = nn.Conv2d(
            inputs, outputs, kernel, stride, padding, groups=groups, bias=False
        )
        self.add_module("c", conv)
        self.add_module("bn", nn.BatchNorm2d(outputs))


class PatchEmbedding(nn.Module):
    """The image at a quarter of its size."""

    def __init__(self) -> None:
        super().__init__()
        self.seq = nn.Sequential(
            ConvNorm(3, WIDTHS[0] // 2, 3, 2, padding=1),
            nn.GELU(),
            ConvNorm(WIDTHS[0] // 2, WIDTHS[0], 3, 2, padding=1),
        )

    def forward(self, image: Tensor) -> Tensor:
        """[1, 3, s, s] to [1, WIDTHS[0], s / 4, s / 4]."""
        embedded: Tensor = self.seq(image)
        return embedded


class BottleneckBlock(nn.Module):
    """An inverted bottleneck (MBConv) with a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = width * EXPANSION
        self.conv1 = ConvNorm(width, hidden)
        self.conv2 = ConvNorm(hidden, hidden, 3, padding=1, groups=hidden)
        self.conv3 = ConvNorm(hidden, width)

    def forward(self, features: Tensor) -> Tensor:
        """[1, width, h, w] to the same shape."""
        hidden = functional.gelu(self.conv1(features))
        hidden = functional.gelu(self.conv2(hidden))
        return functional.gelu(self.conv3(hidden) + features)


class PatchMerging(nn.Module):
    """Half the resolution and more channels; the last stage keeps its resolution."""

    def __init__(self, side: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.side = side
        stride = 1 if outputs == WIDTHS[-1] else 2
        self.conv1 = ConvNorm(inputs, outputs)
        self.conv2 = ConvNorm(outputs, outputs, 3, stride, padding=1, groups=outputs)
        self.conv3 = ConvNorm(outputs, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """[1, inputs, side, side] or [1, side * side, inputs] to [1, cells, outputs]."""
        if features.ndim == 3:
            features = features.view(1, self.side, self.side, -1).permute(0, 3, 1, 2)
        features = functional.gelu(self.conv1(features))
        features = functional.gelu(self.conv2(features))
        merged: Tensor = self.conv3(features)
        return merged.flatten(2).transpose(1, 2)


class WindowAttention(nn.Module):
    """Attention inside a window, with a learned bias for every distance between two cells."""

    attention_bias_idxs: Tensor

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads = heads
        self.key_width = width // heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, width * 3)
        self.proj = nn.Linear(width, width)
        places = list(itertools.product(range(window), range(window)))
        offsets: dict[tuple[int, int], int] = {}
        numbers = []
        for first in places:
            for second in places:
                offset = (abs(first[0] - second[0]), abs(first[1] - second[1]))
                numbers.append(offsets.setdefault(offset, len(offsets)))
        self.attention_biases = nn.Parameter(torch.zeros(heads, len(offsets)))
        indices = torch.tensor(numbers).view(len(places), len(places))
        self.register_buffer("attention_bias_idxs", indices, persistent=False)

    def forward(self, cells: Tensor) -> Tensor:
        """[windows, cells, width] to the same shape."""
        count, length, width = cells.shape
        qkv = self.qkv(self.norm(cells)).view(count, length, self.heads, -1)
        query, key, value = qkv.split([self.key_width] * 3, dim=3)
        query = query.permute(0, 2, 1, 3)
        key = key.permute(0, 2, 1, 3)
        value = value.permute(0, 2, 1, 3)
        scores = (query @ key.transpose(-2, -1)) * self.key_width**-0.5
        scores = scores + self.attention_biases[:, self.attention_bias_idxs]
        attended = scores.softmax(dim=-1) @ value
        merged: Tensor = self.proj(
            attended.transpose(1, 2).reshape(count, length, width)
        )
        return merged


class VitMlp(nn.Module):
    """Two layers after a normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width * EXPANSION)
        self.fc2 = nn.Linear(width * EXPANSION, width)

    def forward(self, cells: Tensor) -> Tensor:
        """[1, cells, width] to the same shape."""
        mapped: Tensor = self.fc2(functional.gelu(self.fc1(self.norm(cells))))
        return mapped


class VitBlock(nn.Module):
    """Attention in windows, a convolution, and a small network, each with a shortcut."""

    def __init__(self, side: int, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.side = side
        self.window = window
        self.attn = WindowAttention(width, heads, window)
        self.local_conv = ConvNorm(width, width, 3, padding=1, groups=width)
        self.mlp = VitMlp(width)

    def forward(self, cells: Tensor) -> Tensor:
        """[1, side * side, width] to the same shape."""
        side, window = self.side, self.window
        width = cells.shape[-1]
        padding = (window - side % window) % window
        grid = cells.view(1, side, side, width)
        grid = functional.pad(grid, (0, 0, 0, padding, 0, padding))
        count = (side + padding) // window
        windows = grid.view(1, count, window, count, window, width).transpose(2, 3)
        attended = self.attn(windows.reshape(count * count, window * window, width))
        attended = attended.view(1, count, count, window, window, width)
        grid = attended.transpose(2, 3).reshape(
            1, side + padding, side + padding, width
        )
        cells = cells + grid[:, :side, :side].reshape(1, side * side, width)
        plane = cells.transpose(1, 2).reshape(1, width, side, side)
        plane = self.local_conv(plane)
        cells = plane.view(1, width, side * side).transpose(1, 2)
        mapped: Tensor = cells + self.mlp(cells)
        return mapped


class VitStage(nn.Module):
    """Blocks at one resolution, and what leads to the next one."""

    def __init__(self, blocks: list[nn.Module], downsample: nn.Module | None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.downsample = downsample

    def forward(self, features: Tensor) -> Tensor:
        """The features of the next stage."""
        for block in self.blocks:
            features = block(features)
        return features if self.downsample is None else self.downsample(features)


class ChannelNorm(nn.Module):
    """Normalisation over the channels of [1, channels, h, w] (LayerNorm2d of segment-anything)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, features: Tensor) -> Tensor:
        """The same shape."""
        mean = features.mean(1, keepdim=True)
        variance = (features - mean).pow(2).mean(1, keepdim=True)
        normal = (features - mean) / torch.sqrt(variance + 1e-6)
        return self.weight[:, None, None] * normal + self.bias[:, None, None]


class TinyViT(nn.Module):
    """The image encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = PatchEmbedding()
        sides = [INPUT_SIZE // scale for scale in (4, 8, 16, 16)]
        stages: list[nn.Module] = []
        for number, width in enumerate(WIDTHS):
            side = sides[number]
            blocks: list[nn.Module] = []
            for _ in range(DEPTHS[number]):
                if number == 0:
                    blocks.append(BottleneckBlock(width))
                else:
                    blocks.append(VitBlock(side, width, HEADS[number], WINDOWS[number]))
            is_last = number == len(WIDTHS) - 1
            downsample = (
                None if is_last else PatchMerging(side, width, WIDTHS[number + 1])
            )
            stages.append(VitStage(blocks, downsample))
        self.layers = nn.ModuleList(stages)
        self.neck = nn.Sequential(
            nn.Conv2d(WIDTHS[-1], FEATURE_CHANNELS, 1, bias=False),
            ChannelNorm(FEATURE_CHANNELS),
            nn.Conv2d(FEATURE_CHANNELS, FEATURE_CHANNELS, 3, padding=1, bias=False),
            ChannelNorm(FEATURE_CHANNELS),
        )

    def forward(self, image: Tensor) -> Tensor:
        """[1, 3, INPUT_SIZE, INPUT_SIZE] to [1, FEATURE_CHANNELS, INPUT_SIZE / 16, INPUT_SIZE / 16]."""
        features = self.patch_embed(image)
        for stage in self.layers:
            features = stage(features)
        side = INPUT_SIZE // 16
        plane = features.view(1, side, side, WIDTHS[-1]).permute(0, 3, 1, 2)
        embedding: Tensor = self.neck(plane)
        return embedding

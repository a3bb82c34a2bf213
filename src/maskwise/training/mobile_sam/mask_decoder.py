"""The prompt encoder and the mask decoder of segment-anything (Kirillov et al. 2023), as MobileSAM uses them.

Inputs and outputs are those of segment-anything's ONNX decoder with a single mask. Names of modules are those of the
checkpoint.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from maskwise.models.photo.sam import GRID_SIZE, INPUT_SIZE, LEVELS
from maskwise.training.mobile_sam.tiny_vit import ChannelNorm

WIDTH = 256
HEADS = 8
HIDDEN = 2048
MASKS = LEVELS + 1
"""Channels of tokens, attention heads, hidden channels of a layer, and masks of a prompt: one and three of points."""

POINT_LABELS = 4
"""Outside, inside, and two corners of a box."""


class PositionEncoding(nn.Module):
    """Sines and cosines of random projections of a place in the image."""

    positional_encoding_gaussian_matrix: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer(
            "positional_encoding_gaussian_matrix", torch.randn(2, WIDTH // 2)
        )

    def forward(self, places: Tensor) -> Tensor:
        """[..., 2] in 0..1 to [..., WIDTH]."""
        projected = (2 * places - 1) @ self.positional_encoding_gaussian_matrix
        projected = 2 * math.pi * projected
        return torch.cat([projected.sin(), projected.cos()], -1)

    def grid(self) -> Tensor:
        """[1, WIDTH, GRID_SIZE, GRID_SIZE]: of the cells of the embedding."""
        centers = (torch.arange(GRID_SIZE) + 0.5) / GRID_SIZE
        rows, columns = torch.meshgrid(centers, centers, indexing="ij")
        encoded: Tensor = self(torch.stack([columns, rows], -1))
        return encoded.permute(2, 0, 1)[None]


class PromptEncoder(nn.Module):
    """Points, boxes and a mask as tokens and as a plane."""

    def __init__(self) -> None:
        super().__init__()
        self.pe_layer = PositionEncoding()
        self.point_embeddings = nn.ModuleList(
            nn.Embedding(1, WIDTH) for _ in range(POINT_LABELS)
        )
        self.not_a_point_embed = nn.Embedding(1, WIDTH)
        self.no_mask_embed = nn.Embedding(1, WIDTH)
        self.mask_downscaling = nn.Sequential(
            nn.Conv2d(1, 4, 2, 2),
            ChannelNorm(4),
            nn.GELU(),
            nn.Conv2d(4, 16, 2, 2),
            ChannelNorm(16),
            nn.GELU(),
            nn.Conv2d(16, WIDTH, 1),
        )

    def embed_points(self, coords: Tensor, labels: Tensor) -> Tensor:
        """[1, n, WIDTH] of points [1, n, 2] in pixels of the encoder's input; label -1 is no point."""
        encoded: Tensor = self.pe_layer((coords + 0.5) / INPUT_SIZE)
        wide = labels[..., None].expand_as(encoded)
        encoded = encoded * (wide != -1)
        encoded = encoded + self.not_a_point_embed.weight * (wide == -1)
        for label in range(POINT_LABELS):
            weight = self.point_embeddings.get_parameter(f"{label}.weight")
            encoded = encoded + weight * (wide == label)
        return encoded

    def embed_mask(self, mask: Tensor, has_mask: Tensor) -> Tensor:
        """[1, WIDTH, GRID_SIZE, GRID_SIZE] of logits [1, 1, 4 * GRID_SIZE, 4 * GRID_SIZE]."""
        embedded: Tensor = has_mask * self.mask_downscaling(mask)
        return embedded + (1 - has_mask) * self.no_mask_embed.weight.view(
            1, WIDTH, 1, 1
        )


class PromptAttention(nn.Module):
    """Attention with fewer channels inside."""

    def __init__(self, width: int = WIDTH // 2) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, width)
        self.k_proj = nn.Linear(WIDTH, width)
        self.v_proj = nn.Linear(WIDTH, width)
        self.out_proj = nn.Linear(width, WIDTH)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """[1, n, WIDTH], [1, m, WIDTH] and [1, m, WIDTH] to [1, n, WIDTH]."""
        queries = _split_heads(self.q_proj(query))
        keys = _split_heads(self.k_proj(key))
        values = _split_heads(self.v_proj(value))
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
        attended = scores.softmax(-1) @ values
        merged: Tensor = self.out_proj(attended.transpose(1, 2).flatten(2))
        return merged


def _split_heads(tokens: Tensor) -> Tensor:
    """[1, n, channels] to [1, HEADS, n, channels / HEADS]."""
    count = tokens.shape[1]
    return tokens.reshape(1, count, HEADS, -1).transpose(1, 2)


class TwoLayers(nn.Module):
    """The network inside a layer of the transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.lin1 = nn.Linear(WIDTH, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        """The same shape."""
        mapped: Tensor = self.lin2(functional.relu(self.lin1(tokens)))
        return mapped


class TwoWayBlock(nn.Module):
    """Attention among tokens, from tokens to the image, and from the image to tokens."""

    def __init__(self, *, is_first: bool) -> None:
        super().__init__()
        self.is_first = is_first
        self.self_attn = PromptAttention(WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.cross_attn_token_to_image = PromptAttention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = TwoLayers()
        self.norm3 = nn.LayerNorm(WIDTH)
        self.norm4 = nn.LayerNorm(WIDTH)
        self.cross_attn_image_to_token = PromptAttention()

    def forward(
        self, tokens: Tensor, image: Tensor, token_places: Tensor, image_places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Tokens [1, n, WIDTH] and the image [1, cells, WIDTH], changed."""
        if self.is_first:
            tokens = self.self_attn(tokens, tokens, tokens)
        else:
            placed = tokens + token_places
            tokens = tokens + self.self_attn(placed, placed, tokens)
        tokens = self.norm1(tokens)
        attended = self.cross_attn_token_to_image(
            tokens + token_places, image + image_places, image
        )
        tokens = self.norm2(tokens + attended)
        tokens = self.norm3(tokens + self.mlp(tokens))
        attended = self.cross_attn_image_to_token(
            image + image_places, tokens + token_places, tokens
        )
        return tokens, self.norm4(image + attended)


class TwoWayTransformer(nn.Module):
    """Two blocks, and a last attention to the image."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [TwoWayBlock(is_first=True), TwoWayBlock(is_first=False)]
        )
        self.final_attn_token_to_image = PromptAttention()
        self.norm_final_attn = nn.LayerNorm(WIDTH)

    def forward(
        self, image: Tensor, image_places: Tensor, prompt: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Tokens [1, n, WIDTH] and the image [1, cells, WIDTH] of planes [1, WIDTH, h, w] and a prompt."""
        image = image.flatten(2).permute(0, 2, 1)
        image_places = image_places.flatten(2).permute(0, 2, 1)
        tokens = prompt
        for layer in self.layers:
            tokens, image = layer(tokens, image, prompt, image_places)
        attended = self.final_attn_token_to_image(
            tokens + prompt, image + image_places, image
        )
        return self.norm_final_attn(tokens + attended), image


class ThreeLayers(nn.Module):
    """What becomes of a token: the weights of a mask, or scores."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Linear(WIDTH, WIDTH),
                nn.Linear(WIDTH, WIDTH),
                nn.Linear(WIDTH, outputs),
            ]
        )

    def forward(self, token: Tensor) -> Tensor:
        """[1, WIDTH] to [1, outputs]."""
        first, second, last = self.layers
        hidden = functional.relu(second(functional.relu(first(token))))
        mapped: Tensor = last(hidden)
        return mapped


class MaskDecoder(nn.Module):
    """Masks and their scores from the embedding of an image and a prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = TwoWayTransformer()
        self.iou_token = nn.Embedding(1, WIDTH)
        self.mask_tokens = nn.Embedding(MASKS, WIDTH)
        self.output_upscaling = nn.Sequential(
            nn.ConvTranspose2d(WIDTH, WIDTH // 4, 2, 2),
            ChannelNorm(WIDTH // 4),
            nn.GELU(),
            nn.ConvTranspose2d(WIDTH // 4, WIDTH // 8, 2, 2),
            nn.GELU(),
        )
        self.output_hypernetworks_mlps = nn.ModuleList(
            ThreeLayers(WIDTH // 8) for _ in range(MASKS)
        )
        self.iou_prediction_head = ThreeLayers(MASKS)

    def forward(
        self, image: Tensor, image_places: Tensor, prompt: Tensor, plane: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits [1, MASKS, 4 * GRID_SIZE, 4 * GRID_SIZE] and scores [1, MASKS]."""
        own = torch.cat([self.iou_token.weight, self.mask_tokens.weight])[None]
        tokens, cells = self.transformer(
            image + plane, image_places, torch.cat([own, prompt], 1)
        )
        grid = cells.transpose(1, 2).view(1, WIDTH, GRID_SIZE, GRID_SIZE)
        upscaled = self.output_upscaling(grid)
        weights = [
            network(tokens[:, 1 + number])
            for number, network in enumerate(self.output_hypernetworks_mlps)
        ]
        side = 4 * GRID_SIZE
        flat = upscaled.view(1, WIDTH // 8, side * side)
        masks = (torch.stack(weights, 1) @ flat).view(1, -1, side, side)
        return masks, self.iou_prediction_head(tokens[:, 0])


class OnnxDecoder(nn.Module):
    """The prompt encoder and the mask decoder as one network."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt_encoder = PromptEncoder()
        self.mask_decoder = MaskDecoder()

    def forward(  # noqa: PLR0917 - the exporter passes the inputs by position
        self,
        image_embeddings: Tensor,
        point_coords: Tensor,
        point_labels: Tensor,
        mask_input: Tensor,
        has_mask_input: Tensor,
        orig_im_size: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [1, 1, h, w] at the size of the image, their scores [1, 1], and the logits [1, 1, 256, 256] before."""
        prompt = self.prompt_encoder.embed_points(point_coords, point_labels)
        plane = self.prompt_encoder.embed_mask(mask_input, has_mask_input)
        masks, scores = self.mask_decoder(
            image_embeddings, self.prompt_encoder.pe_layer.grid(), prompt, plane
        )
        best_masks, best_scores = _select(masks, scores, point_coords.shape[1])
        return (
            _to_image_size(best_masks, orig_im_size),
            best_scores,
            best_masks,
        )


def _select(masks: Tensor, scores: Tensor, points: int) -> tuple[Tensor, Tensor]:
    """The best mask of a prompt: of several points the first one, of a single one the best of the other three."""
    preference = torch.tensor([[1000] + [0] * LEVELS])
    weighted = scores + (points - 2.5) * preference
    best = torch.argmax(weighted, dim=1)
    rows = torch.arange(masks.shape[0])
    return masks[rows, best].unsqueeze(1), scores[rows, best].unsqueeze(1)


def _to_image_size(masks: Tensor, size: Tensor) -> Tensor:
    """Masks without the padding of the encoder's input, at the size (height, width) of the image."""
    masks = functional.interpolate(
        masks, (INPUT_SIZE, INPUT_SIZE), mode="bilinear", align_corners=False
    )
    scale = INPUT_SIZE / torch.max(size)
    shown = torch.floor(scale * size + 0.5).to(torch.int64)
    masks = masks[..., : shown[0], : shown[1]]
    target = size.to(torch.int64)
    # Tensors, which the exporter can trace, instead of the numbers that the annotation asks for.
    traced: Any = (target[0], target[1])
    return functional.interpolate(masks, traced, mode="bilinear", align_corners=False)

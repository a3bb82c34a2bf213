"""The segmenter: SAM, SAM 2 or the tracker of SAM 3 from transformers behind one interface.

An image is encoded once; a mask decoder then draws a mask for each prompt. Prompts are vectors, not points or boxes, so
the prompt encoder is not used, except for its embedding of "no mask prompt".
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import PreTrainedModel, Sam2Model, Sam3TrackerModel, SamModel

from maskwise.errors import ModelError, UnknownNameError
from maskwise.models.vlm.early_features import EarlyFeatures

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@dataclass(frozen=True)
class SegmenterFamily:
    """What differs between segmenters. `pad`: the longest side is resized and the rest padded at the right and bottom;
    otherwise the image is resized to a square. `normalization`: mean and standard deviation of the channels.
    """

    model: type[PreTrainedModel]
    pad: bool
    normalization: tuple[tuple[float, ...], tuple[float, ...]]


_SAM = SegmenterFamily(SamModel, True, IMAGENET)
_SAM2 = SegmenterFamily(Sam2Model, False, IMAGENET)
_SAM3 = SegmenterFamily(Sam3TrackerModel, False, HALF)

FAMILIES: dict[str, SegmenterFamily] = {
    "sam": _SAM,
    "sam2": _SAM2,
    "sam2_video": _SAM2,
    "sam3_tracker": _SAM3,
    "sam3_tracker_video": _SAM3,
    "sam3_video": _SAM3,
}
"""By the model_type of transformers. Published SAM 2 and SAM 3 folders have the config of the video model."""


def find_segmenter_family(model_type: str) -> SegmenterFamily:
    """The family of a model_type; UnknownNameError lists the known ones."""
    if model_type not in FAMILIES:
        raise UnknownNameError("segmenter model_type", model_type, FAMILIES)
    return FAMILIES[model_type]


class SegmenterSizes(NamedTuple):
    """Sides in pixels: of the input image, and of the mask logits."""

    image: int
    mask: int


def read_sizes(model: PreTrainedModel) -> SegmenterSizes:
    """The sizes of a segmenter, which its weights may be on the meta device for.

    The ratio of the two differs: SAM 3 draws 288 logits for 1008 pixels, SAM and SAM 2 256 for 1024.
    """
    upscaling = 1
    for module in model.mask_decoder.modules():
        if isinstance(module, nn.ConvTranspose2d):
            upscaling *= module.stride[0]
    image = int(model.config.prompt_encoder_config.image_size)
    return SegmenterSizes(image, _embedding_size(model)[0] * upscaling)


@dataclass(frozen=True)
class SegmenterFeatures:
    """Encoded images. embedding: [images, width, h, w]. maps: finer feature maps (strides 4 and 8), none for SAM."""

    embedding: torch.Tensor
    maps: tuple[torch.Tensor, ...] = ()


class Segmenter(nn.Module):
    """The image encoder of a segmenter, and what its mask decoders need beside the prompt."""

    def __init__(self, model: PreTrainedModel, early_block: int | None = None) -> None:
        super().__init__()
        # Of the weights, which a config file may describe otherwise.
        self.architecture = model.config
        self.encoder = model.vision_encoder
        self.position = model.shared_image_embedding
        self.no_mask = model.prompt_encoder.no_mask_embed
        self.no_memory = getattr(model, "no_memory_embedding", None)
        self.embedding_size = _embedding_size(model)
        self.sizes = read_sizes(model)
        self.prompt_width = int(model.config.mask_decoder_config.hidden_size)
        self.early_block = early_block
        self.early = (
            None
            if early_block is None
            else EarlyFeatures(_block_width(model, early_block), self.prompt_width)
        )

    def encode(self, pixels: torch.Tensor) -> SegmenterFeatures:
        """Encode images [images, 3, size, size]."""
        output = self.encoder(
            pixels, output_hidden_states=self.early is not None, return_dict=True
        )
        maps = tuple(getattr(output, "fpn_hidden_states", None) or ())[:3]
        embedding = maps[2] if maps else output.last_hidden_state
        if self.no_memory is not None:
            embedding = embedding + self.no_memory.view(1, -1, 1, 1)
        if self.early is not None and self.early_block is not None:
            block = _to_map(
                output.hidden_states[self.early_block + 1], self.embedding_size
            )
            embedding = embedding + self.early(block, embedding.shape[-2:])
        return SegmenterFeatures(embedding, maps[:2])

    def decode(
        self,
        decoder: nn.Module,
        features: SegmenterFeatures,
        image_index: torch.Tensor,
        *,
        prompts: torch.Tensor,
        dense: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Mask logits [n, h, w]. image_index: [n], the image of each prompt. prompts: [n, k, width], n > 0.

        dense: [n, width, h, w], added to the embedding of "no mask prompt".
        """
        decoded = self._decode(
            decoder,
            features,
            image_index,
            prompts=prompts,
            dense=dense,
            multimask=False,
        )
        logits: torch.Tensor = decoded[0][:, 0, 0]
        return logits

    def decode_best(
        self,
        decoder: nn.Module,
        features: SegmenterFeatures,
        image_index: torch.Tensor,
        *,
        prompts: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `decode`, with the best of several masks per prompt: logits [n, h, w] and their predicted IoU [n]."""
        decoded = self._decode(
            decoder, features, image_index, prompts=prompts, multimask=True
        )
        scores, best = decoded[1][:, 0].max(dim=-1)
        return decoded[0][torch.arange(len(best), device=best.device), 0, best], scores

    def _decode(
        self,
        decoder: nn.Module,
        features: SegmenterFeatures,
        image_index: torch.Tensor,
        *,
        prompts: torch.Tensor,
        multimask: bool,
        dense: torch.Tensor | None = None,
    ) -> Any:
        """The decoder's output: mask logits [n, 1, masks, h, w], predicted IoU [n, 1, masks], and more."""
        n, height, width = len(prompts), *features.embedding.shape[-2:]
        finer: dict[str, Any] = {}
        if features.maps:
            # Each decoder reduces the maps by its own convolutions, once per image.
            reduce: Any = decoder
            reduced = reduce.conv_s0(features.maps[0]), reduce.conv_s1(features.maps[1])
            finer = {
                "high_resolution_features": [maps[image_index] for maps in reduced]
            }
        no_mask = self.no_mask.weight.view(1, -1, 1, 1)
        dense_prompts = no_mask.expand(n, -1, height, width)
        if dense is not None:
            dense_prompts = dense_prompts + dense
        return decoder(
            image_embeddings=features.embedding[image_index],
            image_positional_embeddings=self._positions(height, width).expand(
                n, -1, -1, -1
            ),
            sparse_prompt_embeddings=prompts.unsqueeze(1),
            dense_prompt_embeddings=dense_prompts,
            multimask_output=multimask,
            **finer,
        )

    def _positions(self, height: int, width: int) -> torch.Tensor:
        """The position embedding [1, width, h, w], as in `get_image_wide_positional_embeddings`."""
        table = self.position.positional_embedding
        y = (
            torch.arange(height, device=table.device, dtype=table.dtype) + 0.5
        ) / height
        x = (torch.arange(width, device=table.device, dtype=table.dtype) + 0.5) / width
        grid = torch.stack(
            [x.expand(height, width), y[:, None].expand(height, width)], dim=-1
        )
        encoding: torch.Tensor = self.position(grid)
        return encoding.permute(2, 0, 1).unsqueeze(0)


def _embedding_size(model: PreTrainedModel) -> tuple[int, int]:
    size = model.prompt_encoder.image_embedding_size
    return (size[0], size[1]) if isinstance(size, tuple | list) else (size, size)


def _block_width(model: PreTrainedModel, block: int) -> int:
    """The channels of the output of an encoder block."""
    config = model.config.vision_config
    backbone = getattr(config, "backbone_config", config)
    blocks = getattr(backbone, "blocks_per_stage", None)
    depth = sum(blocks) if blocks else int(backbone.num_hidden_layers)
    if not 0 <= block < depth:
        raise ModelError(
            f"early_block is {block}, but the segmenter's encoder has blocks 0 to {depth - 1}"
        )
    if not blocks:
        return int(backbone.hidden_size)
    stage = next(
        stage for stage in range(len(blocks)) if block < sum(blocks[: stage + 1])
    )
    return int(backbone.embed_dim_per_stage[stage])


def _to_map(states: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Encoder states [b, h, w, channels] or [b, tokens, channels] as [b, channels, h, w]."""
    if states.ndim == 3:
        states = states.view(len(states), *size, -1)
    return states.permute(0, 3, 1, 2)

"""One batch: images with their questions as tensors. Training and prediction use the same function, `collate`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image

from maskwise.schema import Region, Sample

if TYPE_CHECKING:
    from maskwise.models.vlm.processor import VlmProcessor

IGNORED = -100
"""The label of tokens that are not part of an answer."""


@dataclass(frozen=True)
class ImageQuestions:
    """An image, its questions, and for dense supervision all its regions. image: None for text-only questions."""

    image: Image.Image | None
    samples: tuple[Sample, ...]
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class MaskTargets:
    """Ground-truth masks of prompts, in order. visible, amodal: [n, size, size], 0 to 1, float32; zero where unknown.
    visible_known, amodal_known: bool [n]. occlusion_rate: [n], defined where both are known.
    """

    visible: torch.Tensor
    amodal: torch.Tensor
    visible_known: torch.Tensor
    amodal_known: torch.Tensor
    occlusion_rate: torch.Tensor

    def to(self, device: torch.device | str) -> "MaskTargets":
        """The same on a device."""
        return replace(
            self,
            **{
                field.name: getattr(self, field.name).to(device)
                for field in fields(self)
            },
        )


@dataclass(frozen=True)
class DenseTargets:
    """Dense supervision: what each image token shows, and masks by name.

    words: [m, 2], image token (counted over all images) and word; word_weights: [m]. names: [regions, words], the
    tokens of each region's name, padded with -1. image_index: [regions]. masks: of the regions.
    """

    words: torch.Tensor
    word_weights: torch.Tensor
    names: torch.Tensor
    image_index: torch.Tensor
    masks: MaskTargets

    def to(self, device: torch.device | str) -> "DenseTargets":
        """The same on a device."""
        return replace(
            self,
            **{
                field.name: getattr(self, field.name).to(device)
                for field in fields(self)
            },
        )


@dataclass(frozen=True)
class VlmBatch:
    """q questions about some images.

    input_ids, attention_mask, mm_token_type_ids: [q, tokens]. asked: bool, the same shape, the words of the prompt,
    without special tokens. labels: the same shape, IGNORED outside answers; None for prompts. image_index: the image of
    each question, -1 for none. pixel_values, image_grid_thw: the images for the vision-language model, as its processor
    makes them. segmenter_pixels: [images, 3, size, size]. masks: one per segmentation token, row by row, without those
    of questions without an image. token_names: [n, words], the tokens of the name of each token's target, padded with
    -1. dense: None without dense supervision.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    mm_token_type_ids: torch.Tensor
    asked: torch.Tensor
    image_index: tuple[int, ...]
    pixel_values: torch.Tensor | None = None
    image_grid_thw: torch.Tensor | None = None
    segmenter_pixels: torch.Tensor | None = None
    labels: torch.Tensor | None = None
    masks: MaskTargets | None = None
    token_names: torch.Tensor | None = None
    dense: DenseTargets | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    def to(self, device: torch.device | str) -> "VlmBatch":
        """The same batch on a device."""
        moved = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self,
            **{
                name: field.to(device)
                for name, field in moved.items()
                if hasattr(field, "to")
            },
        )

    def text_inputs(self) -> dict[str, torch.Tensor]:
        """The arguments of the language model, the grid of the image of each question included."""
        inputs = {"input_ids": self.input_ids, "attention_mask": self.attention_mask}
        if self.image_grid_thw is None:
            return inputs
        asked = [image for image in self.image_index if image >= 0]
        inputs["mm_token_type_ids"] = self.mm_token_type_ids
        return inputs | (
            {"image_grid_thw": self.image_grid_thw[asked]} if asked else {}
        )


MIN_TOKEN_SHARE = 0.1
"""An image token shows a region that covers more than this share of it; at edges, several."""


def collate(
    images: Sequence[ImageQuestions],
    processor: "VlmProcessor",
    *,
    answers: bool = True,
    dense: bool = False,
) -> VlmBatch:
    """A batch of the questions of some images, in order.

    answers: with the answers, padded at the right, labels and masks included; otherwise prompts, padded at the left.
    dense: with the targets of dense supervision.
    """
    seen = [item for item in images if item.image is not None]
    encoded = processor.encode_images(
        [item.image for item in seen if item.image is not None]
    )
    token_rows = []
    label_rows = []
    image_index = []
    targets: list[Region] = []
    next_image = 0
    for item in images:
        # -1 stands for a question without an image.
        image = -1
        image_tokens = 0
        if item.image is not None:
            image = next_image
            image_tokens = encoded.token_counts[image]
            next_image += 1
        for sample in item.samples:
            tokens, token_labels, places = processor.encode_turn(
                sample, image_tokens, answer=answers
            )
            token_rows.append(tokens)
            label_rows.append(token_labels)
            image_index.append(image)
            if image >= 0:
                targets += [sample.targets[place] for place in places]
    input_ids = pad_rows(token_rows, processor.pad_token_id, left=not answers)
    token_masks = [[1] * len(tokens) for tokens in token_rows]
    batch = VlmBatch(
        input_ids=input_ids,
        attention_mask=pad_rows(token_masks, 0, left=not answers),
        mm_token_type_ids=(input_ids == processor.image_token_id).long(),
        asked=processor.find_words(input_ids),
        image_index=tuple(image_index),
        pixel_values=encoded.pixel_values,
        image_grid_thw=encoded.image_grid_thw,
        segmenter_pixels=encoded.segmenter_pixels,
    )
    if not answers:
        return batch
    labels = pad_rows(label_rows, IGNORED)
    return replace(
        batch,
        asked=batch.asked & (labels == IGNORED),
        labels=labels,
        masks=mask_targets(targets, processor),
        token_names=pad_rows(
            [processor.name_tokens(region.name) for region in targets], -1
        ),
        dense=_dense_targets(seen, encoded.token_grids, processor) if dense else None,
    )


def add_prompts(
    image: VlmBatch, questions: Sequence[str], processor: "VlmProcessor"
) -> VlmBatch:
    """Questions about the only image of a batch that has been collated already, as prompts padded at the left."""
    tokens = processor.count_image_tokens(image.image_grid_thw)[0]
    rows = [processor.encode_prompt(question, tokens) for question in questions]
    device = image.input_ids.device
    input_ids = pad_rows(rows, processor.pad_token_id, left=True).to(device)
    return replace(
        image,
        input_ids=input_ids,
        attention_mask=pad_rows([[1] * len(row) for row in rows], 0, left=True).to(
            device
        ),
        mm_token_type_ids=(input_ids == processor.image_token_id).long(),
        asked=processor.find_words(input_ids),
        image_index=(0,) * len(rows),
    )


def pad_rows(
    rows: Sequence[Sequence[int]], value: int, *, left: bool = False
) -> torch.Tensor:
    """Rows of different lengths as one tensor [rows, longest]."""
    longest = max(map(len, rows), default=0)
    padded = [
        [value] * (longest - len(row)) + list(row)
        if left
        else list(row) + [value] * (longest - len(row))
        for row in rows
    ]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), longest)


def mask_targets(regions: Sequence[Region], processor: "VlmProcessor") -> MaskTargets:
    """The masks of regions at the resolution of the mask logits."""
    size = processor.sizes.mask
    masks = torch.zeros((2, len(regions), size, size))
    known = torch.zeros((2, len(regions)), dtype=torch.bool)
    rates = torch.zeros(len(regions))
    for row, region in enumerate(regions):
        for kind, mask in enumerate((region.visible, region.amodal)):
            if mask is not None:
                masks[kind, row] = processor.resize_mask(mask.to_dense())
                known[kind, row] = True
        visible = region.visible
        amodal = region.amodal
        if visible is not None and amodal is not None and amodal.area:
            rates[row] = 1 - (visible & amodal).area / amodal.area
    return MaskTargets(masks[0], masks[1], known[0], known[1], rates)


def _dense_targets(
    images: Sequence[ImageQuestions],
    grids: Sequence[tuple[int, int]],
    processor: "VlmProcessor",
) -> DenseTargets:
    """The words that each image token shows, and the masks and names of all regions."""
    words: list[tuple[int, int]] = []
    weights: list[float] = []
    first = 0
    for item, grid in zip(images, grids):
        for token, shown in enumerate(_token_words(item.regions, grid, processor)):
            words += [(first + token, word) for word in shown]
            weights += shown.values()
        first += grid[0] * grid[1]
    regions: list[Region] = []
    image_index: list[int] = []
    for image, item in enumerate(images):
        regions += item.regions
        image_index += [image] * len(item.regions)
    names = [processor.name_tokens(region.name) for region in regions]
    return DenseTargets(
        words=torch.tensor(words, dtype=torch.long).view(-1, 2),
        word_weights=torch.tensor(weights),
        names=pad_rows(names, -1),
        image_index=torch.tensor(image_index, dtype=torch.long),
        masks=mask_targets(regions, processor),
    )


def _token_words(
    regions: Sequence[Region], grid: tuple[int, int], processor: "VlmProcessor"
) -> list[dict[int, float]]:
    """For each image token, row by row, the words of the regions visible in it; the weights of a token add up to 1."""
    rows, columns = grid
    shown: list[dict[int, float]] = [{} for _ in range(rows * columns)]
    for region in regions:
        if region.visible is None or not region.visible.area:
            continue
        dense = np.ascontiguousarray(region.visible.to_dense())
        mask = torch.from_numpy(dense).float()[None, None]
        share = torch.nn.functional.interpolate(mask, grid, mode="area").flatten()
        names = processor.name_tokens(region.name)
        for token in torch.nonzero(share > MIN_TOKEN_SHARE).flatten().tolist():
            weight = float(share[token]) / len(names)
            for word in names:
                shown[token][word] = shown[token].get(word, 0.0) + weight
    normalized = []
    for words in shown:
        total = sum(words.values())
        normalized.append({word: weight / total for word, weight in words.items()})
    return normalized

"""The processor: tokenizer, chat template and the image processors of both encoders.

Positions of image tokens come from the tokenizer's image token, never from an offset. A prompt is the chat template
with `add_generation_prompt`; the answer is appended to it, so that training and generation see the same prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from maskwise.arrays import BoolArray, Float64Array
from maskwise.errors import ModelError
from maskwise.models.vlm.batch import IGNORED
from maskwise.models.vlm.config import VlmConfig
from maskwise.models.vlm.segmenter import SegmenterFamily, SegmenterSizes
from maskwise.models.vlm.tokens import write_seg_answer
from maskwise.schema import Sample, earlier_turns


@dataclass(frozen=True)
class EncodedImages:
    """Images as input of both encoders. token_grids: rows and columns of image tokens; token_counts: their number."""

    pixel_values: torch.Tensor | None
    image_grid_thw: torch.Tensor | None
    segmenter_pixels: torch.Tensor | None
    token_grids: list[tuple[int, int]]
    token_counts: list[int]


class VlmProcessor:
    """Texts and images to tensors. `grid_size`: rows and columns of image tokens of a model with a fixed resolution;
    None for a variable one. `extra_tokens`: image tokens beside the grid (a class token).
    """

    def __init__(
        self,
        config: VlmConfig,
        tokenizer: Any,
        image_processor: Any,
        *,
        image_token: str,
        family: SegmenterFamily,
        sizes: SegmenterSizes,
        grid_size: tuple[int, int] | None = None,
        extra_tokens: int = 0,
    ) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        self.image_token = image_token
        self.family = family
        self.sizes = sizes
        self.grid_size = grid_size
        self.extra_tokens = extra_tokens
        self.image_token_id = int(tokenizer.convert_tokens_to_ids(image_token))
        self.seg_token_ids = tuple(
            int(tokenizer.convert_tokens_to_ids(token)) for token in config.seg_tokens
        )
        self.eos_token_id = int(tokenizer.eos_token_id)
        pad = tokenizer.pad_token_id
        self.pad_token_id = self.eos_token_id if pad is None else int(pad)
        # What the tokenizer puts before every text: BOS for LLaVA, nothing for Qwen.
        self._starts_texts: list[int] = []
        if tokenizer("")["input_ids"] == [tokenizer.bos_token_id]:
            self._starts_texts = [int(tokenizer.bos_token_id)]

    # -- images

    def encode_images(self, images: Sequence[Image.Image]) -> EncodedImages:
        """Images of any size as input of both encoders."""
        if not images:
            return EncodedImages(None, None, None, [], [])
        encoded = self.image_processor(images=list(images), return_tensors="pt")
        grid = encoded.get("image_grid_thw")
        pixels = torch.stack([self.to_segmenter_pixels(image) for image in images])
        grids = self._token_grids(grid, len(images))
        return EncodedImages(
            encoded["pixel_values"],
            grid,
            pixels,
            grids,
            self.count_image_tokens(grid, len(images)),
        )

    def _token_grids(
        self, image_grid_thw: torch.Tensor | None, images: int
    ) -> list[tuple[int, int]]:
        """Rows and columns of image tokens of each image."""
        if image_grid_thw is None:
            assert self.grid_size is not None
            return [self.grid_size] * images
        merge = self.image_processor.merge_size
        return [
            (int(height) // merge, int(width) // merge)
            for _, height, width in image_grid_thw.tolist()
        ]

    def count_image_tokens(
        self, image_grid_thw: torch.Tensor | None, images: int = 1
    ) -> list[int]:
        """The number of image tokens of each image."""
        grids = self._token_grids(image_grid_thw, images)
        return [rows * columns + self.extra_tokens for rows, columns in grids]

    def to_segmenter_pixels(self, image: Image.Image) -> torch.Tensor:
        """An image as input of the segmenter, [3, size, size]."""
        size = self.sizes.image
        width, height = self._resized(image.size)
        resized = image.convert("RGB").resize(
            (width, height), Image.Resampling.BILINEAR
        )
        pixels = torch.from_numpy(np.asarray(resized, np.float32) / 255).permute(
            2, 0, 1
        )
        mean, std = (
            torch.tensor(values).view(3, 1, 1) for values in self.family.normalization
        )
        return functional.pad(
            (pixels - mean) / std, (0, size - width, 0, size - height)
        )

    def _resized(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """Width and height of an image within the segmenter's input."""
        size = self.sizes.image
        if not self.family.pad:
            return size, size
        width, height = (
            max(1, round(side * size / max(image_size))) for side in image_size
        )
        return width, height

    def resize_mask(self, mask: BoolArray) -> torch.Tensor:
        """A mask (height, width) at the resolution of the mask logits: the covered share of each cell, 0 to 1."""
        size = self.sizes.mask
        plane = torch.from_numpy(np.ascontiguousarray(mask)).float()[None, None]
        if self.family.pad:
            side = max(mask.shape)
            plane = functional.pad(
                plane, (0, side - mask.shape[1], 0, side - mask.shape[0])
            )
        return functional.interpolate(plane, (size, size), mode="area")[0, 0]

    def restore_masks(
        self, logits: torch.Tensor, image_size: tuple[int, int]
    ) -> torch.Tensor:
        """Mask logits [n, h, w] at the size (width, height) of the image, [n, height, width], bilinear."""
        if not len(logits):
            return logits.new_zeros((0, image_size[1], image_size[0]))
        planes = logits.float().unsqueeze(1)
        size = self.sizes.image
        if self.family.pad:
            planes = functional.interpolate(
                planes, (size, size), mode="bilinear", align_corners=False
            )
            width, height = self._resized(image_size)
            planes = planes[..., :height, :width]
        shape = (image_size[1], image_size[0])
        return functional.interpolate(
            planes, shape, mode="bilinear", align_corners=False
        )[:, 0]

    def restore_gradient(
        self, gradient: torch.Tensor, image_size: tuple[int, int]
    ) -> Float64Array:
        """The gradient by the segmenter's input [3, size, size], by the values of the image.

        image_size: width and height of the image. Each value of the image is given the
        gradient of the place it was resized to.
        """
        std = torch.tensor(self.family.normalization[1], device=gradient.device)
        width, height = self._resized(image_size)
        planes = (gradient.float() / std.view(3, 1, 1))[None, :, :height, :width]
        shape = (image_size[1], image_size[0])
        restored = functional.interpolate(
            planes, shape, mode="bilinear", align_corners=False
        )
        return restored[0].permute(1, 2, 0).double().cpu().numpy()

    # -- texts

    def prompt(self, question: str, image_tokens: int) -> str:
        """The text before the answer: the chat template with the image, if any, earlier turns and the question."""
        messages: list[dict[str, Any]] = []
        for role, text in self.conversation(question):
            content = [{"type": "text", "text": text}]
            messages.append({"role": role, "content": content})
        if image_tokens:
            messages[0]["content"].insert(0, {"type": "image"})
        prompt: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return prompt.replace(self.image_token, self.image_token * image_tokens)

    def conversation(self, question: str) -> list[tuple[str, str]]:
        """The messages before the answer: "user" or "assistant", and a text without special tokens."""
        texts = [("user", question)]
        for turn in reversed(earlier_turns(question)):
            texts = [("user", turn.question), ("assistant", turn.answer or ""), *texts]
        return [(role, self.escape(text)) for role, text in texts]

    def encode_prompt(self, question: str, image_tokens: int) -> list[int]:
        """The tokens before the answer."""
        tokens = self._tokens(self.prompt(question, image_tokens))
        # The chat template of LLaVA leaves the first token to its tokenizer.
        if self._starts_texts and tokens[:1] != self._starts_texts:
            tokens = self._starts_texts + tokens
        return tokens

    def encode_turn(
        self, sample: Sample, image_tokens: int, *, answer: bool
    ) -> tuple[list[int], list[int], tuple[int, ...]]:
        """A question, with its answer or without: its tokens, its labels (IGNORED outside the answer), and the
        position of the target of each segmentation token.
        """
        prompt = self.encode_prompt(sample.asked, image_tokens)
        if not answer:
            return prompt, [IGNORED] * len(prompt), ()
        text, targets = write_seg_answer(sample, self.config.seg_tokens)
        answered = [*self._tokens(text), self.eos_token_id]
        self._check_turn(sample, len(prompt) + len(answered) - image_tokens, answered)
        labels = [IGNORED] * len(prompt) + answered
        return prompt + answered, labels, targets

    def check_sample(self, sample: Sample) -> None:
        """ModelError if the question and the answer of a sample cannot be encoded."""
        # One image token stands for an image of any size: text_length does not count them.
        self.encode_turn(sample, 1, answer=True)

    def _check_turn(self, sample: Sample, length: int, answered: list[int]) -> None:
        """Refuse a turn that is too long, or whose answer has other segmentation tokens than those of its targets."""
        if length > self.config.text_length:
            raise ModelError(
                f"sample {sample.id!r}: question and answer have {length} tokens; text_length allows "
                f"{self.config.text_length}"
            )
        tokens = sum(token in self.seg_token_ids for token in answered)
        expected = len(sample.targets) * (2 if sample.mask_type == "both" else 1)
        if tokens != expected and sample.targets:
            raise ModelError(
                f"sample {sample.id!r}: the answer has {tokens} segmentation tokens for {expected} masks; its text may "
                f"not contain {' or '.join(self.config.seg_tokens)}"
            )

    def escape(self, text: str) -> str:
        """A text in which special tokens are spaced out, so that a question cannot contain an image or a seg token."""
        for token in self.tokenizer.all_special_tokens:
            text = text.replace(token, " ".join(token)) if token in text else text
        return text

    def find_words(self, input_ids: torch.Tensor) -> torch.Tensor:
        """True where a token is not a special one."""
        special = torch.tensor(self.tokenizer.all_special_ids, device=input_ids.device)
        return ~torch.isin(input_ids, special)

    def name_tokens(self, name: str) -> list[int]:
        """The tokens of a region's name, as they stand within a sentence."""
        return self._tokens(" " + self.escape(name))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def save(self, folder: Path) -> None:
        """Write tokenizer, chat template and image processor; `build_processor` reads them again."""
        self.tokenizer.save_pretrained(folder)
        self.image_processor.save_pretrained(folder)

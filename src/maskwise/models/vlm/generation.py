"""Answer questions about an image: the answers are generated in one batch, the image is encoded once.

image = encode_image(model, processor, image)
generate_answers(model, processor, image, questions)      the model writes the answers
read_answers(model, processor, image, samples)            the true answers are given (teacher forcing)
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from PIL import Image
from transformers import LogitsProcessorList

from maskwise.models.vlm.batch import (
    ImageQuestions,
    VlmBatch,
    add_prompts,
    collate,
    pad_rows,
)
from maskwise.models.vlm.mask_type_head import shift_mask_type
from maskwise.models.vlm.model import DecodedMasks, VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.models.vlm.segmenter import SegmenterFeatures
from maskwise.models.vlm.vision_language import ImageFeatures, VisionLanguage
from maskwise.schema import Sample


class VlmImage(NamedTuple):
    """An image after both encoders. batch: the image without questions; language, segmenter: its features."""

    image: Image.Image
    batch: VlmBatch
    language: ImageFeatures
    segmenter: SegmenterFeatures

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the image."""
        return self.image.size


class GeneratedAnswer(NamedTuple):
    """pieces: the texts before, between and after the segmentation tokens. kinds: of the tokens, 0 = visible,
    1 = amodal. masks: their mask logits at the decoders' resolution.
    """

    pieces: list[str]
    kinds: list[int]
    masks: DecodedMasks


@torch.inference_mode()
def encode_image(
    model: VlmModel, processor: VlmProcessor, image: Image.Image
) -> VlmImage:
    """Run both encoders on an image."""
    batch = collate([ImageQuestions(image, ())], processor, answers=False).to(
        _device(model)
    )
    language, segmenter = model.encode_images(batch)
    assert segmenter is not None
    return VlmImage(image, batch, language, segmenter)


@torch.inference_mode()
def generate_answers(
    model: VlmModel, processor: VlmProcessor, image: VlmImage, questions: Sequence[str]
) -> list[GeneratedAnswer]:
    """Greedy answers to questions about an encoded image, in one batch with left padding."""
    if not questions:
        return []
    batch = add_prompts(image.batch, questions, processor)
    answers, states = write_answers(
        model.vision_language,
        processor,
        batch,
        features=image.language,
        mask_type_log_odds=model.mask_type_log_odds(batch),
    )
    return _decode_answers(model, processor, image, answers=answers, states=states)


def write_answers(
    model: VisionLanguage,
    processor: VlmProcessor,
    batch: VlmBatch,
    *,
    features: ImageFeatures,
    mask_type_log_odds: torch.Tensor | None = None,
) -> tuple[list[list[int]], list[torch.Tensor]]:
    """The tokens of greedy answers, and last hidden states [tokens or more, width].

    batch: prompts of `add_prompts`; features: their image after the encoder. mask_type_log_odds: [q], of a mask-type
    head.
    """
    choose = LogitsProcessorList()
    if mask_type_log_odds is not None:
        choose.append(
            lambda _, logits: shift_mask_type(
                logits, mask_type_log_odds, processor.seg_token_ids
            )
        )
    new, states = model.generate(
        batch.text_inputs(),
        features,
        batch.image_index,
        logits_processor=choose,
        max_new_tokens=processor.config.max_new_tokens,
        eos_token_id=processor.eos_token_id,
        pad_token_id=processor.pad_token_id,
    )
    # The last token has no hidden state, so it cannot prompt a mask. It ends the answer, unless that was too long.
    answers = [_until_end(row, processor)[: states.shape[1]] for row in new.tolist()]
    return answers, list(states)


@torch.inference_mode()
def read_answers(
    model: VlmModel, processor: VlmProcessor, image: VlmImage, samples: Sequence[Sample]
) -> list[GeneratedAnswer]:
    """The samples' own answers, with the masks that the model draws for their segmentation tokens."""
    if not samples:
        return []
    text = collate([ImageQuestions(image.image, tuple(samples))], processor).to(
        _device(model)
    )
    states = model.vision_language.encode_text(
        text.text_inputs(), image.language, text.image_index
    )
    assert text.labels is not None
    answered = [row >= 0 for row in text.labels]
    answers = [
        _until_end(ids[chosen].tolist(), processor)
        for ids, chosen in zip(text.input_ids, answered)
    ]
    return _decode_answers(
        model,
        processor,
        image,
        answers=answers,
        states=[state[chosen] for state, chosen in zip(states, answered)],
    )


@torch.inference_mode()
def masks_of_answers(
    model: VlmModel,
    processor: VlmProcessor,
    image: VlmImage,
    question: str,
    answers: Sequence[list[int]],
) -> list[GeneratedAnswer]:
    """Answers to one question that were written before, as tokens, with the masks of their segmentation tokens."""
    image_tokens = processor.count_image_tokens(image.batch.image_grid_thw)[0]
    prompt = processor.encode_prompt(question, image_tokens)
    written = [_until_end(answer, processor) for answer in answers]
    rows = [prompt + answer for answer in written]
    input_ids = pad_rows(rows, processor.pad_token_id).to(_device(model))
    batch = replace(
        image.batch,
        input_ids=input_ids,
        attention_mask=pad_rows([[1] * len(row) for row in rows], 0).to(_device(model)),
        mm_token_type_ids=(input_ids == processor.image_token_id).long(),
        image_index=(0,) * len(rows),
    )
    states = model.vision_language.encode_text(
        batch.text_inputs(), image.language, batch.image_index
    )
    first = len(prompt)
    answered = [
        state[first : first + len(answer)] for state, answer in zip(states, written)
    ]
    return _decode_answers(model, processor, image, answers=written, states=answered)


def _device(model: VlmModel) -> torch.device:
    return next(model.parameters()).device


def _until_end(tokens: list[int], processor: VlmProcessor) -> list[int]:
    end = processor.eos_token_id
    return tokens[: tokens.index(end)] if end in tokens else tokens


def _decode_answers(
    model: VlmModel,
    processor: VlmProcessor,
    image: VlmImage,
    *,
    answers: list[list[int]],
    states: list[torch.Tensor],
) -> list[GeneratedAnswer]:
    """Decode the masks of all answers together. states: [tokens, width] of each answer."""
    seg = processor.seg_token_ids
    places = [
        [place for place, token in enumerate(row) if token in seg] for row in answers
    ]
    prompted = torch.cat([state[chosen] for state, chosen in zip(states, places)])
    owners = torch.zeros(len(prompted), dtype=torch.long, device=prompted.device)
    masks = model.decode(image.segmenter, prompted, owners)
    generated = []
    first = 0
    for row, chosen in zip(answers, places):
        kinds = [seg.index(row[place]) for place in chosen]
        # The texts before, between and after the tokens.
        starts = [0, *(place + 1 for place in chosen)]
        stops = [*chosen, len(row)]
        pieces = []
        for start, stop in zip(starts, stops):
            pieces.append(processor.decode(row[start:stop]))
        own_masks = masks.part(slice(first, first + len(chosen)))
        generated.append(GeneratedAnswer(pieces, kinds, own_masks))
        first += len(chosen)
    return generated

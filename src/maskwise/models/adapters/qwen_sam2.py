"""What the adapters of VisionReasoner and Sa2VA share: Qwen-VL writes, SAM 2 draws, and each encodes an image once."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from PIL import Image
from transformers import PreTrainedModel

from maskwise.errors import ModelError
from maskwise.masks import Mask
from maskwise.models.vlm.batch import ImageQuestions, VlmBatch, add_prompts, collate
from maskwise.models.vlm.generation import write_answers
from maskwise.models.vlm.pretrained import load_weights
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.models.vlm.segmenter import Segmenter, SegmenterFeatures
from maskwise.models.vlm.vision_language import ImageFeatures, VisionLanguage
from maskwise.schema import PredictedRegion


class QwenSam2Image(NamedTuple):
    """An image after both encoders. batch: what the language model sees of it; size: width and height."""

    batch: VlmBatch
    language: ImageFeatures
    segmenter: SegmenterFeatures
    size: tuple[int, int]


class WrittenAnswer(NamedTuple):
    """The tokens of an answer, and last hidden states [tokens or more, width]."""

    tokens: list[int]
    states: torch.Tensor


class QwenSam2:
    """Both networks and their processor, in evaluation mode. batch_size: answers that are written together."""

    def __init__(
        self,
        language: PreTrainedModel,
        sam: PreTrainedModel,
        processor: VlmProcessor,
        *,
        batch_size: int,
    ) -> None:
        self.language = VisionLanguage(language).eval()
        self.sam = sam.eval()
        self.segmenter = Segmenter(sam).eval()
        self.processor = processor
        self.batch_size = batch_size

    def encode(
        self, image: Image.Image, shown: Image.Image | None = None
    ) -> QwenSam2Image:
        """Run both encoders. shown: what the language model sees, if it is not the image itself."""
        without_questions = ImageQuestions(shown or image, ())
        batch = collate([without_questions], self.processor, answers=False)
        batch = batch.to(next(self.language.parameters()).device)
        assert batch.pixel_values is not None, "the batch has an image"
        sam_weight = next(self.sam.parameters())
        pixels = self.processor.to_segmenter_pixels(image)[None].to(sam_weight)
        language = self.language.encode_images(batch.pixel_values, batch.image_grid_thw)
        return QwenSam2Image(batch, language, self.segmenter.encode(pixels), image.size)

    def write(
        self, image: QwenSam2Image, questions: Sequence[str]
    ) -> list[WrittenAnswer]:
        """Greedy answers to questions about an encoded image."""
        answers: list[WrittenAnswer] = []
        for start in range(0, len(questions), self.batch_size):
            part = questions[start : start + self.batch_size]
            batch = add_prompts(image.batch, part, self.processor)
            tokens, states = write_answers(
                self.language, self.processor, batch, features=image.language
            )
            answers += map(WrittenAnswer, tokens, states)
        return answers

    def draw(
        self, image: QwenSam2Image, prompts: torch.Tensor
    ) -> tuple[PredictedRegion, ...]:
        """A region per prompt: the best of SAM 2's masks by predicted IoU. prompts: [n, k, width]; n may be 0."""
        if not len(prompts):
            return ()
        index = torch.zeros(len(prompts), dtype=torch.long, device=prompts.device)
        decoder = self.sam.mask_decoder
        logits, scores = self.segmenter.decode_best(
            decoder, image.segmenter, index, prompts=prompts
        )
        masks = self.processor.restore_masks(logits, image.size) > 0
        regions = []
        for mask, score in zip(masks.cpu().numpy(), scores.float().tolist()):
            clipped = min(1.0, max(0.0, score))  # a predicted IoU may lie outside 0..1
            region = PredictedRegion(visible=Mask.from_dense(mask), score=clipped)
            regions.append(region)
        return tuple(regions)


def choose_device(device: str | None) -> str:
    """The given device, or a GPU if there is one."""
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def load_complete(
    model_class: type[PreTrainedModel], name: str | None, source: str, **options: object
) -> PreTrainedModel:
    """A model of which no weight is missing; ModelError names some that are. source: named in the error."""
    try:
        model, missing = load_weights(model_class, name, **options)
    except RuntimeError:
        raise ModelError(
            f"{source}: the weights have other shapes than the config of {model_class.__name__}"
        ) from None
    if missing:
        raise ModelError(
            f"{source}: {len(missing)} weights of {model_class.__name__} are missing: {', '.join(missing[:3])}"
        )
    return model

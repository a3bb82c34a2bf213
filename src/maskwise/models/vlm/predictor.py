"""The predictor: `vlm` in `maskwise eval`, `ask` and `serve`.

maskwise eval world --model vlm --model-option checkpoint=runs/joint
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from PIL import Image

from maskwise.arrays import Float64Array
from maskwise.errors import ModelError
from maskwise.masks import Mask
from maskwise.models.vlm.batch import ImageQuestions, collate
from maskwise.models.vlm.folder import hash_weights, load_folder
from maskwise.models.vlm.generation import (
    GeneratedAnswer,
    VlmImage,
    encode_image,
    generate_answers,
    read_answers,
)
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.models.vlm.tokens import SegTarget, read_seg_answer
from maskwise.schema import MaskType, PredictedRegion, Prediction, Sample


class Vlm:
    """A predictor made of a model and its processor. `batch_size`: questions that are answered together."""

    def __init__(
        self,
        model: VlmModel,
        processor: VlmProcessor,
        weights_hash: str | None = None,
        *,
        batch_size: int = 16,
    ) -> None:
        self.name = "vlm"
        self.model = model
        self.processor = processor
        self.weights_hash = weights_hash
        self.batch_size = batch_size
        self.config: dict[str, Any] = msgspec.to_builtins(model.config)

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question; the image is encoded once."""
        return self.encode(image).answer(questions)

    def encode(self, image: Image.Image) -> "VlmEncoding":
        """Run both encoders, to ask questions about the image."""
        return VlmEncoding(self, encode_image(self.model, self.processor, image))

    def predict_teacher_forced(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample, whose answer with its segmentation tokens is given."""
        encoded = encode_image(self.model, self.processor, image)
        answers: list[GeneratedAnswer] = []
        for start in range(0, len(samples), self.batch_size):
            part = samples[start : start + self.batch_size]
            answers += read_answers(self.model, self.processor, encoded, part)
        return [self.to_prediction(encoded, answer) for answer in answers]

    def loss_gradient(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> Float64Array:
        """How the loss depends on the values of an image, (height, width, 3).

        Through the segmenter only: the vision-language model sees the image in patches of
        another size, whose gradient is not added.
        """
        device = next(self.model.parameters()).device
        questions = ImageQuestions(image, tuple(samples))
        batch = collate([questions], self.processor).to(device)
        assert batch.segmenter_pixels is not None
        pixels = batch.segmenter_pixels.requires_grad_()
        loss = self.model(batch).loss
        (gradient,) = torch.autograd.grad(loss, pixels, allow_unused=True)
        if gradient is None:
            return np.zeros((image.height, image.width, 3))
        return self.processor.restore_gradient(gradient[0], image.size)

    def to_prediction(self, image: VlmImage, answer: GeneratedAnswer) -> Prediction:
        """The answer without its tokens, and a region per target with masks at the size of the image."""
        written, targets = read_seg_answer(answer.pieces, answer.kinds)
        visible, amodal = (
            self.processor.restore_masks(logits, image.size)
            for logits in (answer.masks.visible, answer.masks.amodal)
        )
        regions = [
            _to_region(
                target, visible, amodal, name=written.text[target.start : target.stop]
            )
            for target in targets
        ]
        return Prediction(
            answer=written,
            mask_type=_mask_type(targets),
            regions=tuple(regions),
            no_target=not regions,
        )


class VlmEncoding:
    """An image that both encoders have seen, ready for questions."""

    def __init__(self, predictor: Vlm, image: VlmImage) -> None:
        self.predictor = predictor
        self.image = image

    def answer(self, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question."""
        predictor = self.predictor
        answers = list[GeneratedAnswer]()
        for start in range(0, len(questions), predictor.batch_size):
            part = questions[start : start + predictor.batch_size]
            answers += generate_answers(
                predictor.model, predictor.processor, self.image, part
            )
        return [predictor.to_prediction(self.image, answer) for answer in answers]


def _to_region(
    target: SegTarget, visible: torch.Tensor, amodal: torch.Tensor, *, name: str
) -> PredictedRegion:
    """A region with both masks, each drawn for the token of its type if there is one."""
    first = target.visible if target.visible is not None else target.amodal
    second = target.amodal if target.amodal is not None else target.visible
    logits = amodal[second] if target.visible is None else visible[first]
    inside = logits[logits > 0]
    return PredictedRegion(
        visible=_to_mask(visible[first]),
        amodal=_to_mask(amodal[second]),
        score=float(inside.sigmoid().mean()) if len(inside) else 0.0,
        name=name.removeprefix("the ") or None,
    )


def _to_mask(logits: torch.Tensor) -> Mask:
    return Mask.from_dense((logits > 0).cpu().numpy())


def _mask_type(targets: Sequence[SegTarget]) -> MaskType | None:
    """The type that most tokens ask for; None for an answer without targets."""
    if not targets:
        return None
    kinds: list[MaskType] = []
    for target in targets:
        if target.visible is None:
            kinds.append("amodal")
        elif target.amodal is None:
            kinds.append("visible")
        else:
            kinds.append("both")
    return max(kinds, key=kinds.count)


def load(
    checkpoint: str,
    device: str = "cpu",
    batch_size: int = 16,
) -> Vlm:
    """The model in a folder that `maskwise train` or `maskwise export` wrote.

    device: "cpu", "cuda", "cuda:1", ...
    """
    folder = Path(checkpoint)
    try:
        model, processor = load_folder(folder, device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"{folder}: the model cannot be loaded on {device!r}: {error}"
        ) from None
    return Vlm(model, processor, hash_weights(folder), batch_size=batch_size)

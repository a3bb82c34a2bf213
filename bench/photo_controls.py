"""Predictions that the model for photographs is compared with: controls that cannot read, and oracles that know."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray
from maskwise.masks import Mask
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.match import MatchChooser
from maskwise.models.photo.model import PhotoQuestions, to_prediction
from maskwise.models.photo.proposals import mask_iou
from maskwise.models.photo.vlm import BOX_SCALE, VlmChooser
from maskwise.schema import PredictedRegion, Prediction, Sample
from maskwise.writers import Completion, CompletionRequest
from maskwise.writers.cost import ModelPrice

FREE = ModelPrice(input=0.0, output=0.0)

INSIDE = 0.5
"""The least saliency of a pixel that is inside, as in bench/saliency.py."""

GOOD_FIT = 0.75
"""Marks whose union has at least this IoU with the ground truth need no box."""


def predict_whole_image(photo: EncodedPhoto, sample: Sample) -> Prediction:
    """All pixels."""
    return _one_mask(np.ones(photo.image.size[::-1], np.bool_), sample)


def predict_saliency(photo: EncodedPhoto, sample: Sample) -> Prediction:
    """What is salient, whatever the question says: U2-Net itself, not a proposal, which may be dropped as a copy."""
    saliency = Image.fromarray(photo.saliency)
    scaled = saliency.resize(photo.image.size, Image.Resampling.BILINEAR)
    mask = np.asarray(scaled) >= INSIDE
    return _one_mask(mask, sample) if mask.any() else Prediction(no_target=True)


def predict_text_blind(photo: EncodedPhoto, sample: Sample) -> Prediction:
    """The best proposal of the detector, or else the largest one, whatever the question says."""
    if not photo.proposals:
        return Prediction(no_target=True)
    labelled = [one for one in photo.proposals if one.labels]
    best = (
        max(labelled, key=lambda one: one.score)
        if labelled
        else max(photo.proposals, key=lambda one: one.area)
    )
    return _one_mask(best.mask(photo.image.size), sample)


def predict_match(
    photo: EncodedPhoto,
    sample: Sample,
    question: str | None = None,
    *,
    guess: bool = True,
) -> Prediction:
    """The offline chooser. question: another one than the sample's, to see what the words contribute."""
    asked = PhotoQuestions(photo, MatchChooser(guess=guess))
    return asked.answer([question or sample.question])[0]


def predict_best_proposal(photo: EncodedPhoto, sample: Sample) -> Prediction:
    """The one proposal that fits the ground truth best, at the resolution of the proposals."""
    truth = _small_truth(photo, sample)
    photo.look_around()
    if truth is None or not photo.proposals:
        return Prediction(no_target=True)
    best = max(photo.proposals, key=lambda one: mask_iou(one.inside, truth))
    return _one_mask(best.mask(photo.image.size), sample)


def predict_perfect_choice(
    photo: EncodedPhoto,
    sample: Sample,
    ledger: str | os.PathLike[str],
    *,
    boxes: bool = False,
) -> Prediction:
    """The whole model with a vision-language model that picks the best marks. boxes: and gives the true boxes of what
    no marks cover well, which adds proposals to the photo.
    """
    chooser = VlmChooser(OracleClient(photo, sample, boxes), ledger, FREE)
    choice = chooser.choose(photo, [sample.question])[0]
    return to_prediction(photo, choice, "visible")


@dataclass
class OracleClient:
    """A client that answers with the marks whose union fits the ground truth best, added one by one.

    boxes: at the first look it gives the boxes of the targets as well, where the marks fit badly.
    """

    photo: EncodedPhoto
    sample: Sample
    boxes: bool = False
    provider: str = "oracle"
    has_batches: bool = False

    @property
    def model(self) -> str:
        """Part of the key of a request: other ground truth is another oracle."""
        return f"oracle {self.sample.id} {self.boxes}"

    def complete(self, request: CompletionRequest) -> Completion:
        """The reply to any request about the sample."""
        marks, fit = self._best_marks()
        boxes = self._true_boxes() if self.boxes and fit < GOOD_FIT else []
        phrase = {"text": "this", "regions": marks, "merged": True, "boxes": boxes}
        phrases = [phrase] if marks or boxes else []
        return Completion(
            status="ok",
            output={
                "answer": "It is this.",
                "phrases": phrases,
                "mask_type": "visible",
            },
        )

    def _true_boxes(self) -> list[list[float]]:
        width, height = self.photo.image.size
        found = []
        for target in self.sample.targets:
            if target.visible is not None:
                left, top, wide, high = target.visible.box
                sides = (
                    left / width,
                    top / height,
                    (left + wide) / width,
                    (top + high) / height,
                )
                found.append([BOX_SCALE * side for side in sides])
        return found

    def _best_marks(self) -> tuple[list[int], float]:
        """Numbers of marks, and the IoU of their union with the ground truth."""
        truth = _small_truth(self.photo, self.sample)
        if truth is None:
            return [], 1.0
        masks = {
            number: one.inside for number, one in enumerate(self.photo.proposals, 1)
        }
        chosen: list[int] = []
        union = np.zeros_like(truth)
        best = 0.0
        while masks:
            scores = {
                number: mask_iou(union | mask, truth) for number, mask in masks.items()
            }
            number = max(scores, key=lambda one: scores[one])
            if scores[number] <= best:
                break
            best = scores[number]
            union = union | masks.pop(number)
            chosen.append(number)
        return chosen, best

    def close(self) -> None:
        """Nothing is open."""

    def submit(self, requests: Mapping[str, CompletionRequest], label: str) -> str:
        """There are no batches."""
        raise NotImplementedError

    def find_batch(
        self, label: str, *, keys: frozenset[str], since: float
    ) -> str | None:
        """There are no batches."""
        return None

    def collect(self, batch: str) -> dict[str, Completion] | None:
        """There are no batches."""
        return None


def union_mask(sample: Sample) -> BoolArray | None:
    """The visible masks of all targets; None if there is no target."""
    masks = [
        target.visible.to_dense()
        for target in sample.targets
        if target.visible is not None
    ]
    return np.logical_or.reduce(masks) if masks else None


def _small_truth(photo: EncodedPhoto, sample: Sample) -> BoolArray | None:
    """The ground truth at the resolution of the proposals, where masks are compared quickly."""
    truth = union_mask(sample)
    if truth is None:
        return None
    return np.asarray(
        Image.fromarray(truth).resize(photo.networks.sam.logits_size(photo.embedding))
    )


def shuffle_questions(samples: Sequence[Sample], seed: int = 0) -> dict[str, str]:
    """For each sample, by id, the question of a sample about another image."""
    images = list(dict.fromkeys(sample.image_id for sample in samples))
    order = np.random.default_rng(seed).permutation(len(images)).tolist()
    other = {
        images[one]: images[order[(place + 1) % len(order)]]
        for place, one in enumerate(order)
    }
    questions: dict[str, list[str]] = {}
    for sample in samples:
        questions.setdefault(sample.image_id, []).append(sample.question)
    asked: dict[str, int] = {}
    found = {}
    for sample in samples:
        choices = questions[other[sample.image_id]]
        number = asked.get(sample.image_id, 0)
        found[sample.id] = choices[number % len(choices)]
        asked[sample.image_id] = number + 1
    return found


def named(prediction: Prediction, sample: Sample) -> Prediction:
    """The prediction with the sample's id."""
    return msgspec.structs.replace(prediction, sample=sample.id)


def _one_mask(mask: BoolArray, sample: Sample) -> Prediction:
    found = Mask.from_dense(mask)
    return Prediction(
        mask_type=sample.mask_type,
        regions=(PredictedRegion(visible=found, amodal=found),),
    )

"""Grounding: which objects and parts of an image a question means."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskwise.arrays import Float32Array
from maskwise.models.tiny.answer import unique_names
from maskwise.models.tiny.detections import DetectedObjects, occlusion_matrix
from maskwise.models.tiny.features import ObjectFeatures
from maskwise.models.tiny.networks import Networks
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    CATEGORIES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    IMAGE_SIZE,
    MAX_PARTS,
    TARGET_THRESHOLD,
)
from maskwise.models.tiny.tokenizer import tokenize

CandidateKey = tuple[int, int]
"""Index of an object, and the number of a part of it from 1, or 0 for the whole object."""


class Candidate(NamedTuple):
    """An object or part that a question may mean. name: unique in the image. noun: category, or part name.
    visible_area: in pixels. center_x: mean column of the amodal mask, as a fraction of the image.
    """

    name: str
    noun: str
    visible_area: int
    center_x: float


def target_probabilities(
    networks: Networks, features: ObjectFeatures, questions: Sequence[str]
) -> Float32Array:
    """float32 [q, n, 1 + MAX_PARTS]: probability that each object (first column) and part is a target."""
    count = len(features.unary)
    if not count or not questions:
        return np.zeros((len(questions), count, 1 + MAX_PARTS), np.float32)
    logits = networks.ground(tokenize(questions), features)
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def select_targets(
    candidates: dict[CandidateKey, Candidate], probabilities: Float32Array
) -> list[CandidateKey]:
    """The candidates of at least TARGET_THRESHOLD, from probabilities [n, 1 + MAX_PARTS] of one question."""
    return [key for key in candidates if probabilities[key] >= TARGET_THRESHOLD]


def list_candidates(objects: DetectedObjects) -> dict[CandidateKey, Candidate]:
    """Every object, each followed by its parts that have pixels, from front to back."""
    occlusion = occlusion_matrix(objects)
    order = np.argsort(occlusion.sum(0) - occlusion.sum(1), kind="stable").tolist()
    labels = {i: _category_and_color(objects.attributes[i]) for i in order}
    whole_x = {i: _center_x(objects, (i, 0)) for i in order}
    names = unique_names([(*labels[i], whole_x[i]) for i in order])
    candidates = {}
    for i, name in zip(order, names):
        category = labels[i][0]
        for part, noun in enumerate((category, *CATEGORIES[category].parts)):
            mask = objects.mask(i, part)
            if mask.any():
                candidates[i, part] = Candidate(
                    name=name if part == 0 else f"{noun} of the {name}",
                    noun=noun,
                    visible_area=int((mask & objects.visible[i]).sum()),
                    center_x=_center_x(objects, (i, part)),
                )
    return candidates


def _category_and_color(attributes: Float32Array) -> tuple[str, str]:
    category, color, _ = np.split(attributes, np.cumsum(ATTRIBUTE_SIZES[:2]))
    return CATEGORY_NAMES[int(category.argmax())], COLOR_NAMES[int(color.argmax())]


def _center_x(objects: DetectedObjects, key: CandidateKey) -> float:
    mask = objects.mask(*key)
    centers = (np.arange(IMAGE_SIZE) + 0.5) / IMAGE_SIZE
    return float(mask.sum(0) @ centers) / max(int(mask.sum()), 1)

"""Grounding: which objects and parts of an image a question means."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, Float32Array
from maskwise.models.tiny.detections import DetectedObjects, occlusion_matrix
from maskwise.models.tiny.features import ObjectFeatures
from maskwise.models.tiny.networks import Networks
from maskwise.models.tiny.object_names import unique_names
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
    # Objects that are hidden less than they hide others stand in front.
    hidden = occlusion.sum(0)
    hides = occlusion.sum(1)
    order = np.argsort(hidden - hides, kind="stable").tolist()
    labels = []
    for index in order:
        category, color = _category_and_color(objects.attributes[index])
        labels.append((category, color, _center_x(objects.mask(index, 0))))
    names = unique_names(labels)
    candidates = {}
    for index, name, (category, _, _) in zip(order, names, labels):
        nouns = (category, *CATEGORIES[category].parts)
        for part, noun in enumerate(nouns):
            mask = objects.mask(index, part)
            if mask.any():
                candidates[index, part] = Candidate(
                    name=name if part == 0 else f"{noun} of the {name}",
                    noun=noun,
                    visible_area=int((mask & objects.visible[index]).sum()),
                    center_x=_center_x(mask),
                )
    return candidates


def _category_and_color(attributes: Float32Array) -> tuple[str, str]:
    """The most probable of each, from the attributes of one object."""
    category, color, _ = np.split(attributes, np.cumsum(ATTRIBUTE_SIZES[:2]))
    return CATEGORY_NAMES[int(category.argmax())], COLOR_NAMES[int(color.argmax())]


def _center_x(mask: BoolArray) -> float:
    """Mean column of a mask, bool [IMAGE_SIZE, IMAGE_SIZE], as a fraction of the image; 0 if it is empty."""
    centers = (np.arange(IMAGE_SIZE) + 0.5) / IMAGE_SIZE
    pixels = int(mask.sum())
    return float(mask.sum(0) @ centers) / max(pixels, 1)

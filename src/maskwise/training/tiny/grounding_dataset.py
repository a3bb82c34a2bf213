"""Training examples of the grounder: the features of detected objects, and the targets of each question among them.

Detection takes time, so its results are kept in shards, one per SCENES_PER_SHARD scenes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maskwise.arrays import Float32Array, Int64Array
from maskwise.models.tiny.features import ObjectFeatures, object_features
from maskwise.models.tiny.greedy_matching import match_masks
from maskwise.models.tiny.model import Tiny
from maskwise.models.tiny.scene_example import SceneExample
from maskwise.models.tiny.spec import MAX_PARTS, PAIRWISE_FEATURES
from maskwise.models.tiny.tokenizer import tokenize
from maskwise.store.atomic import atomic_write
from maskwise.training.tiny.scene_dataset import SCENES_PER_SHARD


class GroundingQuestion(NamedTuple):
    """tokens: int64 [length, 1 + MAX_TRIGRAMS]. phrase: the tokens of its noun phrase, where known. targets: float32
    [n, 1 + MAX_PARTS], 1 for the objects and parts that are meant.
    """

    tokens: Int64Array
    phrase: Int64Array | None
    targets: Float32Array


GroundingExample = tuple[ObjectFeatures, list[GroundingQuestion]]
"""The objects of an image and the questions about it."""

SceneDetections = tuple[ObjectFeatures, Int64Array]
"""The features of n detections, and the index of the annotated object that each one is, or -1."""


def annotated_objects(example: SceneExample) -> SceneDetections:
    """The annotations, as a perfect detector would return them."""
    objects = example.objects()
    return object_features(objects), np.arange(len(objects.visible))


def detect_objects(model: Tiny, example: SceneExample) -> SceneDetections:
    """The detections of a model."""
    objects = model.detect(example.image)
    matches = match_masks(objects.visible, example.objects().visible)
    return object_features(objects), np.array(matches, np.int64)


def detect_all(
    model: Tiny, examples: Sequence[SceneExample], folder: Path
) -> Iterator[SceneDetections]:
    """`detect_objects` for each example; shards that exist are read instead."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(examples), SCENES_PER_SHARD):
        path = folder / f"{first // SCENES_PER_SHARD:04}.npz"
        if not path.exists():
            chunk = examples[first : first + SCENES_PER_SHARD]
            _write_shard(path, [detect_objects(model, example) for example in chunk])
        yield from _read_shard(path)


def make_grounding_example(
    example: SceneExample, detections: SceneDetections
) -> GroundingExample:
    """The questions of an example with targets among the detections; a target that was not detected is left out."""
    features, matches = detections
    detection_of = {}
    for detection, annotated in enumerate(matches.tolist()):
        if annotated >= 0:
            detection_of[annotated] = detection
    questions = []
    for question in example.questions:
        targets = np.zeros((len(matches), 1 + MAX_PARTS), np.float32)
        for annotated, part in question.targets:
            if annotated in detection_of:
                targets[detection_of[annotated], part] = 1
        phrase = (
            None
            if question.noun_phrase is None
            else tokenize([question.noun_phrase])[0]
        )
        questions.append(
            GroundingQuestion(tokenize([question.text])[0], phrase, targets)
        )
    return features, questions


def _write_shard(path: Path, scenes: list[SceneDetections]) -> None:
    all_unary = []
    all_pairwise = []
    all_matches = []
    for features, matches in scenes:
        all_unary.append(features.unary)
        all_pairwise.append(features.pairwise.reshape(-1, PAIRWISE_FEATURES))
        all_matches.append(matches)
    with atomic_write(path) as file:
        np.savez(
            file,
            counts=np.array([len(matches) for matches in all_matches]),
            unary=np.concatenate(all_unary),
            pairwise=np.concatenate(all_pairwise),
            matches=np.concatenate(all_matches),
        )


def _read_shard(path: Path) -> Iterator[SceneDetections]:
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    at = 0
    pairs = 0
    for n in columns["counts"].tolist():
        unary = columns["unary"][at : at + n]
        matches = columns["matches"][at : at + n]
        pairwise = columns["pairwise"][pairs : pairs + n * n].reshape(
            n, n, PAIRWISE_FEATURES
        )
        yield ObjectFeatures(unary, pairwise), matches
        at = at + n
        pairs = pairs + n * n

"""Images and questions that occur twice, in a dataset or in another one."""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import UInt64Array
from maskwise.builder.image_hash import MAX_DISTANCE, hash_image, near_pairs
from maskwise.errors import ImageError, StoreError
from maskwise.harness.plan import Plan
from maskwise.language.tokens import split_words
from maskwise.store import Dataset

NGRAM = 8
"""Words that two questions have to share in a row to overlap. Templates of questions share fewer;
shorter questions overlap where all their words are equal."""

MAX_IMAGES = 5000
"""Images of either dataset that are compared, drawn with the seed: decoding them takes a minute."""

MIN_WORDS = 4
"""Shorter questions ("the dog") are alike by chance and are not compared with other datasets."""


@dataclass(frozen=True)
class Overlap:
    """Pairs of a dataset with itself or with another one.

    name: of the other one. images: near-identical images, as ids. shared_images: share of the
    dataset's images that are in a pair; None where no image could be opened. questions: share of
    its questions that share an n-gram with the other one; inside a dataset, share of those asked
    before about the same image.
    """

    name: str
    images: list[tuple[str, str]]
    shared_images: float | None
    questions: float


def find_inside(dataset: Dataset, seed: int = 0) -> Overlap:
    """Near-identical images of a dataset, and questions that are asked twice about one image."""
    ids, hashes = hash_images(dataset, seed)
    pairs = [
        (ids[first], ids[second])
        for first, second in near_pairs(hashes, hashes, MAX_DISTANCE)
        if first < second
    ]
    asked = set()
    repeated = 0
    samples = dataset.samples
    rows = zip(samples.image.tolist(), samples.mask_type.tolist(), samples.question)
    for image, mask_type, text in rows:
        key = (image, mask_type, split_words(text))
        repeated += key in asked
        asked.add(key)
    paired = {id for pair in pairs for id in pair}
    return Overlap(
        name=dataset.name,
        images=pairs,
        shared_images=len(paired) / len(ids) if ids else None,
        questions=repeated / max(1, len(dataset)),
    )


def find_between(dataset: Dataset, other: Dataset, seed: int = 0) -> Overlap:
    """Near-identical images of two datasets, and questions with words in common."""
    ids, hashes = hash_images(dataset, seed)
    other_ids, other_hashes = hash_images(other, seed)
    pairs = [
        (ids[first], other_ids[second])
        for first, second in near_pairs(hashes, other_hashes, MAX_DISTANCE)
    ]
    known = set()
    for text in other.samples.question:
        known.update(question_ngrams(text))
    shared = 0
    for text in dataset.samples.question:
        shared += not known.isdisjoint(question_ngrams(text))
    paired = {own for own, _ in pairs}
    is_known = bool(ids and other_ids)
    return Overlap(
        name=other.name,
        images=pairs,
        shared_images=len(paired) / len(ids) if is_known else None,
        questions=shared / max(1, len(dataset)),
    )


def hash_images(dataset: Dataset, seed: int) -> tuple[list[str], UInt64Array]:
    """Ids and hashes of the images with questions that can be opened, at most MAX_IMAGES."""
    ids = []
    hashes = []
    for image in Plan.from_dataset(
        dataset, limit=MAX_IMAGES, seed=seed
    ).images.tolist():
        try:
            pixels = dataset.open_image(image)
        except (ImageError, StoreError, OSError):
            continue
        ids.append(dataset.images.id[image])
        hashes.append(hash_image(pixels))
    return ids, np.array(hashes, np.uint64)


def question_ngrams(text: str) -> set[tuple[str, ...]]:
    """The n-grams of a question; all its words where it is shorter, none where it is very short."""
    words = split_words(text)
    if len(words) < MIN_WORDS:
        return set()
    count = max(1, len(words) - NGRAM + 1)
    return {tuple(words[first : first + NGRAM]) for first in range(count)}

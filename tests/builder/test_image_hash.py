"""Near-identical images are found after compression and scaling; different photos are not."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from maskwise.builder.image_hash import (
    MAX_DISTANCE,
    find_leaked_images,
    hash_dataset,
    hash_image,
    image_splits,
    near_pairs,
)
from maskwise.images import open_image
from maskwise.schema import ImageInfo, Sample
from maskwise.store import Dataset, DatasetWriter
from tests.shared import shared


def make_image(seed: int, size: tuple[int, int] = (96, 64)) -> Image.Image:
    """Smooth random blobs."""
    small = np.random.default_rng(seed).integers(0, 256, (6, 9, 3), np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)


def compress(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


def distance(a: Image.Image, b: Image.Image) -> int:
    return (hash_image(a) ^ hash_image(b)).bit_count()


@pytest.mark.parametrize("seed", range(5))
def test_hashes_survive_compression_and_scaling(seed: int) -> None:
    image = make_image(seed, (300, 200))
    assert distance(image, compress(image, 25)) <= MAX_DISTANCE
    assert distance(image, image.resize((120, 80))) <= MAX_DISTANCE
    assert distance(image, image.point(lambda value: value * 0.85)) <= MAX_DISTANCE
    assert (
        distance(image, image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)) > MAX_DISTANCE
    )
    assert distance(image, make_image(seed + 100)) > MAX_DISTANCE


def test_real_photos_are_different_and_their_copies_are_not() -> None:
    files = sorted(shared("data", "tiny_coco", "val2017").glob("*.jpg"))
    photos = [open_image(file) for file in files]
    hashes = np.array([hash_image(photo) for photo in photos], np.uint64)
    assert near_pairs(hashes, hashes, MAX_DISTANCE) == [
        (row, row) for row in range(len(photos))
    ]
    copies = [
        compress(photo.resize((photo.width // 2, photo.height // 2)), 40)
        for photo in photos
    ]
    copied = np.array([hash_image(copy) for copy in copies], np.uint64)
    assert near_pairs(hashes, copied, MAX_DISTANCE) == [
        (row, row) for row in range(len(photos))
    ]


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=6),
    st.lists(st.integers(0, 2**64 - 1), max_size=6),
)
def test_near_pairs_are_those_of_few_different_bits(a: list[int], b: list[int]) -> None:
    found = near_pairs(np.array(a, np.uint64), np.array(b, np.uint64), 24)
    assert found == [
        (row, column)
        for row, first in enumerate(a)
        for column, second in enumerate(b)
        if (first ^ second).bit_count() <= 24
    ]


def test_images_of_other_datasets_are_found() -> None:
    found = find_leaked_images(
        {"a": 0b1111, "b": 2**40 - 1}, others={"coco": {"x": 0, "y": 2**63}}
    )
    assert found == {"a": "near-identical to image 'x' of coco"}


def test_the_training_side_of_a_leak_is_rejected() -> None:
    hashes = {"a": 1, "b": 1, "c": 1, "d": 2**40 - 1, "e": 2**40 - 1, "f": 1}
    splits = {"a": "train", "b": "test", "c": "val", "d": "train", "e": "train"}
    assert find_leaked_images(hashes, splits=splits) == {
        "a": "near-identical to image 'b' of split test",
        "c": "near-identical to image 'b' of split test",
    }
    assert find_leaked_images(hashes) == {}
    assert find_leaked_images({}, splits=splits, others={"coco": {}}) == {}


def test_a_dataset_is_hashed_by_image_id(tmp_path: Path) -> None:
    file = io.BytesIO()
    make_image(1).save(file, "PNG")
    with DatasetWriter(tmp_path / "data", name="data") as writer:
        writer.add_image(ImageInfo(id="one", width=96, height=64), data=file.getvalue())
    counted: list[int] = []
    dataset = Dataset.open(tmp_path / "data")
    assert hash_dataset(dataset, done=counted.append) == {
        "one": hash_image(make_image(1))
    }
    assert counted == [1]


def test_splits_come_from_the_tags_of_questions(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "data", name="data") as writer:
        for number, tags in enumerate(({"split": "train"}, {"split": "test"}, {})):
            writer.add_image(ImageInfo(id=str(number), width=9, height=6))
            writer.add_sample(
                Sample(
                    id=f"s{number}", image_id=str(number), question="What?", tags=tags
                )
            )
    assert image_splits(Dataset.open(tmp_path / "data")) == {"0": "train", "1": "test"}


def test_a_dataset_without_questions_has_no_splits(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "data", name="data") as writer:
        writer.add_image(ImageInfo(id="0", width=9, height=6))
    assert image_splits(Dataset.open(tmp_path / "data")) == {}

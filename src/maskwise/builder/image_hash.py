"""Perceptual image hashes: near-identical images of different splits or datasets.

The hash has 64 bits: the signs of the 64 lowest frequencies, without the constant one, of the discrete cosine transform
of the image in grey, reduced to 32 x 32 pixels (after Zauner, "Implementation and benchmarking of perceptual image hash
functions", 2010). Compression, scaling and changes of brightness alter few bits. Crops of more than a few percent,
rotations and mirror images count as other images.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from PIL import Image

from maskwise.arrays import Float64Array, Int64Array, UInt64Array
from maskwise.store import Dataset

SIDE = 32
"""Side in pixels of the reduced image."""

BITS = 64
"""Bits of a hash: as many as one integer of numpy has."""

MAX_DISTANCE = 8
"""Images that differ in at most this many bits are near-identical. Unrelated images
differ in 32 of 64 bits on average, with a standard deviation of 4."""

BLOCK = 2**22
"""Pairs compared at once: 32 MB of differences."""

SPLIT_RANKS = {"train": 0, "val": 1, "validation": 1, "test": 2}
"""Of two near-identical images the one in the split of lower rank is rejected; unknown splits rank like val."""

ImageHashes = Mapping[str, int]
"""Hashes by image id."""


def hash_image(image: Image.Image) -> int:
    """The hash of an image, an integer of 64 bits."""
    reduced = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    grey = np.asarray(reduced, np.float64)
    cosines, rows, columns = _transform()
    frequencies = cosines @ grey @ cosines.T
    signs = frequencies[rows, columns] > 0
    return int.from_bytes(np.packbits(signs).tobytes(), "big")


def hash_dataset(
    dataset: Dataset, *, done: Callable[[int], None] = lambda count: None
) -> dict[str, int]:
    """The hash of every image of a dataset. done: called with the number of images just hashed."""
    hashes = {}
    for id in dataset.images.id:
        hashes[id] = hash_image(dataset.open_image(id))
        done(1)
    return hashes


def image_splits(dataset: Dataset) -> dict[str, str]:
    """The split of each image, from the tag `split` of its first question; empty if no question has the tag."""
    if "split" not in dataset.samples.tag_names:
        return {}
    codes, names = dataset.samples.tag("split")
    splits: dict[str, str] = {}
    for image, code in zip(dataset.samples.image.tolist(), codes.tolist()):
        split = names[code]
        if split is not None:
            splits.setdefault(dataset.images.id[image], split)
    return splits


def find_leaked_images(
    images: ImageHashes,
    *,
    splits: Mapping[str, str] | None = None,
    others: Mapping[str, ImageHashes] | None = None,
    max_distance: int = MAX_DISTANCE,
) -> dict[str, str]:
    """Images to reject, with the near-identical image that is the reason.

    splits: the split of each image of the dataset. others: hashes of other datasets, by name.
    """
    leaked: dict[str, str] = {}
    ids = list(images)
    hashes = _to_array(images.values())
    for name, other in (others or {}).items():
        other_ids = list(other)
        other_hashes = _to_array(other.values())
        for place, other_place in near_pairs(hashes, other_hashes, max_distance):
            reason = f"near-identical to image {other_ids[other_place]!r} of {name}"
            leaked.setdefault(ids[place], reason)
    leaked_pairs = _leaked_pairs(ids, hashes, splits or {}, max_distance=max_distance)
    for lost, kept, split in leaked_pairs:
        leaked.setdefault(lost, f"near-identical to image {kept!r} of split {split}")
    return leaked


def _leaked_pairs(
    ids: Sequence[str],
    hashes: UInt64Array,
    splits: Mapping[str, str],
    *,
    max_distance: int,
) -> Iterator[tuple[str, str, str]]:
    """Near-identical images of two splits: the one to reject, the one to keep and its split."""
    known = [place for place, id in enumerate(ids) if id in splits]
    if len({splits[ids[place]] for place in known}) < 2:
        return
    known_hashes = hashes[known]
    for first, second in near_pairs(known_hashes, known_hashes, max_distance):
        if first >= second:
            continue  # each pair occurs in both orders, and each image with itself
        first_id = ids[known[first]]
        second_id = ids[known[second]]
        first_split = splits[first_id]
        second_split = splits[second_id]
        if first_split == second_split:
            continue
        if _rank(first_split) > _rank(second_split):
            yield second_id, first_id, first_split
        else:
            yield first_id, second_id, second_split


def near_pairs(
    a: UInt64Array, b: UInt64Array, max_distance: int
) -> list[tuple[int, int]]:
    """Positions in `a` and `b` of hashes that differ in at most `max_distance` bits, ascending."""
    pairs: list[tuple[int, int]] = []
    rows = max(1, BLOCK // max(1, len(b)))
    for first in range(0, len(a), rows):
        distance = np.bitwise_count(a[first : first + rows, None] ^ b[None])
        near, columns = np.nonzero(distance <= max_distance)
        pairs += zip((near + first).tolist(), columns.tolist())
    return pairs


def _rank(split: str) -> int:
    return SPLIT_RANKS.get(split, 1)


def _to_array(hashes: Iterable[int]) -> UInt64Array:
    return np.array(list(hashes), np.uint64)


@functools.cache
def _transform() -> tuple[Float64Array, Int64Array, Int64Array]:
    """The matrix of the transform, and row and column of the frequencies used."""
    numbers = np.arange(SIDE)
    cosines = np.cos(np.pi * (numbers + 0.5) * numbers[:, None] / SIDE)
    # From the lowest frequency to the highest; the first one is the constant.
    places: Sequence[tuple[int, int]] = sorted(
        np.ndindex(SIDE, SIDE), key=lambda place: (sum(place), place[0])
    )
    rows, columns = np.array(places[1 : BITS + 1]).T
    return cosines, rows, columns

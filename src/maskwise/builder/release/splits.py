"""Assign images to splits, so that a later version keeps every image in its split.

An image whose samples have the tag `split` stays there. The split of any other image depends on the hash of its file
and the seed alone. Images that belong together stay together: equal files, and what `maskwise build occlude` made from
one image (originals and composites).
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Mapping

from maskwise.builder.occlude import parse_pair_id
from maskwise.errors import ImageError, ReleaseError
from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.store import Dataset

RATIOS = {"train": 0.8, "val": 0.1, "test": 0.1}
"""Share of the images in each split."""


def parse_ratios(text: str) -> dict[str, float]:
    """Ratios from `train=0.8,val=0.1,test=0.1`."""
    ratios = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        try:
            ratios[name] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ReleaseError(
                f"splits are given as train=0.8,val=0.1,test=0.1, not {text!r}"
            )
    check_ratios(ratios)
    return ratios


def check_ratios(ratios: Mapping[str, float]) -> None:
    """ReleaseError unless the names are valid and the ratios are shares of 1."""
    for name in ratios:
        check_split_name(name)
    are_shares = all(0 <= ratio <= 1 for ratio in ratios.values())
    if not are_shares or not math.isclose(sum(ratios.values()), 1):
        raise ReleaseError(
            f"the ratios of the splits must be between 0 and 1 and add up to 1: {dict(ratios)}"
        )


def check_split_name(name: str) -> None:
    """ReleaseError for a name that `datasets` does not accept."""
    if re.fullmatch(r"\w{1,40}", name, re.ASCII) is None or name == "all":
        raise ReleaseError(
            f"{name!r} is no name for a split: use letters, digits and _; `all` means all splits"
        )


def assign_splits(
    dataset: Dataset,
    ratios: Mapping[str, float],
    *,
    seed: int = 0,
    keep_tags: bool = True,
) -> list[str]:
    """The split of each image, in row order. keep_tags: respect the tag `split`."""
    check_ratios(ratios)
    tagged = _tagged_splits(dataset) if keep_tags else {}
    hashes = [_image_hash(dataset, row) for row in range(len(dataset.images))]
    originals = _originals(dataset)
    splits = [""] * len(hashes)
    for group in _groups(dataset, hashes):
        known = {tagged[row]: row for row in group if row in tagged}
        if len(known) > 1:
            first_split, second_split = list(known)[:2]
            first_id = dataset.images.id[known[first_split]]
            second_id = dataset.images.id[known[second_split]]
            raise ReleaseError(
                f"images {first_id!r} and {second_id!r} belong together (equal files, "
                "or made from one image), but their samples have the splits "
                f"{first_split!r} and {second_split!r}"
            )
        drawn = _draw(_key(group, hashes, originals), ratios, seed)
        split = next(iter(known), drawn)
        for row in group:
            splits[row] = split
    return splits


def _tagged_splits(dataset: Dataset) -> dict[int, str]:
    """The split of each image row whose samples have the tag."""
    if "split" not in dataset.samples.tag_names:
        return {}
    codes, names = dataset.samples.tag("split")
    splits: dict[int, str] = {}
    for row, code in zip(dataset.samples.image.tolist(), codes.tolist()):
        name = names[code]
        if name is None:
            continue
        check_split_name(name)
        if splits.setdefault(row, name) != name:
            raise ReleaseError(
                f"image {dataset.images.id[row]!r} has samples in the splits {splits[row]!r} and {name!r}; splits are "
                "by image: change the tags, or assign all images again (--resplit)"
            )
    return splits


def _image_hash(dataset: Dataset, row: int) -> str:
    """The sha256 of the image file, or of the image's id if the file is not there."""
    try:
        content = read_encoded_image(dataset, row)
    except ImageError:
        content = dataset.images.id[row].encode()
    return hashlib.sha256(content).hexdigest()


def _groups(dataset: Dataset, hashes: list[str]) -> list[list[int]]:
    """Rows of images that belong together, in the order of their first rows.

    A union-find structure: `parent` leads from each row to the root of its group.
    """
    parent = list(range(len(hashes)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = row = parent[parent[row]]
        return row

    first: dict[tuple[str, str], int] = {}
    for row, value in enumerate(hashes):
        parent[root(row)] = root(first.setdefault(("hash", value), row))
    for row, id in enumerate(dataset.images.id):
        pair = parse_pair_id(id)
        if pair is not None:
            parent[root(row)] = root(first.setdefault(("source", pair[0]), row))
    groups: dict[int, list[int]] = defaultdict(list)
    for row in range(len(hashes)):
        groups[root(row)].append(row)
    return sorted(groups.values())


def _key(group: list[int], hashes: list[str], originals: set[int]) -> str:
    """The hash that decides about a group: that of its original, which no later
    composite changes; the smallest one if there is no original or several.
    """
    deciding = originals.intersection(group) or group
    return min(hashes[row] for row in deciding)


def _originals(dataset: Dataset) -> set[int]:
    """Rows of images that are the original of a pair."""
    pairs = map(parse_pair_id, dataset.images.id)
    return {
        row
        for row, pair in enumerate(pairs)
        if pair is not None and pair[1] == "original"
    }


def _draw(key: str, ratios: Mapping[str, float], seed: int) -> str:
    """The split of a hash: a number between 0 and 1 that depends on hash and seed, compared with the ratios."""
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    # The first 64 bits as a fraction of their largest value.
    number = int.from_bytes(digest[:8], "big") / 2**64
    total = 0.0
    for name, ratio in ratios.items():
        total += ratio
        if number < total:
            return name
    # Rounding may leave the sum of the ratios a little below 1.
    return [name for name, ratio in ratios.items() if ratio][-1]

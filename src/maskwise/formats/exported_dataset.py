"""What every writer needs: the images of a dataset with file names, and the JSON form of samples and regions.

Other formats have no fields for questions, answers, parts or amodal masks. The writers
store them as the annotations that readers make of any file (`formats.annotations`), so
that reading a written dataset gives the same records again.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from maskwise.errors import FormatError, ImageError
from maskwise.formats.annotations import (
    AnnotatedImage,
    QuestionAnnotation,
    RegionAnnotation,
)
from maskwise.images import resolve_inside
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset

VERSION = 1
"""Version of the structs below, stored in every written file."""

SIGNATURES = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG": ".png",
    b"GIF8": ".gif",
    b"II*\0": ".tif",
    b"MM\0*": ".tif",
}
"""First bytes of image formats and their suffixes."""


class DatasetFields(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset's own facts: its name and what its manifest says about it."""

    version: int
    name: str
    about: dict[str, str] = {}


class RegionEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A region, and where its masks are: paths or ids."""

    region: RegionAnnotation
    visible: str | None = None
    amodal: str | None = None


class ImageFields(msgspec.Struct, frozen=True, kw_only=True):
    """An image with its regions and samples."""

    id: str
    width: int
    height: int
    license: str | None = None
    attribution: str | None = None
    regions: list[RegionEntry] = []
    samples: list[QuestionAnnotation] = []


def export_images(
    dataset: Dataset, *, with_images: bool
) -> Iterator[tuple[str, AnnotatedImage]]:
    """All images in row order, each with its regions and with its samples in row order.

    Of a view (slice, filter, shard) only the images that its samples ask about. The
    text is the file name of the image below the new image folder; no other image has
    it. `data` is None if images are not written.
    """
    names = _FileNames()
    samples = {image.id: tuple(asked) for image, asked in dataset.groups()}
    whole = len(dataset) == dataset.manifest.counts["samples"]
    for row, id in enumerate(dataset.images.id):
        if not whole and id not in samples:
            continue
        image = dataset.image(row)
        data = read_encoded_image(dataset, row) if with_images else None
        file_name = names.choose(image, row, data)
        regions = dataset.regions_of(row)
        yield file_name, AnnotatedImage(image, regions, samples.get(id, ()), data)


def write_image(path: Path, data: bytes | None) -> None:
    """Write an image file, unless images are not written (None)."""
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def split_name(dataset: Dataset) -> str:
    """The split for file names: the manifest's, or the only value of the tag `split`; `data` if it is not known."""
    split = dataset.manifest.about.get("split")
    if split is None and "split" in dataset.samples.tag_names:
        values = dataset.samples.tag("split").names
        split = values[0] if len(values) == 1 else None
    return (
        split
        if split is not None and re.fullmatch(r"\w{1,40}", split, re.ASCII)
        else "data"
    )


def check_version(fields: DatasetFields, path: Path) -> None:
    """FormatError for a file that was written by another version."""
    if fields.version != VERSION:
        raise FormatError(
            f"{path} was written with version {fields.version}; this version reads {VERSION}"
        )


def to_dataset_fields(dataset: Dataset) -> DatasetFields:
    """The facts of a dataset."""
    return DatasetFields(
        version=VERSION, name=dataset.name, about=dict(dataset.manifest.about)
    )


def without_masks(region: Region) -> RegionAnnotation:
    """The stored form of a region: everything but its masks."""
    return RegionAnnotation(
        id=region.id,
        name=region.name,
        part_of=region.part_of,
        order=region.order,
        crowd=region.crowd,
        overlap=region.overlap,
    )


def to_question(sample: Sample) -> QuestionAnnotation:
    """The stored form of a sample, with its targets as ids."""
    return QuestionAnnotation(
        id=sample.id,
        question=sample.question,
        mask_type=sample.mask_type,
        targets=tuple(region.id for region in sample.targets),
        answer=sample.answer,
        ignore=sample.ignore,
        tags=sample.tags,
        other_targets=tuple(
            tuple(region.id for region in regions) for regions in sample.other_targets
        ),
        turns=sample.turns,
    )


def to_image_fields(
    exported: AnnotatedImage, regions: list[RegionEntry]
) -> dict[str, Any]:
    """The fields of ImageFields, by name."""
    image = exported.image
    return {
        "id": image.id,
        "width": image.width,
        "height": image.height,
        "license": image.license,
        "attribution": image.attribution,
        "regions": regions,
        "samples": [to_question(sample) for sample in exported.samples],
    }


def name_records(
    questions: Iterable[QuestionAnnotation], prefix: str = ""
) -> tuple[QuestionAnnotation, ...]:
    """Stored questions with their place in the file, for diagnostics."""
    return tuple(
        msgspec.structs.replace(question, record=f"{prefix}sample {question.id}")
        for question in questions
    )


def to_builtins(fields: msgspec.Struct) -> dict[str, Any]:
    """A struct as a dict for JSON."""
    content: dict[str, Any] = msgspec.to_builtins(fields)
    return content


def read_encoded_image(dataset: Dataset, row: int) -> bytes:
    """The image file of a row as it is, embedded or below the image root; ImageError if it is not there."""
    image = dataset.image(row)
    data = dataset.images.table["data"][row]
    if data.is_valid:
        return bytes(data.as_py())
    if image.path is None or dataset.image_root is None:
        raise ImageError(
            f"{dataset.path}: image {image.id!r} has no bytes and no known folder; give --images or use --no-images"
        )
    try:
        return resolve_inside(dataset.image_root, image.path).read_bytes()
    except OSError as error:
        raise ImageError(
            f"{dataset.image_root / image.path} cannot be read: {error.strerror}"
        ) from None


class _FileNames:
    """Chooses one file name per image: its path, or its id if that is a plain name, or its row."""

    def __init__(self) -> None:
        self._taken: dict[str, str | None] = {}

    def choose(self, image: ImageInfo, row: int, data: bytes | None) -> str:
        """A name that no image with another file has; names are compared without case."""
        suffix = _suffix(data)
        candidates = [image.path] if image.path is not None else []
        if re.fullmatch(r"[\w-][\w.-]{0,99}", image.id, re.ASCII):
            candidates.append(image.id + suffix)
        numbered = (f"image-{row}{'-' * extra}{suffix}" for extra in itertools.count())
        for name in itertools.chain(candidates, numbered):
            key = str(PurePosixPath(name)).lower()
            same_file = (
                image.path is not None and self._taken.get(key) == image.path == name
            )
            if key not in self._taken or same_file:
                self._taken[key] = image.path
                return name
        raise AssertionError


def _suffix(data: bytes | None) -> str:
    if data is not None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ".webp"
    return next(
        (
            suffix
            for start, suffix in SIGNATURES.items()
            if data is not None and data.startswith(start)
        ),
        ".img",
    )

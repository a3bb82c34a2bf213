"""Merge datasets into one folder: every image, region and sample is kept, with its ids, splits and licenses.

    summary = merge_datasets([load_dataset("cocoa_val"), load_dataset("d2sa_val")], "sources")

Ids stay as they are where they are free. Where two datasets have an image of the same id, it is either the same image
(equal file and size, and the regions of one are among those of the other), which is written once with the samples of
both, or another one, which is renamed to `SOURCE/id`. A sample whose id is taken is renamed in the same way; an equal
sample of a joined image is written once. Samples get the tags `source` and, where the manifest of their dataset names a
split, `split`, unless they have them. Beside its tables the folder holds

    merge.json         the summary: what came from which source
    collisions.jsonl   every image and sample that was joined, renamed or dropped

Images given by path stay where they are: the image root of the merged folder is the folder that contains those of all
sources.
"""

import hashlib
import os
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from maskwise.errors import ImageError, StoreError
from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import IGNORED_PIXELS, MERGED, refuse_source_folder

SUMMARY = "merge.json"
COLLISIONS = "collisions.jsonl"

SOURCE_TAG = "source"
SPLIT_TAG = "split"
PAIR_TAG = "pair"
"""`occlude` names the two images of a pair by the id of their original."""


class MergedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that was merged. images, samples: how many of it were written.

    `joined` images were already there. `renamed` counts images and samples, `dropped` samples that were already there.
    """

    name: str
    path: str
    split: str | None
    license: str | None
    images: int = 0
    samples: int = 0
    joined: int = 0
    renamed: int = 0
    dropped: int = 0


class MergeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What was merged. Images are written source by source, so the counts of images also say whose an image is."""

    out: str
    images: int
    samples: int
    sources: tuple[MergedSource, ...]


class Collision(msgspec.Struct, frozen=True, kw_only=True):
    """An id that an earlier source has too, and what was done about it. new_id: after renaming."""

    kind: Literal["image", "sample"]
    action: Literal["joined", "renamed", "dropped"]
    source: str
    id: str
    new_id: str | None = None


class Occurrence(NamedTuple):
    """An image of a source: number of the source, row of the image."""

    source: int
    row: int


def merge_datasets(
    datasets: Sequence[Dataset],
    out: str | os.PathLike[str],
    *,
    embed: bool = False,
    overwrite: bool = False,
    done: Callable[[int], object] = lambda count: None,
) -> MergeSummary:
    """Write several datasets as one dataset folder.

    embed: store the image files in the folder, so that it does not depend on theirs. done: called with the number of
    images just read.
    """
    if len(datasets) < 2:
        raise StoreError("merge needs two datasets or more")
    path = Path(out)
    refuse_source_folder(path, [dataset.path for dataset in datasets])
    root = None if embed else _common_root(datasets)
    names = _unique_names(datasets)
    with DatasetWriter(
        path,
        name="+".join(names),
        image_root=root,
        about=_merge_about(datasets, names),
        overwrite=overwrite,
    ) as writer:
        merger = _Merger(datasets, names, writer, root, embed=embed)
        for group in _group_images(datasets):
            merger.add(group)
            done(len(group))
        summary = MergeSummary(
            out=str(path),
            images=sum(source.images for source in merger.sources),
            samples=sum(source.samples for source in merger.sources),
            sources=tuple(merger.sources),
        )
        text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
        (writer.folder / SUMMARY).write_bytes(text + b"\n")
        lines = [msgspec.json.encode(collision) for collision in merger.collisions]
        (writer.folder / COLLISIONS).write_bytes(
            b"".join(line + b"\n" for line in lines)
        )
    return summary


def merged_tags(dataset: Dataset) -> Callable[[int], dict[str, str]]:
    """The tags `source` and `split` of an image row of a merged dataset; no tags for other datasets."""
    file = dataset.path / SUMMARY
    if not file.is_file():
        return lambda row: {}
    try:
        summary = msgspec.json.decode(file.read_bytes(), type=MergeSummary)
    except msgspec.DecodeError as error:
        raise StoreError(f"{file} is not the summary of a merge: {error}") from None
    ends = np.cumsum([source.images for source in summary.sources]).tolist()
    if ends[-1] != len(dataset.images):
        raise StoreError(
            f"{file} counts {ends[-1]} images, the dataset has {len(dataset.images)}"
        )
    tags = [_source_tags(source) for source in summary.sources]
    return lambda row: tags[bisect_right(ends, row)]


def _source_tags(source: MergedSource) -> dict[str, str]:
    tags = {SOURCE_TAG: source.name}
    return tags if source.split is None else tags | {SPLIT_TAG: source.split}


class _Merger:
    """Writes images and samples, and knows which ids are taken."""

    def __init__(
        self,
        datasets: Sequence[Dataset],
        names: Sequence[str],
        writer: DatasetWriter,
        root: Path | None,
        *,
        embed: bool,
    ) -> None:
        self.datasets = datasets
        self.writer = writer
        self.root = root
        self.embed = embed
        self.collisions: list[Collision] = []
        self.sources = [
            MergedSource(
                name=name,
                path=str(dataset.path.resolve()),
                split=dataset.manifest.about.get(SPLIT_TAG),
                license=dataset.manifest.about.get("license"),
            )
            for name, dataset in zip(names, datasets)
        ]
        self._sample_rows = [_rows_by_image(dataset) for dataset in datasets]
        self._image_ids = {id for dataset in datasets for id in dataset.images.id}
        self._sample_ids = {id for dataset in datasets for id in dataset.samples.id}
        self._written_images: set[str] = set()
        self._shared_sample_ids = _shared([dataset.samples.id for dataset in datasets])
        self._written_samples: dict[str, Sample] = {}

    def add(self, group: Sequence[Occurrence]) -> None:
        """Write the first image of a group of occurrences that are the same image, and the samples of all."""
        first = group[0]
        dataset = self.datasets[first.source]
        info = dataset.image(first.row)
        image_id = info.id
        if image_id in self._written_images:
            image_id = self._free_id(first.source, info.id, self._image_ids)
            self._record("image", "renamed", first.source, info.id, image_id)
        self._written_images.add(image_id)
        data = self._embedded(first)
        path = self._path(first, info, data)
        placed = replace(info, id=image_id, path=path)
        self.writer.add_image(placed, self._join_regions(group), data)
        self._count(first.source, images=1)
        for occurrence in group[1:]:
            self._record("image", "joined", occurrence.source, info.id)
        for occurrence in group:
            self._add_samples(occurrence, image_id)

    def _join_regions(self, group: Sequence[Occurrence]) -> list[Region]:
        regions: dict[str, Region] = {}
        for occurrence in group:
            dataset = self.datasets[occurrence.source]
            for region in dataset.regions_of(occurrence.row):
                regions.setdefault(region.id, region)
        return [*regions.values()]

    def _embedded(self, occurrence: Occurrence) -> bytes | None:
        dataset = self.datasets[occurrence.source]
        if self.embed:
            return read_encoded_image(dataset, occurrence.row)
        data: bytes | None = dataset.images.table["data"][occurrence.row].as_py()
        return data

    def _path(
        self, occurrence: Occurrence, info: ImageInfo, data: bytes | None
    ) -> str | None:
        """The path of an image file below the common root."""
        own_root = self.datasets[occurrence.source].image_root
        if data is not None or info.path is None:
            return None
        if own_root is None or self.root is None:
            return info.path
        folder = own_root.resolve().relative_to(self.root)
        return (folder / info.path).as_posix()

    def _add_samples(self, occurrence: Occurrence, image_id: str) -> None:
        number = occurrence.source
        rows = self._sample_rows[number].get(occurrence.row, [])
        for sample in self.datasets[number].take(rows):
            moved = replace(sample, image_id=image_id)
            written = self._written_samples.get(sample.id)
            if written == moved:
                self._record("sample", "dropped", number, sample.id)
                continue
            tagged = self._tag(number, moved, is_renamed=image_id != sample.image_id)
            if written is not None:
                new_id = self._free_id(number, sample.id, self._sample_ids)
                self._record("sample", "renamed", number, sample.id, new_id)
                tagged = replace(tagged, id=new_id)
            elif sample.id in self._shared_sample_ids:
                self._written_samples[sample.id] = moved
            self.writer.add_sample(tagged)
            self._count(number, samples=1)

    def _tag(self, number: int, sample: Sample, *, is_renamed: bool) -> Sample:
        """The sample with the tags of its source; its own tags win."""
        tags = _source_tags(self.sources[number]) | sample.tags
        if is_renamed and PAIR_TAG in tags:
            tags[PAIR_TAG] = f"{self.sources[number].name}/{tags[PAIR_TAG]}"
        return replace(sample, tags=tags)

    def _free_id(self, number: int, id: str, taken: set[str]) -> str:
        """An id that no dataset has; it is taken from now on."""
        new_id = f"{self.sources[number].name}/{id}"
        while new_id in taken:
            new_id += "'"
        taken.add(new_id)
        return new_id

    def _record(
        self,
        kind: Literal["image", "sample"],
        action: Literal["joined", "renamed", "dropped"],
        number: int,
        id: str,
        new_id: str | None = None,
    ) -> None:
        """Record a collision and count it."""
        name = self.sources[number].name
        collision = Collision(
            kind=kind, action=action, source=name, id=id, new_id=new_id
        )
        self.collisions.append(collision)
        self._count(number, **{action: 1})

    def _count(self, number: int, **counts: int) -> None:
        source = self.sources[number]
        sums = {name: getattr(source, name) + count for name, count in counts.items()}
        self.sources[number] = replace(source, **sums)


def _group_images(datasets: Sequence[Dataset]) -> Iterator[list[Occurrence]]:
    """The images of all datasets in order; those of later datasets that are the same image come with the first."""
    shared = _shared([dataset.images.id for dataset in datasets])
    joined: set[Occurrence] = set()
    for source, dataset in enumerate(datasets):
        for row, id in enumerate(dataset.images.id):
            first = Occurrence(source, row)
            if first in joined:
                continue
            group = [first]
            if id in shared:
                group += _find_copies(datasets, first, id, joined)
            joined.update(group)
            yield group


def _find_copies(
    datasets: Sequence[Dataset], first: Occurrence, id: str, joined: set[Occurrence]
) -> list[Occurrence]:
    """Images of later datasets with this id that are the same image as `first`."""
    dataset = datasets[first.source]
    size = dataset.images.size[first.row].tolist()
    digest = _digest(dataset, first.row)
    regions = {region.id: region for region in dataset.regions_of(first.row)}
    copies = []
    for source in range(first.source + 1, len(datasets)):
        other = datasets[source]
        row = other.images.row.get(id)
        if row is None or Occurrence(source, row) in joined:
            continue
        is_same_file = digest is not None and digest == _digest(other, row)
        if not is_same_file or other.images.size[row].tolist() != size:
            continue
        other_regions = {region.id: region for region in other.regions_of(row)}
        union = regions | other_regions
        # One set contains the other: otherwise both may describe the same objects.
        if union in (regions, other_regions) and other_regions | regions == union:
            copies.append(Occurrence(source, row))
            regions = union
    return copies


def _digest(dataset: Dataset, row: int) -> str | None:
    """The sha256 of an image file; None if the file is not there."""
    try:
        return hashlib.sha256(read_encoded_image(dataset, row)).hexdigest()
    except ImageError:
        return None


def _shared(ids: Sequence[Sequence[str]]) -> set[str]:
    """Ids that two lists or more contain."""
    seen: set[str] = set()
    shared: set[str] = set()
    for names in ids:
        shared.update(seen.intersection(names))
        seen.update(names)
    return shared


def _rows_by_image(dataset: Dataset) -> dict[int, list[int]]:
    """The rows of the samples of each image that has any."""
    rows: dict[int, list[int]] = defaultdict(list)
    for row, image in enumerate(dataset.samples.image.tolist()):
        rows[image].append(row)
    return rows


def _unique_names(datasets: Sequence[Dataset]) -> list[str]:
    """A name for each dataset, fit to be a part of ids: that of its manifest, or of its folder where two are equal."""
    counts = Counter(dataset.name for dataset in datasets)
    names: list[str] = []
    for dataset in datasets:
        text = dataset.name if counts[dataset.name] == 1 else dataset.path.name
        name = re.sub(r"[^\w.-]+", "-", text).strip("-") or "dataset"
        number = 1
        unique = name
        while unique in names:
            number += 1
            unique = f"{name}-{number}"
        names.append(unique)
    return names


def _common_root(datasets: Sequence[Dataset]) -> Path | None:
    """The folder that contains the image roots of all datasets; None if no image is given by path."""
    roots = []
    for dataset in datasets:
        if not any(path is not None for path in dataset.images.path):
            continue
        if dataset.image_root is None:
            raise StoreError(
                f"{dataset.path} does not say where its images are: read it again with --images, "
                "or convert it with its images embedded (maskwise read --embed)"
            )
        roots.append(str(dataset.image_root.resolve()))
    return Path(os.path.commonpath(roots)) if roots else None


def _merge_about(datasets: Sequence[Dataset], names: Sequence[str]) -> dict[str, str]:
    """The facts of all manifests. What differs is listed by source."""
    abouts = [dataset.manifest.about for dataset in datasets]
    merged = {}
    for key in dict.fromkeys(key for about in abouts for key in about):
        holders: dict[str, list[str]] = defaultdict(list)
        for name, about in zip(names, abouts):
            if key in about:
                holders[about[key]].append(name)
        is_shared = all(about.get(key) == abouts[0].get(key) for about in abouts)
        listed = [f"{', '.join(sources)}: {text}" for text, sources in holders.items()]
        merged[key] = abouts[0][key] if is_shared else "; ".join(listed)
    # A source whose ignored pixels became targets affects the scores of the whole.
    if any(about.get(IGNORED_PIXELS) == MERGED for about in abouts):
        merged[IGNORED_PIXELS] = MERGED
    # Keys that mean something to programs only if they hold for all samples.
    for key in ("protocol", SPLIT_TAG):
        if len({about.get(key) for about in abouts}) > 1:
            merged.pop(key, None)
    return merged | {"merged": ", ".join(names)}

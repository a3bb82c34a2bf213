"""Validation of a dataset: checks of files, ids, masks, references and images, on columns without building samples."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskwise.arrays import Int32Array, Int64Array
from maskwise.errors import ImageError, MaskError, MaskwiseError
from maskwise.images import check_complete, image_size, resolve_inside
from maskwise.masks import Masks, pair_areas
from maskwise.store import MASK_KINDS, Dataset, MaskColumn

FindingLevel = Literal["error", "warning"]


class Finding(msgspec.Struct, frozen=True):
    """One problem: its kind, where it is, and a message."""

    level: FindingLevel
    kind: str
    where: str
    message: str


class DatasetCheck(msgspec.Struct, frozen=True):
    """All findings. Visible pixels outside the amodal mask are warnings, because published datasets have them."""

    dataset: str
    findings: list[Finding]

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return sum(finding.level == "error" for finding in self.findings)

    def by_kind(self) -> dict[str, list[Finding]]:
        """Findings by kind, in order of first appearance."""
        kinds: dict[str, list[Finding]] = {}
        for finding in self.findings:
            kinds.setdefault(finding.kind, []).append(finding)
        return kinds


def validate_dataset(
    dataset: Dataset, *, images: bool = True, threads: int = 1
) -> DatasetCheck:
    """Check the hashes of the files, every mask and every reference; images: also that every image exists and fits.

    Only the headers of images are read; no pixels are decoded.
    """
    checks: list[Callable[[], Iterator[Finding]]] = [
        lambda: _check_files(dataset),
        lambda: _check_ids(dataset),
        lambda: _check_masks(dataset, threads),
        lambda: _check_parts(dataset),
        lambda: _check_targets(dataset),
        lambda: _check_phrases(dataset),
        lambda: _check_containment(dataset, threads),
    ]
    if images:
        checks.append(lambda: _check_images(dataset))
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        except MaskwiseError as error:
            findings.append(
                Finding("error", "damaged table", str(dataset.path), str(error))
            )
    return DatasetCheck(str(dataset.path), findings)


def _check_files(dataset: Dataset) -> Iterator[Finding]:
    try:
        dataset.verify()
    except MaskwiseError as error:
        yield Finding("error", "changed file", str(dataset.path), str(error))


def _check_ids(dataset: Dataset) -> Iterator[Finding]:
    names = {
        "image": dataset.images.id,
        "sample": dataset.samples.id,
        "region": [_region_name(dataset, row) for row in range(len(dataset.regions))],
    }
    for what, ids in names.items():
        for name, count in Counter(ids).items():
            if count > 1:
                yield Finding(
                    "error", "duplicate id", name, f"{count} {what}s have this id"
                )


def _region_name(dataset: Dataset, row: int) -> str:
    """The image's id and the region's: region ids are unique only within an image."""
    return f"{dataset.images.id[dataset.regions.image[row]]}/{dataset.regions.id[row]}"


def _check_masks(dataset: Dataset, threads: int) -> Iterator[Finding]:
    regions = dataset.regions
    samples = dataset.samples
    for kind in MASK_KINDS:
        for row, finding, message in _mask_faults(
            regions.masks(kind), regions.size, threads
        ):
            yield Finding(
                "error", finding, _region_name(dataset, row), f"{kind} mask {message}"
            )
    for row, finding, message in _mask_faults(samples.ignore, samples.size, threads):
        yield Finding("error", finding, samples.id[row], f"ignore mask {message}")
    for row in np.flatnonzero(
        ~regions.masks("visible").present & ~regions.masks("amodal").present
    ).tolist():
        yield Finding(
            "error",
            "no mask",
            _region_name(dataset, row),
            "neither a visible nor an amodal mask",
        )


def _mask_faults(
    column: MaskColumn, size: Int32Array, threads: int
) -> Iterator[tuple[int, str, str]]:
    """Row, kind of finding and message for every present mask that is malformed or not of the image's size."""
    rows = np.flatnonzero(column.present)
    masks = column.masks[rows]
    for item, reason in _malformed(masks, threads):
        yield int(rows[item]), "malformed mask", f"is malformed: {reason}"
    for item in np.flatnonzero((masks.size != size[rows]).any(1)).tolist():
        mask_size = tuple(masks.size[item].tolist())
        expected = tuple(size[rows[item]].tolist())
        yield (
            int(rows[item]),
            "mask size",
            f"has height and width {mask_size}, the image {expected}",
        )


def _malformed(masks: Masks, threads: int) -> Iterator[tuple[int, str]]:
    """Every malformed mask: its row and the reason."""
    first = 0
    while first < len(masks):
        try:
            masks[first:].check(threads=threads)
            return
        except MaskError as error:
            if error.item is None:
                raise
            yield first + error.item, error.message
            first += error.item + 1


def _check_parts(dataset: Dataset) -> Iterator[Finding]:
    regions = dataset.regions
    parts = np.flatnonzero(regions.part_of.present)
    wholes = regions.part_of.values[parts]
    for row in parts[regions.image[parts] != regions.image[wholes]].tolist():
        yield Finding(
            "error",
            "part",
            _region_name(dataset, row),
            "is a part of a region of another image",
        )
    up = np.where(
        regions.part_of.present, regions.part_of.values, np.arange(len(regions))
    )
    # Following parents twice as far each time ends in a fixed point, unless there is a cycle.
    for _ in range(max(1, len(regions)).bit_length()):
        up = up[up]
    for row in np.flatnonzero(regions.part_of.present[up]).tolist():
        yield Finding(
            "error",
            "part",
            _region_name(dataset, row),
            "is, through others, a part of itself",
        )


def _check_targets(dataset: Dataset) -> Iterator[Finding]:
    samples = dataset.samples
    target_lists = [samples.targets, *(lists for _, lists in samples.other_targets)]
    for offsets, targets in target_lists:
        owner = np.repeat(np.arange(len(samples)), np.diff(offsets))
        strangers = dataset.regions.image[targets] != samples.image[owner]
        for row, target in zip(owner[strangers].tolist(), targets[strangers].tolist()):
            message = f"target {dataset.regions.id[target]!r} belongs to another image"
            yield Finding("error", "target", samples.id[row], message)


def _check_phrases(dataset: Dataset) -> Iterator[Finding]:
    samples = dataset.samples
    first = 0
    targets = np.diff(samples.targets.offsets)
    for batch in samples.table.select(["answer", "phrases"]).to_batches():
        length = pc.fill_null(pc.utf8_length(batch["answer"]), 0).to_numpy()
        owner, phrases = _flatten(batch["phrases"])
        start, stop = (
            phrases.field(name).to_numpy(zero_copy_only=False)
            for name in ("start", "stop")
        )
        outside = ~((start >= 0) & (start < stop) & (stop <= length[owner]))
        phrase, masks = _flatten(phrases.field("regions"))
        number = masks.to_numpy(zero_copy_only=False)
        unknown = ~((number >= 0) & (number < targets[first + owner[phrase]]))
        for row in np.unique(owner[outside]).tolist():
            yield Finding(
                "error",
                "phrase",
                samples.id[first + row],
                "a phrase lies outside the answer",
            )
        for row in np.unique(owner[phrase[unknown]]).tolist():
            yield Finding(
                "error",
                "phrase",
                samples.id[first + row],
                "a phrase speaks of a mask that is not there",
            )
        first += len(batch)


def _flatten(column: pa.Array) -> tuple[Int64Array, pa.Array]:
    """The items of a list column, and the row of each."""
    return pc.list_parent_indices(column).to_numpy(), column.flatten()


def _check_containment(dataset: Dataset, threads: int) -> Iterator[Finding]:
    regions = dataset.regions
    visible = regions.masks("visible")
    amodal = regions.masks("amodal")
    rows = np.flatnonzero(visible.present & amodal.present)
    try:
        areas = pair_areas(visible.masks[rows], amodal.masks[rows], threads=threads)
    except MaskError:
        return  # The check of the masks has already found it.
    beyond = areas.a - areas.intersection
    for item in np.flatnonzero(beyond).tolist():
        message = f"{beyond[item]} of {areas.a[item]} visible pixels lie outside the amodal mask"
        yield Finding(
            "warning",
            "visible outside amodal",
            _region_name(dataset, rows[item]),
            message,
        )


def _check_images(dataset: Dataset) -> Iterator[Finding]:
    if dataset.image_root is None and any(
        path is not None for path in dataset.images.path
    ):
        message = (
            "images given by path were not looked for: the dataset has no image root"
        )
        yield Finding("warning", "images", str(dataset.path), message)
    for row, name in enumerate(dataset.images.id):
        data = dataset.images.table["data"][row]
        path = dataset.images.path[row]
        height, width = dataset.images.size[row].tolist()
        try:
            if data.is_valid:
                size = image_size(data.as_py())
                check_complete(data.as_py())
            elif path is not None and dataset.image_root is not None:
                file = resolve_inside(dataset.image_root, path)
                size = image_size(file)
                check_complete(file)
            else:
                continue
        except ImageError as error:
            yield Finding("error", "image", name, str(error))
            continue
        if size != (width, height):
            message = f"is {size[0]} x {size[1]}, its masks are for {width} x {height}"
            yield Finding("error", "image", name, message)

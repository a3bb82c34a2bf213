"""What is in a dataset, and what is wrong with it. Both work on columns: no sample is built."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maskwise.errors import ImageError, MaskError, MaskwiseError
from maskwise.images import image_size, resolve_inside
from maskwise.masks import Masks, pair_areas
from maskwise.store import MASK_KINDS, MASK_TYPES, Codes, Dataset, MaskColumn

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Level = Literal["error", "warning"]

# -- what is in it -----------------------------------------------------------------------------------------------------

OCCLUSION_BANDS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Upper ends of the bands of occlusion: exactly none, up to 10 %, ..., less than all; then fully hidden."""
SMALL, MEDIUM = 32**2, 96**2
"""Areas below these many pixels are small and medium, as COCO counts."""
TOP = 20
"""How many names and tag values are listed."""


class DatasetStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of everything. Histograms are in the order a reader wants: rising, or most frequent first."""

    name: str
    counts: dict[str, int]
    targets_per_question: dict[str, int]
    mask_types: dict[str, int]
    occlusion: dict[str, int]
    """Regions whose both masks are known, by the share of the amodal mask that is not visible; empty if none is."""
    region_sizes: dict[str, int]
    image_sizes: dict[str, str]
    categories: dict[str, int]
    category_count: int
    tags: dict[str, dict[str, int]]
    about: dict[str, str]


def compute_dataset_stats(dataset: Dataset, *, threads: int = 1) -> DatasetStats:
    """Count what the samples of a dataset (or view) and all its regions are."""
    samples, regions = dataset.samples, dataset.regions
    targets = np.diff(samples.targets.offsets)
    return DatasetStats(
        name=dataset.name,
        counts=_counts(dataset),
        targets_per_question={str(number): int(n) for number, n in enumerate(np.bincount(targets)) if n},
        mask_types={name: int((samples.mask_type == code).sum()) for code, name in enumerate(MASK_TYPES)},
        occlusion=_occlusion(regions.masks("visible"), regions.masks("amodal"), threads),
        region_sizes=_region_sizes(regions.masks("visible"), regions.masks("amodal"), threads),
        image_sizes=_image_sizes(dataset),
        categories=_most_frequent(regions.name),
        category_count=len(regions.name.names),
        tags={key: _most_frequent(samples.tag(key)) for key in samples.tag_names},
        about=dataset.manifest.about,
    )


def _counts(dataset: Dataset) -> dict[str, int]:
    samples, regions = dataset.samples, dataset.regions
    masks = {f"{kind} masks": int(regions.masks(kind).present.sum()) for kind in MASK_KINDS}
    return {
        "images": len(dataset.images),
        "images with questions": len(np.unique(samples.image)),
        "images embedded": len(dataset.images) - dataset.images.table["data"].null_count,
        "questions": len(samples),
        "answers": len(samples) - samples.table["answer"].null_count,
        "regions": len(regions),
        "regions asked for": len(np.unique(samples.targets.values)),
        "parts": int(regions.part_of.present.sum()),
        "crowds": int(regions.crowd.sum()),
        **masks,
        "ignore masks": int(samples.ignore.present.sum()),
    }


def _occlusion(visible: MaskColumn, amodal: MaskColumn, threads: int) -> dict[str, int]:
    both = visible.present & amodal.present
    if not both.any():
        return {}
    areas = pair_areas(visible.masks[both], amodal.masks[both], threads=threads)
    known = areas.b > 0
    rate = 1 - areas.intersection[known] / areas.b[known]
    bands = np.searchsorted(np.array(OCCLUSION_BANDS), rate, "left")
    bands[rate == 1] = len(OCCLUSION_BANDS)
    ends = [f"{round(100 * end)} %" for end in OCCLUSION_BANDS]
    names = ["none", *(f"{low} to {high}" for low, high in pairwise(ends)), "fully hidden"]
    return {name: int((bands == band).sum()) for band, name in enumerate(names)}


def _region_sizes(visible: MaskColumn, amodal: MaskColumn, threads: int) -> dict[str, int]:
    """By the area of the whole, or of the visible part where the whole is unknown."""
    area = np.where(amodal.present, amodal.masks.area(threads=threads), visible.masks.area(threads=threads))
    band = np.searchsorted(np.array([1, SMALL, MEDIUM]), area, "right")
    names = ("empty", f"small (under {SMALL} pixels)", f"medium (under {MEDIUM})", "large")
    return {name: int((band == number).sum()) for number, name in enumerate(names)}


def _image_sizes(dataset: Dataset) -> dict[str, str]:
    sizes = dataset.images.size
    if not len(sizes):
        return {}
    order = np.argsort(sizes.astype(np.int64).prod(1), kind="stable")
    rows = {"smallest": order[0], "median": order[len(order) // 2], "largest": order[-1]}
    return {name: f"{sizes[row, 1]} x {sizes[row, 0]}" for name, row in rows.items()}


def _most_frequent(column: Codes) -> dict[str, int]:
    counts = np.bincount(column.codes, minlength=len(column.names))
    order = np.argsort(-counts, kind="stable")[:TOP].tolist()
    names = ["(none)" if name is None else name for name in column.names]
    return {names[code]: int(counts[code]) for code in order}


# -- what is wrong with it ---------------------------------------------------------------------------------------------


class Finding(msgspec.Struct, frozen=True):
    """One thing wrong: what kind, where, and how."""

    level: Level
    kind: str
    where: str
    message: str


class DatasetCheck(msgspec.Struct, frozen=True):
    """All that was found. Violations of visible inside amodal are warnings: published data has them."""

    dataset: str
    findings: list[Finding]

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.level == "error" for finding in self.findings)

    def by_kind(self) -> dict[str, list[Finding]]:
        """Findings by kind, in order of first appearance."""
        kinds: dict[str, list[Finding]] = {}
        for finding in self.findings:
            kinds.setdefault(finding.kind, []).append(finding)
        return kinds


def validate_dataset(dataset: Dataset, *, images: bool = True, threads: int = 1) -> DatasetCheck:
    """Check the files' sums, every mask, every reference, and if wanted that every image is there and fits.

    Images are looked at by their headers; no pixel is decoded.
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
            findings.append(Finding("error", "damaged table", str(dataset.path), str(error)))
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
                yield Finding("error", "duplicate id", name, f"{count} {what}s have this id")


def _region_name(dataset: Dataset, row: int) -> str:
    """Region ids are unique within an image only."""
    return f"{dataset.images.id[dataset.regions.image[row]]}/{dataset.regions.id[row]}"


def _check_masks(dataset: Dataset, threads: int) -> Iterator[Finding]:
    regions, samples = dataset.regions, dataset.samples
    for kind in MASK_KINDS:
        for row, finding, message in _mask_faults(regions.masks(kind), regions.size, threads):
            yield Finding("error", finding, _region_name(dataset, row), f"{kind} mask {message}")
    for row, finding, message in _mask_faults(samples.ignore, samples.size, threads):
        yield Finding("error", finding, samples.id[row], f"ignore mask {message}")
    for row in np.flatnonzero(~regions.masks("visible").present & ~regions.masks("amodal").present).tolist():
        yield Finding("error", "no mask", _region_name(dataset, row), "neither a visible nor an amodal mask")


def _mask_faults(column: MaskColumn, size: Int32s, threads: int) -> Iterator[tuple[int, str, str]]:
    """Row, kind of finding and message for every present mask that is malformed or not of the image's size."""
    rows = np.flatnonzero(column.present)
    masks = column.masks[rows]
    for item, reason in _malformed(masks, threads):
        yield int(rows[item]), "malformed mask", f"is malformed: {reason}"
    for item in np.flatnonzero((masks.size != size[rows]).any(1)).tolist():
        found, expected = tuple(masks.size[item].tolist()), tuple(size[rows[item]].tolist())
        yield int(rows[item]), "mask size", f"has height and width {found}, the image {expected}"


def _malformed(masks: Masks, threads: int) -> Iterator[tuple[int, str]]:
    """Every malformed mask: its row and what is wrong."""
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
        yield Finding("error", "part", _region_name(dataset, row), "is a part of a region of another image")
    up = np.where(regions.part_of.present, regions.part_of.values, np.arange(len(regions)))
    # Following parents twice as far each time ends in a fixed point, unless they run in a circle.
    for _ in range(max(1, len(regions)).bit_length()):
        up = up[up]
    for row in np.flatnonzero(regions.part_of.present[up]).tolist():
        yield Finding("error", "part", _region_name(dataset, row), "is, through others, a part of itself")


def _check_targets(dataset: Dataset) -> Iterator[Finding]:
    samples = dataset.samples
    offsets, targets = samples.targets
    owner = np.repeat(np.arange(len(samples)), np.diff(offsets))
    strangers = dataset.regions.image[targets] != samples.image[owner]
    for row, target in zip(owner[strangers].tolist(), targets[strangers].tolist()):
        message = f"target {dataset.regions.id[target]!r} belongs to another image"
        yield Finding("error", "target", samples.id[row], message)


def _check_phrases(dataset: Dataset) -> Iterator[Finding]:
    samples, first = dataset.samples, 0
    targets = np.diff(samples.targets.offsets)
    for batch in samples.table.select(["answer", "phrases"]).to_batches():
        length = pc.fill_null(pc.utf8_length(batch["answer"]), 0).to_numpy()
        owner, phrases = _flatten(batch["phrases"])
        start, stop = (phrases.field(name).to_numpy(zero_copy_only=False) for name in ("start", "stop"))
        outside = ~((start >= 0) & (start < stop) & (stop <= length[owner]))
        phrase, masks = _flatten(phrases.field("regions"))
        number = masks.to_numpy(zero_copy_only=False)
        unknown = ~((number >= 0) & (number < targets[first + owner[phrase]]))
        for row in np.unique(owner[outside]).tolist():
            yield Finding("error", "phrase", samples.id[first + row], "a phrase lies outside the answer")
        for row in np.unique(owner[phrase[unknown]]).tolist():
            yield Finding(
                "error", "phrase", samples.id[first + row], "a phrase speaks of a mask that is not there"
            )
        first += len(batch)


def _flatten(column: pa.Array) -> tuple[Int64s, pa.Array]:
    """All items of a list column, and the row each is from."""
    return pc.list_parent_indices(column).to_numpy(), column.flatten()


def _check_containment(dataset: Dataset, threads: int) -> Iterator[Finding]:
    regions = dataset.regions
    visible, amodal = regions.masks("visible"), regions.masks("amodal")
    rows = np.flatnonzero(visible.present & amodal.present)
    try:
        areas = pair_areas(visible.masks[rows], amodal.masks[rows], threads=threads)
    except MaskError:
        return  # Already found by the check of the masks.
    beyond = areas.a - areas.intersection
    for item in np.flatnonzero(beyond).tolist():
        message = f"{beyond[item]} of {areas.a[item]} visible pixels lie outside the amodal mask"
        yield Finding("warning", "visible outside amodal", _region_name(dataset, rows[item]), message)


def _check_images(dataset: Dataset) -> Iterator[Finding]:
    if dataset.image_root is None and any(path is not None for path in dataset.images.path):
        message = "images given by path were not looked for: the dataset has no image root"
        yield Finding("warning", "images", str(dataset.path), message)
    for row, name in enumerate(dataset.images.id):
        data, path = dataset.images.table["data"][row], dataset.images.path[row]
        height, width = dataset.images.size[row].tolist()
        try:
            if data.is_valid:
                size = image_size(data.as_py())
            elif path is not None and dataset.image_root is not None:
                size = image_size(resolve_inside(dataset.image_root, path))
            else:
                continue
        except ImageError as error:
            yield Finding("error", "image", name, str(error))
            continue
        if size != (width, height):
            message = f"is {size[0]} x {size[1]}, its masks are for {width} x {height}"
            yield Finding("error", "image", name, message)

"""Statistics of a dataset: counts and histograms, computed on columns without building samples."""

from itertools import pairwise

import msgspec
import numpy as np

from maskwise.arrays import Float64Array
from maskwise.masks import pair_areas
from maskwise.store import MASK_KINDS, MASK_TYPES, Codes, Dataset, MaskColumn

OCCLUSION_BANDS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Upper ends of the occlusion bands: none, up to 10 %, ..., less than 100 %; then fully hidden."""
SMALL = 32**2
MEDIUM = 96**2
"""Areas below these numbers of pixels are small and medium, as in COCO."""
TOP = 20
"""How many names and tag values are listed."""


class DatasetStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and histograms of a dataset. Histograms are in ascending order, or most frequent first."""

    name: str
    counts: dict[str, int]
    targets_per_question: dict[str, int]
    mask_types: dict[str, int]
    occlusion: dict[str, int]
    """Regions with both masks, by the hidden share of the amodal mask; empty if there are none."""
    region_sizes: dict[str, int]
    image_sizes: dict[str, str]
    categories: dict[str, int]
    category_count: int
    tags: dict[str, dict[str, int]]
    about: dict[str, str]


def compute_dataset_stats(dataset: Dataset, *, threads: int = 1) -> DatasetStats:
    """Statistics of the samples of a dataset (or view) and of all its regions."""
    samples = dataset.samples
    regions = dataset.regions
    targets = np.diff(samples.targets.offsets)
    return DatasetStats(
        name=dataset.name,
        counts=_counts(dataset),
        targets_per_question={
            str(number): int(n) for number, n in enumerate(np.bincount(targets)) if n
        },
        mask_types={
            name: int((samples.mask_type == code).sum())
            for code, name in enumerate(MASK_TYPES)
        },
        occlusion=_occlusion(
            regions.masks("visible"), regions.masks("amodal"), threads
        ),
        region_sizes=_region_sizes(
            regions.masks("visible"), regions.masks("amodal"), threads
        ),
        image_sizes=_image_sizes(dataset),
        categories=_most_frequent(regions.name),
        category_count=len(regions.name.names),
        tags={key: _most_frequent(samples.tag(key)) for key in samples.tag_names},
        about=dataset.manifest.about,
    )


def _counts(dataset: Dataset) -> dict[str, int]:
    samples = dataset.samples
    regions = dataset.regions
    masks = {
        f"{kind} masks": int(regions.masks(kind).present.sum()) for kind in MASK_KINDS
    }
    return {
        "images": len(dataset.images),
        "images with questions": len(np.unique(samples.image)),
        "images embedded": len(dataset.images)
        - dataset.images.table["data"].null_count,
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
    return count_occlusion(1 - areas.intersection[known] / areas.b[known])


def count_occlusion(rate: Float64Array) -> dict[str, int]:
    """The number of regions in each occlusion band. rate: hidden shares of amodal masks."""
    bands = np.searchsorted(np.array(OCCLUSION_BANDS), rate, "left")
    bands[rate == 1] = len(OCCLUSION_BANDS)
    ends = [f"{round(100 * end)} %" for end in OCCLUSION_BANDS]
    names = [
        "none",
        *(f"{low} to {high}" for low, high in pairwise(ends)),
        "fully hidden",
    ]
    return {name: int((bands == band).sum()) for band, name in enumerate(names)}


def _region_sizes(
    visible: MaskColumn, amodal: MaskColumn, threads: int
) -> dict[str, int]:
    """By the area of the amodal mask, or of the visible one where the amodal mask is unknown."""
    area = np.where(
        amodal.present,
        amodal.masks.area(threads=threads),
        visible.masks.area(threads=threads),
    )
    band = np.searchsorted(np.array([1, SMALL, MEDIUM]), area, "right")
    names = (
        "empty",
        f"small (under {SMALL} pixels)",
        f"medium (under {MEDIUM})",
        "large",
    )
    return {name: int((band == number).sum()) for number, name in enumerate(names)}


def _image_sizes(dataset: Dataset) -> dict[str, str]:
    sizes = dataset.images.size
    if not len(sizes):
        return {}
    order = np.argsort(sizes.astype(np.int64).prod(1), kind="stable")
    rows = {
        "smallest": order[0],
        "median": order[len(order) // 2],
        "largest": order[-1],
    }
    return {name: f"{sizes[row, 1]} x {sizes[row, 0]}" for name, row in rows.items()}


def _most_frequent(column: Codes) -> dict[str, int]:
    counts = np.bincount(column.codes, minlength=len(column.names))
    order = np.argsort(-counts, kind="stable")[:TOP].tolist()
    names = ["(none)" if name is None else name for name in column.names]
    return {names[code]: int(counts[code]) for code in order}

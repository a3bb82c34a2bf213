"""Facts of a release that are measured: counts, statistics, mask types, occlusion, sources, licenses."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from maskwise.builder.lineage import describe_annotation, describe_validation
from maskwise.formats.release_folder import ReleaseSplit
from maskwise.masks import pair_areas
from maskwise.report.dataset_stats import DatasetStats, compute_dataset_stats
from maskwise.store import Dataset

LISTED = 10
"""How many categories are listed by name."""


class MeasuredFacts(NamedTuple):
    """What a card says without being told. `source`, `annotation` and `validation` are empty if the dataset does not
    say where it comes from, who wrote its questions and who checked them.
    """

    counts: dict[str, int]
    splits: dict[str, ReleaseSplit]
    size: str
    format: str
    source: str
    statistics: tuple[str, ...]
    annotation: str = ""
    validation: str = ""


def measure(
    dataset: Dataset,
    splits: list[str],
    *,
    order: Iterable[str] = (),
    with_images: bool = True,
    threads: int = 1,
) -> MeasuredFacts:
    """Measure a dataset whose images were assigned to splits, given in row order. order: which splits come first."""
    stats = compute_dataset_stats(dataset, threads=threads)
    by_split = _count_splits(dataset, splits, order)
    images = len(dataset.images)
    questions = len(dataset)
    parts = ", ".join(
        f"{name} {split.images:,} images and {split.questions:,} questions"
        for name, split in by_split.items()
    )
    return MeasuredFacts(
        counts={
            "images": images,
            "regions": len(dataset.regions),
            "questions": questions,
            "targets": len(dataset.samples.targets.values),
        },
        splits=by_split,
        size=f"{images:,} images and {questions:,} questions ({parts})",
        format="Parquet, one row per image, masks as COCO RLE, "
        + ("images embedded" if with_images else "images referenced by file name"),
        source=_source(dataset.manifest.about),
        statistics=tuple(_statistics(stats, dataset, threads)),
        annotation=describe_annotation(dataset.manifest.about),
        validation=describe_validation(dataset.manifest.about),
    )


def _count_splits(
    dataset: Dataset, splits: list[str], order: Iterable[str]
) -> dict[str, ReleaseSplit]:
    images = Counter(splits)
    questions = Counter(splits[row] for row in dataset.samples.image.tolist())
    return {
        name: ReleaseSplit(images=images[name], questions=questions[name])
        for name in dict.fromkeys([*order, *splits])
        if images[name]
    }


def _source(about: Mapping[str, str]) -> str:
    """The source that the dataset itself names."""
    source = about.get("recipe_source") or about.get("source") or about.get("title")
    parts = [source] if source else []
    if "recipe" in about:
        parts.append(f"recipe {about['recipe']}")
    return "; ".join(parts)


def _statistics(stats: DatasetStats, dataset: Dataset, threads: int) -> list[str]:
    counts = stats.counts
    common = dict(list(stats.categories.items())[:LISTED])
    no_target = int((np.diff(dataset.samples.targets.offsets) == 0).sum())
    lines = {
        "regions": f"{counts['regions']:,}, of which {counts['parts']:,} parts; {counts['visible masks']:,} visible "
        f"and {counts['amodal masks']:,} amodal masks",
        "mask type asked for": _join(stats.mask_types),
        "targets per question": _join(stats.targets_per_question),
        "questions without target": f"{no_target:,}",
        "questions with an answer in words": f"{counts['answers']:,}",
        "occlusion of regions (hidden share of the amodal mask)": _join(
            stats.occlusion
        ),
        "size of regions": _join(stats.region_sizes),
        "size of images": ", ".join(
            f"{name} {size}" for name, size in stats.image_sizes.items()
        ),
        "categories": f"{stats.category_count:,}; most frequent: {_join(common)}"
        if common
        else "",
        "licenses of images": _count_licenses(dataset),
        "regions with visible pixels outside the amodal mask": _name_count(
            count_visible_outside(dataset, threads)
        ),
    }
    lines |= {
        f"tag {name}": _join(values)
        for name, values in stats.tags.items()
        if name in ("question_type", "source")
    }
    return [f"{name}: {value}" for name, value in lines.items() if value]


def count_visible_outside(dataset: Dataset, threads: int = 1) -> int:
    """How many regions have visible pixels outside their amodal mask, which cannot be."""
    visible = dataset.regions.masks("visible")
    amodal = dataset.regions.masks("amodal")
    rows = np.flatnonzero(visible.present & amodal.present)
    areas = pair_areas(visible.masks[rows], amodal.masks[rows], threads=threads)
    return int((areas.a > areas.intersection).sum())


def _name_count(count: int) -> str:
    """A count that is stated only if there is something to count."""
    return f"{count:,}" if count else ""


def _count_licenses(dataset: Dataset) -> str:
    """How many images have each license; an image made from two photos has both."""
    counts: Counter[str] = Counter()
    for text in dataset.images.license:
        licenses = (text or "not stated").split("; ")
        counts.update(dict.fromkeys(licenses, 1))  # each once, in their order
    line = _join(counts)
    if counts.total() > len(dataset.images):
        line += (
            "; an image made from several photos counts once for each of their licenses"
        )
    return line


def count_restricted(dataset: Dataset) -> int:
    """How many images have a license that forbids commercial use or derivatives, by the words Creative Commons uses."""
    pattern = re.compile(r"non-?commercial|no-?deriv|\bnc\b|\bnd\b", re.IGNORECASE)
    return sum(
        text is not None and pattern.search(text) is not None
        for text in dataset.images.license
    )


def _join(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in values.items() if count)

"""Slices: samples grouped by mask type, object or part, number of targets, occlusion, size, category and tags."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Float64Array, Int64Array
from maskwise.masks import pair_areas
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.metrics import sums
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.store import MASK_TYPES, Codes

MAX_VALUES = 100
"""Tags with more values are not used as slices; this many categories are kept."""

OTHER = "other"
OCCLUSION = ("unknown", "none", "0-20 %", "20-40 %", "40-70 %", "70-100 %")
SIZES = ("none", "small", "medium", "large")
"""COCO's: small below 32 x 32 pixels, large from 96 x 96."""


def slice_samples(inputs: ScoringInput) -> dict[str, Codes]:
    """The slicings, each with the group of every sample: codes int32 [samples], positions in names (never empty)."""
    ground_truth = inputs.ground_truth
    tags = {
        name: Codes(
            codes.codes,
            tuple("untagged" if value is None else value for value in codes.names),
        )
        for name, codes in ground_truth.tags.items()
        if len(codes.names) <= MAX_VALUES
    }
    own = {
        "mask_type": Codes(ground_truth.requested_type.astype(np.int32), MASK_TYPES),
        "level": _levels(ground_truth),
        "targets": _bands(
            ground_truth.counts, (1, 2, 3, 6), ("0", "1", "2", "3-5", "6+")
        ),
        "occlusion": _occlusion(inputs),
        "size": _sizes(inputs),
        "category": _categories(ground_truth),
    }
    return own | {name: codes for name, codes in tags.items() if name not in own}


def _bands(
    values: Int64Array | Float64Array, edges: Sequence[float], names: tuple[str, ...]
) -> Codes:
    """Group 0 is below the first edge, group k begins at the k-th edge."""
    return Codes(
        np.searchsorted(np.asarray(edges), values, side="right").astype(np.int32), names
    )


def _levels(ground_truth: GroundTruth) -> Codes:
    parts = np.bincount(
        ground_truth.sample[ground_truth.part], minlength=len(ground_truth)
    )
    code = np.select(
        [ground_truth.counts == 0, parts == 0, parts == ground_truth.counts],
        [0, 1, 2],
        3,
    )
    return Codes(code.astype(np.int32), ("none", "object", "part", "mixed"))


def _occlusion(inputs: ScoringInput) -> Codes:
    """By the hidden share of the amodal area, over the targets with both masks."""
    ground_truth = inputs.ground_truth
    rows = np.flatnonzero(ground_truth.visible.present & ground_truth.amodal.present)
    areas = pair_areas(
        ground_truth.visible.masks[rows],
        ground_truth.amodal.masks[rows],
        threads=inputs.threads,
    )
    whole = sums(ground_truth.sample[rows], areas.b, len(ground_truth))
    hidden = sums(
        ground_truth.sample[rows], areas.b - areas.intersection, len(ground_truth)
    )
    rate = hidden / np.maximum(whole, 1)
    band = 1 + (rate > 0) + np.searchsorted((0.2, 0.4, 0.7), rate, side="right")
    return Codes(np.where(whole > 0, band, 0).astype(np.int32), OCCLUSION)


def _sizes(inputs: ScoringInput) -> Codes:
    ground_truth = inputs.ground_truth
    area = sums(
        ground_truth.sample, inputs.overlaps("requested").target.area, len(ground_truth)
    )
    mean = area / np.maximum(ground_truth.counts, 1)
    code = 1 + np.searchsorted((32.0**2, 96.0**2), mean, side="right")
    return Codes(np.where(ground_truth.counts > 0, code, 0).astype(np.int32), SIZES)


def _categories(ground_truth: GroundTruth) -> Codes:
    """The name of the targets, `several` if they differ; the most frequent names, all others as `other`."""
    codes, names = ground_truth.names
    first = np.zeros(len(ground_truth), np.int64)
    some = ground_truth.counts > 0
    first[some] = codes[ground_truth.offsets[:-1][some]]
    differs = (
        np.bincount(
            ground_truth.sample[codes != first[ground_truth.sample]],
            minlength=len(ground_truth),
        )
        > 0
    )
    category = np.select([~some, differs], [len(names), len(names) + 1], first)
    labels = np.array([*names, "none", "several"], dtype=object)
    return _most_frequent(category, labels)


def _most_frequent(codes: Int64Array, names: NDArray[np.object_]) -> Codes:
    counts = np.bincount(codes, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    kept = order[:MAX_VALUES][counts[order[:MAX_VALUES]] > 0]
    recode = np.full(len(names), len(kept), np.int32)
    recode[kept] = np.arange(len(kept))
    labels = [str(name) for name in names[kept]]
    return Codes(
        recode[codes],
        (*labels, OTHER) if (counts > 0).sum() > len(kept) else tuple(labels),
    )

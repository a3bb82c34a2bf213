"""Slices: samples grouped by mask type, object or part, number of targets, occlusion, size, category and tags."""

from collections.abc import Mapping, Sequence

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
    return slice_truth(inputs.ground_truth, slice_masks(inputs), threads=inputs.threads)


def slice_masks(inputs: ScoringInput) -> dict[str, Codes]:
    """The slicings that need the masks of the targets: by occlusion and by size."""
    target_area = inputs.overlaps("requested").target.area
    return {
        "occlusion": _occlusion(inputs.ground_truth, inputs.threads),
        "size": _sizes(inputs.ground_truth, target_area),
    }


def slice_truth(
    ground_truth: GroundTruth,
    of_masks: Mapping[str, Codes] | None = None,
    *,
    threads: int = 1,
) -> dict[str, Codes]:
    """The slicings that need no predictions. of_masks: as `slice_masks` gives them; without them none is by size."""
    requested_type = ground_truth.requested_type.astype(np.int32)
    target_bands = ("0", "1", "2", "3-5", "6+")
    slicings = {
        "mask_type": Codes(requested_type, MASK_TYPES),
        "level": _levels(ground_truth),
        "targets": band_codes(ground_truth.counts, (1, 2, 3, 6), target_bands),
    }
    if of_masks is None:
        slicings["occlusion"] = _occlusion(ground_truth, threads)
    else:
        slicings |= of_masks
    slicings["category"] = _categories(ground_truth)
    for name, codes in ground_truth.tags.items():
        # A tag of the dataset does not replace a slicing of ours.
        if name in slicings or len(codes.names) > MAX_VALUES:
            continue
        values = ["untagged" if value is None else value for value in codes.names]
        slicings[name] = Codes(codes.codes, tuple(values))
    return slicings


def band_codes(
    values: Int64Array | Float64Array, edges: Sequence[float], names: tuple[str, ...]
) -> Codes:
    """Group 0 is below the first edge, group k begins at the k-th edge."""
    band = np.searchsorted(np.asarray(edges), values, side="right")
    return Codes(band.astype(np.int32), names)


def _levels(ground_truth: GroundTruth) -> Codes:
    """Whether the targets are whole objects, parts or both."""
    part_samples = ground_truth.sample[ground_truth.part]
    part_counts = np.bincount(part_samples, minlength=len(ground_truth))
    has_none = ground_truth.counts == 0
    only_objects = part_counts == 0
    only_parts = part_counts == ground_truth.counts
    code = np.select([has_none, only_objects, only_parts], [0, 1, 2], 3)
    return Codes(code.astype(np.int32), ("none", "object", "part", "mixed"))


def _occlusion(ground_truth: GroundTruth, threads: int) -> Codes:
    """By the hidden share of the amodal area, over the targets with both masks."""
    count = len(ground_truth)
    rows = np.flatnonzero(ground_truth.visible.present & ground_truth.amodal.present)
    areas = pair_areas(
        ground_truth.visible.masks[rows],
        ground_truth.amodal.masks[rows],
        threads=threads,
    )
    sample = ground_truth.sample[rows]
    amodal_area = sums(sample, areas.b, count)
    hidden_area = sums(sample, areas.b - areas.intersection, count)
    rate = hidden_area / np.maximum(amodal_area, 1)
    # "none" is a rate of exactly 0; the bands above begin at their lower edge.
    band = 1 + (rate > 0) + np.searchsorted((0.2, 0.4, 0.7), rate, side="right")
    code = np.where(amodal_area > 0, band, 0)
    return Codes(code.astype(np.int32), OCCLUSION)


def _sizes(ground_truth: GroundTruth, target_area: Int64Array) -> Codes:
    """By the mean area of the requested masks of a sample's targets, in pixels. target_area: int64 [targets]."""
    area = sums(ground_truth.sample, target_area, len(ground_truth))
    mean_area = area / np.maximum(ground_truth.counts, 1)
    band = 1 + np.searchsorted((32.0**2, 96.0**2), mean_area, side="right")
    code = np.where(ground_truth.counts > 0, band, 0)
    return Codes(code.astype(np.int32), SIZES)


def _categories(ground_truth: GroundTruth) -> Codes:
    """The name of the targets, `several` if they differ; the most frequent names, all others as `other`."""
    codes, names = ground_truth.names
    has_target = ground_truth.counts > 0
    first_target = ground_truth.offsets[:-1][has_target]
    first_name = np.zeros(len(ground_truth), np.int64)
    first_name[has_target] = codes[first_target]
    is_other_name = codes != first_name[ground_truth.sample]
    other_names = np.bincount(
        ground_truth.sample[is_other_name], minlength=len(ground_truth)
    )
    # Two more names follow those of the dataset.
    none_code = len(names)
    several_code = len(names) + 1
    category = np.select(
        [~has_target, other_names > 0], [none_code, several_code], first_name
    )
    labels = np.array([*names, "none", "several"], dtype=object)
    return most_frequent(category, labels)


def most_frequent(codes: Int64Array, names: NDArray[np.object_]) -> Codes:
    """The MAX_VALUES most frequent names keep a code of their own, the rest share OTHER."""
    counts = np.bincount(codes, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    most_frequent = order[:MAX_VALUES]
    kept = most_frequent[counts[most_frequent] > 0]
    new_code = np.full(len(names), len(kept), np.int32)
    new_code[kept] = np.arange(len(kept))
    labels = [str(name) for name in names[kept]]
    has_others = (counts > 0).sum() > len(kept)
    if has_others:
        labels.append(OTHER)
    return Codes(new_code[codes], tuple(labels))

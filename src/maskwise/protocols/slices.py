"""What samples are grouped by: mask type, object or part, number of targets, occlusion, size, category and the tags."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maskwise.masks import pair_areas
from maskwise.protocols.evaluation import Evaluation
from maskwise.protocols.metrics import Floats, Int64s, sums
from maskwise.protocols.tables import Truth
from maskwise.store import MASK_TYPES, Codes

MAX_VALUES = 100
"""A tag with more values than this is no slice; of categories as many are told."""

OTHER = "other"
OCCLUSION = ("unknown", "none", "0-20 %", "20-40 %", "40-70 %", "70-100 %")
SIZES = ("none", "small", "medium", "large")
"""COCO's: small below 32 x 32 pixels, large from 96 x 96."""


def slice_samples(evaluation: Evaluation) -> dict[str, Codes]:
    """Every slicing with the group of each sample: codes int32 [samples] into names, which is never empty."""
    truth = evaluation.truth
    tags = {
        name: Codes(codes.codes, tuple("untagged" if value is None else value for value in codes.names))
        for name, codes in truth.tags.items()
        if len(codes.names) <= MAX_VALUES
    }
    own = {
        "mask_type": Codes(truth.wanted.astype(np.int32), MASK_TYPES),
        "level": _levels(truth),
        "targets": _bands(truth.counts, (1, 2, 3, 6), ("0", "1", "2", "3-5", "6+")),
        "occlusion": _occlusion(evaluation),
        "size": _sizes(evaluation),
        "category": _categories(truth),
    }
    return own | {name: codes for name, codes in tags.items() if name not in own}


def _bands(values: Int64s | Floats, edges: Sequence[float], names: tuple[str, ...]) -> Codes:
    """Group 0 below the first edge, group k from the k-th edge on."""
    return Codes(np.searchsorted(np.asarray(edges), values, side="right").astype(np.int32), names)


def _levels(truth: Truth) -> Codes:
    parts = np.bincount(truth.sample[truth.part], minlength=len(truth))
    code = np.select([truth.counts == 0, parts == 0, parts == truth.counts], [0, 1, 2], 3)
    return Codes(code.astype(np.int32), ("none", "object", "part", "mixed"))


def _occlusion(evaluation: Evaluation) -> Codes:
    """By the hidden share of the amodal area of the targets of which both masks are known."""
    truth = evaluation.truth
    rows = np.flatnonzero(truth.visible.present & truth.amodal.present)
    areas = pair_areas(truth.visible.masks[rows], truth.amodal.masks[rows], threads=evaluation.threads)
    whole = sums(truth.sample[rows], areas.b, len(truth))
    hidden = sums(truth.sample[rows], areas.b - areas.intersection, len(truth))
    rate = hidden / np.maximum(whole, 1)
    band = 1 + (rate > 0) + np.searchsorted((0.2, 0.4, 0.7), rate, side="right")
    return Codes(np.where(whole > 0, band, 0).astype(np.int32), OCCLUSION)


def _sizes(evaluation: Evaluation) -> Codes:
    truth = evaluation.truth
    area = sums(truth.sample, evaluation.plane("wanted").target.area, len(truth))
    mean = area / np.maximum(truth.counts, 1)
    code = 1 + np.searchsorted((32.0**2, 96.0**2), mean, side="right")
    return Codes(np.where(truth.counts > 0, code, 0).astype(np.int32), SIZES)


def _categories(truth: Truth) -> Codes:
    """The targets' name, `several` where they differ; the most frequent ones, the rest as `other`."""
    codes, names = truth.names
    first = np.zeros(len(truth), np.int64)
    some = truth.counts > 0
    first[some] = codes[truth.offsets[:-1][some]]
    differs = np.bincount(truth.sample[codes != first[truth.sample]], minlength=len(truth)) > 0
    category = np.select([~some, differs], [len(names), len(names) + 1], first)
    labels = np.array([*names, "none", "several"], dtype=object)
    return _most_frequent(category, labels)


def _most_frequent(codes: Int64s, names: NDArray[np.object_]) -> Codes:
    counts = np.bincount(codes, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    kept = order[:MAX_VALUES][counts[order[:MAX_VALUES]] > 0]
    recode = np.full(len(names), len(kept), np.int32)
    recode[kept] = np.arange(len(kept))
    labels = [str(name) for name in names[kept]]
    return Codes(recode[codes], (*labels, OTHER) if (counts > 0).sum() > len(kept) else tuple(labels))

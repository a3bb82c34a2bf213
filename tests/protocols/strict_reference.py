"""Strict once more, slowly: pixel by pixel, question by question, all matchings tried."""

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise.protocols.answers import normalise
from maskwise.schema import PredictedRegion, Prediction, Region, Sample

Pixels = NDArray[np.bool_]


def strict(
    samples: list[Sample], predictions: dict[str, Prediction], frame: tuple[int, int]
) -> dict[str, float | None]:
    """Every figure of `strict` that does not need boundaries; without those that hang on which of several equally good
    matchings is taken, where there are several.
    """
    total: Counter[str] = Counter()
    for sample in samples:
        for name, amount in _judge(sample, predictions.get(sample.id), frame).items():
            total[name] += amount
    ratios = {
        "giou": ("value", "samples"),
        "ciou": ("shared", "union"),
        "precision": ("hits", "regions"),
        "recall": ("hits", "targets"),
        "mask_type_accuracy": ("right type", "targeted"),
        "no_target_accuracy": ("silent", "empty"),
        "target_accuracy": ("spoken", "targeted"),
        "target_count_error": ("count error", "samples"),
        "occluded_iou": ("occluded", "occluded targets"),
        "copy_gain": ("gain", "amodal pairs"),
        "visible_outside_amodal": ("leaving", "with both"),
        "answer_exact": ("exact", "worded"),
        "answer_f1": ("name f1", "worded"),
        **{f"p@{t}": (f"p@{t}", "targeted") for t in (0.5, 0.6, 0.7, 0.8, 0.9)},
    }
    found = {
        name: total[top] / total[bottom] if total[bottom] else None for name, (top, bottom) in ratios.items()
    }
    everyone = total["regions"] + total["targets"]
    found["f1"] = 2 * total["hits"] / everyone if everyone else None
    if total["tied"]:
        for name in ("ciou", "precision", "recall", "f1", "occluded_iou", "copy_gain"):
            del found[name]
    return found


def _judge(sample: Sample, reply: Prediction | None, frame: tuple[int, int]) -> Counter[str]:
    out: Counter[str] = Counter()
    kinds = {"visible": ["visible"], "amodal": ["amodal"], "both": ["visible", "amodal"]}[sample.mask_type]
    if sample.mask_type != "both" and any(region.mask(kinds[0]) is None for region in sample.targets):
        return out
    answered = reply is not None and reply.error is None
    regions = list(reply.regions) if reply is not None and answered and not reply.no_target else []
    keep = ~sample.ignore.to_dense() if sample.ignore else np.ones(frame, bool)
    said = _type(reply) if reply is not None and answered else "none"
    hidden = any(
        _plane(region, kind, keep).sum() == 0 for region in sample.targets for kind in _known(region, kinds)
    )
    if not hidden:
        regions = [
            region for region in regions if any(_shown(region, kind, kinds, keep).any() for kind in kinds)
        ]
    table = [
        [_iou(region, target, kinds, keep) if said == sample.mask_type else 0.0 for target in sample.targets]
        for region in regions
    ]
    pairs, tied = _best(table, len(regions), len(sample.targets))
    out["tied"] += tied
    _count(out, sample, regions, answered=answered, said=said)
    _count_overlap(out, sample, regions, pairs=pairs, table=table, kinds=kinds, keep=keep, answered=answered)
    _count_amodal(out, sample, regions, pairs=pairs, keep=keep)
    if answered and sample.targets:
        _count_names(out, sample, reply)
    return out


def _count(out: Counter[str], sample: Sample, regions: list[Any], *, answered: bool, said: str) -> None:
    targets = len(sample.targets)
    out["samples"] += 1
    out["regions"] += len(regions)
    out["targets"] += targets
    out["targeted" if targets else "empty"] += 1
    out["right type"] += bool(targets) and said == sample.mask_type
    out["silent"] += not targets and answered and not regions
    out["spoken"] += bool(targets) and bool(regions)
    out["count error"] += abs(len(regions) - targets)


def _count_overlap(out, sample, regions, *, pairs, table, kinds, keep, answered) -> None:
    targets = sample.targets
    size = max(len(regions), len(targets))
    value = sum(table[i][j] for i, j in pairs) / size if size else float(answered)
    out["value"] += value
    out["hits"] += sum(table[i][j] >= 0.5 for i, j in pairs)
    for threshold in (0.5, 0.6, 0.7, 0.8, 0.9):
        out[f"p@{threshold}"] += bool(targets) and value >= threshold
    for kind in kinds:
        shown = [_shown(region, kind, kinds, keep) for region in regions]
        wanted = [_plane(region, kind, keep) for region in targets]
        shared = sum(int((shown[i] & wanted[j]).sum()) for i, j in pairs)
        out["shared"] += shared
        out["union"] += sum(int(overlaps.sum()) for overlaps in shown + wanted) - shared


def _count_amodal(out, sample, regions, *, pairs, keep) -> None:
    for region in regions:
        if region.visible and region.amodal:
            out["with both"] += 1
            out["leaving"] += bool((region.visible.to_dense() & ~region.amodal.to_dense()).any())
    if sample.mask_type == "visible":
        return
    partner = {j: i for i, j in pairs}
    for j, target in enumerate(sample.targets):
        if target.visible is None or target.amodal is None:
            continue
        front, whole = _plane(target, "visible", keep), _plane(target, "amodal", keep)
        hidden = whole & ~front
        out["occluded targets"] += bool(hidden.any())
        if j not in partner or regions[partner[j]].amodal is None:
            continue
        region = regions[partner[j]]
        drawn = _plane(region, "amodal", keep)
        own = _plane(region, "visible", keep) if region.visible else front
        out["amodal pairs"] += 1
        out["gain"] += _ratio(drawn, whole) - _ratio(own, whole)
        if hidden.any():
            out["occluded"] += _ratio(drawn & ~own, hidden)


def _count_names(out: Counter[str], sample: Sample, reply: Prediction) -> None:
    said = [normalise(region.name) for region in reply.regions if region.name is not None]
    if not said and reply.answer:
        said = [normalise(reply.answer.text[p.start : p.stop]) for p in reply.answer.phrases]
    if not said and reply.answer is None:
        return
    right = Counter(normalise(region.name) for region in sample.targets)
    shared = sum((right & Counter(said)).values())
    out["worded"] += 1
    out["exact"] += right == Counter(said)
    out["name f1"] += 2 * shared / (right.total() + len(said))


def _type(reply: Prediction) -> str:
    if reply.mask_type is not None:
        return reply.mask_type
    visible = any(region.visible for region in reply.regions)
    amodal = any(region.amodal for region in reply.regions)
    return {(True, True): "both", (True, False): "visible", (False, True): "amodal"}.get(
        (visible, amodal), "none"
    )


def _known(region: Region | PredictedRegion, kinds: list[str]) -> list[str]:
    return [kind for kind in kinds if getattr(region, kind) is not None]


def _plane(region: Region | PredictedRegion, kind: str, keep: Pixels) -> Pixels:
    mask = getattr(region, kind)
    return np.zeros_like(keep) if mask is None else mask.to_dense() & keep


def _shown(region: PredictedRegion, kind: str, kinds: list[str], keep: Pixels) -> Pixels:
    """What counts as drawn: the mask wanted, or where only one type is wanted and it is not there, the other."""
    if len(kinds) == 1 and getattr(region, kind) is None:
        kind = "amodal" if kind == "visible" else "visible"
    return _plane(region, kind, keep)


def _iou(region: PredictedRegion, target: Region, kinds: list[str], keep: Pixels) -> float:
    known = _known(target, kinds)
    scores = [
        _ratio(_plane(region, kind, keep), _plane(target, kind, keep))
        if getattr(region, kind) is not None
        else 0.0
        for kind in known
    ]
    return sum(scores) / len(known)


def _ratio(one: Pixels, other: Pixels) -> float:
    union = int((one | other).sum())
    return int((one & other).sum()) / union if union else 1.0


def _best(table: list[list[float]], rows: int, columns: int) -> tuple[list[tuple[int, int]], bool]:
    """The pairs of the matching with the largest total, by trying all, and whether another has the same total."""
    if rows > columns:
        flipped = [list(column) for column in zip(*table)] or [[] for _ in range(columns)]
        pairs, tied = _best(flipped, columns, rows)
        return [(i, j) for j, i in pairs], tied
    tries = {
        frozenset((i, j) for i, j in enumerate(order) if table[i][j] > 0)
        for order in permutations(range(columns), rows)
    }
    total = {pairs: sum(table[i][j] for i, j in sorted(pairs)) for pairs in tries}
    best = max(total, key=lambda pairs: total[pairs])
    return sorted(best), sum(abs(other - total[best]) < 1e-9 for other in total.values()) > 1

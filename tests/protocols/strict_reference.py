"""Strict once more, slowly: pixel by pixel, question by question, all matchings tried."""

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise.protocols.answers import normalise
from maskwise.schema import PredictedRegion, Prediction, Region, Sample

Pixels = NDArray[np.bool_]
OTHER = {"visible": "amodal", "amodal": "visible"}


def strict(
    samples: list[Sample], predictions: dict[str, Prediction], frame: tuple[int, int]
) -> dict[str, float | None]:
    """Every metric of `strict` that does not need boundaries, except those that depend on which of several equally
    good matchings is taken, where there are several.
    """
    total: Counter[str] = Counter()
    for sample in samples:
        for name, amount in _score(sample, predictions.get(sample.id), frame).items():
            total[name] += amount
    ratios = {
        "giou": ("value", "samples"),
        "ciou": ("shared", "union"),
        "precision": ("hits", "regions"),
        "recall": ("hits", "targets"),
        "mask_type_accuracy": ("right type", "targeted"),
        "no_target_accuracy": ("silent", "empty"),
        "target_accuracy": ("found", "targeted"),
        "target_count_error": ("count error", "samples"),
        "hidden_f1": ("hidden f1", "hidden questions"),
        "visible_iou": ("visible iou", "partly hidden"),
        "occluded_iou": ("occluded", "hidden targets"),
        "copy_gain": ("gain", "hidden targets"),
        "visible_outside_amodal": ("outside", "amodal regions"),
        "answer_exact": ("exact", "answered"),
        "answer_f1": ("name f1", "answered"),
        **{f"p@{t}": (f"p@{t}", "targeted") for t in (0.5, 0.6, 0.7, 0.8, 0.9)},
    }
    found = {
        name: total[top] / total[bottom] if total[bottom] else None
        for name, (top, bottom) in ratios.items()
    }
    everyone = total["regions"] + total["targets"]
    found["f1"] = 2 * total["hits"] / everyone if everyone else None
    if total["tied"]:
        for name in (
            "ciou",
            "precision",
            "recall",
            "f1",
            "hidden_f1",
            "visible_iou",
            "occluded_iou",
            "copy_gain",
            "visible_outside_amodal",
        ):
            del found[name]
    return found


def _score(
    sample: Sample, prediction: Prediction | None, frame: tuple[int, int]
) -> Counter[str]:
    out: Counter[str] = Counter()
    kinds = {
        "visible": ["visible"],
        "amodal": ["amodal"],
        "both": ["visible", "amodal"],
    }[sample.mask_type]
    if sample.mask_type != "both" and any(
        region.mask(kinds[0]) is None for region in sample.targets
    ):
        return out
    usable = prediction is not None and prediction.error is None
    keep = ~sample.ignore.to_dense() if sample.ignore else np.ones(frame, bool)
    targets = [
        one
        for one in sample.targets
        if any(_pixels(one, kind, keep).any() for kind in kinds)
    ]
    regions = (
        [one for one in prediction.regions if _counts(one, sample, kinds, keep)]
        if prediction is not None and usable and not prediction.no_target
        else []
    )
    stated = _type(prediction) if prediction is not None and usable else "none"
    scored, right = _accepted(sample, stated, kinds, keep)
    copies = _copies(regions, sample, scored, keep)
    table = [
        [
            _iou(region, target, sample, scored, keep) if right and not copy else 0.0
            for target in targets
        ]
        for region, copy in zip(regions, copies)
    ]
    pairs, tied = _best(table, len(regions), len(targets))
    out["tied"] += tied
    out["samples"] += 1
    out["regions"] += len(regions)
    out["targets"] += len(targets)
    out["targeted" if targets else "empty"] += 1
    out["right type"] += bool(targets) and stated == sample.mask_type
    out["silent"] += not targets and usable and not regions
    out["found"] += bool(targets) and bool(regions)
    out["count error"] += abs(len(regions) - sum(copies) - len(targets)) + sum(copies)
    _count_overlap(out, targets, regions, pairs=pairs, table=table, usable=usable)
    _count_pixels(
        out,
        sample,
        targets,
        regions,
        pairs=pairs,
        scored=scored,
        kinds=kinds,
        keep=keep,
    )
    if sample.mask_type != "visible":
        _count_hidden(out, targets, regions, pairs=pairs, keep=keep, copies=copies)
        _count_hidden_f1(out, targets, regions, pairs=pairs, keep=keep)
    if targets and sample.answer is not None:
        _count_names(out, sample, prediction if usable else None, regions)
    return out


def _counts(
    region: PredictedRegion, sample: Sample, kinds: list[str], keep: Pixels
) -> bool:
    """Whether a region counts: it has pixels, and does not just describe a target that has no requested pixels."""
    if not any(_pixels(region, kind, keep).any() for kind in OTHER):
        return False
    if len(kinds) == 2:
        return True
    kind = kinds[0]
    other = OTHER[kinds[0]]
    hidden = [one for one in sample.targets if not _pixels(one, kind, keep).any()]
    described = any(
        (_pixels(region, other, keep) & _pixels(one, other, keep)).any()
        and _ratio(_pixels(region, other, keep), _pixels(one, other, keep)) >= 0.5
        for one in hidden
    )
    return not described or _has_pixels(region, kind)


def _has_pixels(region: PredictedRegion, kind: str) -> bool:
    mask = getattr(region, kind)
    return mask is not None and bool(mask.to_dense().any())


def _accepted(
    sample: Sample, stated: str, kinds: list[str], keep: Pixels
) -> tuple[str, bool]:
    """The type of the mask that is scored, and whether the stated type is accepted."""
    if sample.mask_type in (stated, "both") or stated == "none":
        return sample.mask_type, stated == sample.mask_type
    equal = bool(sample.targets) and all(
        one.visible is not None
        and one.amodal is not None
        and (_pixels(one, "visible", keep) == _pixels(one, "amodal", keep)).all()
        for one in sample.targets
    )
    return (stated if equal and stated != "both" else sample.mask_type), equal


def _shown(region: PredictedRegion, kind: str, keep: Pixels) -> Pixels:
    """The mask of a type, or the other one where that has no pixels."""
    return _pixels(region, kind if _has_pixels(region, kind) else OTHER[kind], keep)


def _copies(
    regions: list[PredictedRegion], sample: Sample, scored: str, keep: Pixels
) -> list[bool]:
    def key(region: Any, *, target: bool = False) -> tuple[bytes, ...]:
        if scored == "both":
            return tuple(_pixels(region, kind, keep).tobytes() for kind in OTHER)
        return (
            (
                _pixels(region, sample.mask_type, keep)
                if target
                else _shown(region, scored, keep)
            ).tobytes(),
        )

    equal = Counter(key(one, target=True) for one in sample.targets)
    allowed = max(equal.values(), default=1)
    seen: Counter[tuple[bytes, ...]] = Counter()
    out = []
    for region in regions:
        out.append(seen[key(region)] >= allowed)
        seen[key(region)] += 1
    return out


def _count_overlap(out, targets, regions, *, pairs, table, usable) -> None:
    size = max(len(regions), len(targets))
    value = sum(table[i][j] for i, j in pairs) / size if size else float(usable)
    out["value"] += value
    out["hits"] += sum(table[i][j] >= 0.5 for i, j in pairs)
    for threshold in (0.5, 0.6, 0.7, 0.8, 0.9):
        out[f"p@{threshold}"] += bool(targets) and value >= threshold


def _count_pixels(out, sample, targets, regions, *, pairs, scored, kinds, keep) -> None:
    for kind in kinds:
        if len(kinds) == 2:
            shown = [_pixels(region, kind, keep) for region in regions]
        else:
            shown = [_shown(region, scored, keep) for region in regions]
        true = [_pixels(region, kind, keep) for region in targets]
        shared = sum(int((shown[i] & true[j]).sum()) for i, j in pairs)
        out["shared"] += shared
        out["union"] += sum(int(plane.sum()) for plane in shown + true) - shared


def _count_hidden_f1(out, targets, regions, *, pairs, keep) -> None:
    """Pixel by pixel: true, predicted and right hidden pixels of the question; visible IoU of partly hidden targets."""
    true = predicted = right = 0
    region_of = {j: i for i, j in pairs}
    for j, target in enumerate(targets):
        if target.visible is None or target.amodal is None:
            continue
        front = _pixels(target, "visible", keep)
        hidden = _pixels(target, "amodal", keep) & ~front
        true += int(hidden.sum())
        if hidden.any() and front.any():
            out["partly hidden"] += 1
        if j not in region_of:
            continue
        region = regions[region_of[j]]
        drawn = _pixels(region, "amodal", keep)
        predicted += int((drawn & ~front).sum())
        right += int((drawn & hidden).sum())
        if hidden.any() and front.any():
            out["visible iou"] += _ratio(_pixels(region, "visible", keep), front)
    matched = set(region_of.values())
    for i, region in enumerate(regions):
        if i not in matched:
            predicted += int(_pixels(region, "amodal", keep).sum())
    if true:
        out["hidden questions"] += 1
        out["hidden f1"] += 2 * right / (true + predicted)


def _count_hidden(out, targets, regions, *, pairs, keep, copies) -> None:
    region_of = {j: i for i, j in pairs}
    target_of = dict(pairs)
    for i, region in enumerate(regions):
        if copies[i]:
            continue
        visible = _pixels(region, "visible", keep)
        amodal = _pixels(region, "amodal", keep)
        hidden = i in target_of and targets[target_of[i]].visible is not None
        hidden = hidden and not _pixels(targets[target_of[i]], "visible", keep).any()
        out["amodal regions"] += 1
        if not visible.any():
            out["outside"] += not hidden
        else:
            out["outside"] += bool((visible & ~amodal).any())
    for j, target in enumerate(targets):
        if target.visible is None or target.amodal is None:
            continue
        front = _pixels(target, "visible", keep)
        whole = _pixels(target, "amodal", keep)
        hidden = whole & ~front
        if not hidden.any():
            continue
        out["hidden targets"] += 1
        out["gain"] -= _ratio(front, whole)
        if j not in region_of:
            continue
        region = regions[region_of[j]]
        own = _pixels(region, "visible", keep)
        drawn = _pixels(region, "amodal", keep)
        out["gain"] += _ratio(drawn, whole)
        if own.any() or not front.any():
            out["occluded"] += _ratio(drawn & ~own, hidden)


def _count_names(
    out: Counter[str],
    sample: Sample,
    prediction: Prediction | None,
    regions: list[PredictedRegion],
) -> None:
    names = [normalise(region.name) for region in regions if region.name is not None]
    withheld = sum(region.name is None for region in regions) if names else 0
    if not names and prediction is not None and prediction.answer:
        names = [
            normalise(prediction.answer.text[p.start : p.stop])
            for p in prediction.answer.phrases
            if p.regions
        ]
    right = Counter(normalise(region.name) for region in sample.targets)
    shared = sum((right & Counter(names)).values())
    out["answered"] += 1
    out["exact"] += right == Counter(names) and not withheld
    out["name f1"] += 2 * shared / (right.total() + len(names) + withheld)


def _type(prediction: Prediction) -> str:
    if prediction.mask_type is not None:
        return prediction.mask_type
    visible = any(_has_pixels(region, "visible") for region in prediction.regions)
    amodal = any(_has_pixels(region, "amodal") for region in prediction.regions)
    return {
        (True, True): "both",
        (True, False): "visible",
        (False, True): "amodal",
    }.get((visible, amodal), "none")


def _pixels(region: Region | PredictedRegion, kind: str, keep: Pixels) -> Pixels:
    mask = getattr(region, kind)
    return np.zeros_like(keep) if mask is None else mask.to_dense() & keep


def _iou(
    region: PredictedRegion, target: Region, sample: Sample, scored: str, keep: Pixels
) -> float:
    if scored != "both":
        if not _has_pixels(region, scored):
            return 0.0
        return _ratio(
            _pixels(region, scored, keep), _pixels(target, sample.mask_type, keep)
        )
    pairs = [
        (_pixels(region, kind, keep), getattr(target, kind), kind) for kind in OTHER
    ]
    ratios = [
        _ratio(drawn, _pixels(target, kind, keep))
        for drawn, known, kind in pairs
        if known is not None and (drawn.any() or _pixels(target, kind, keep).any())
    ]
    return sum(ratios) / max(len(ratios), 1)


def _ratio(one: Pixels, other: Pixels) -> float:
    union = int((one | other).sum())
    return int((one & other).sum()) / union if union else 1.0


def _best(
    table: list[list[float]], rows: int, columns: int
) -> tuple[list[tuple[int, int]], bool]:
    """The pairs of the matching with the largest total, by trying all, and whether another has the same total."""
    if rows > columns:
        flipped = [list(column) for column in zip(*table)] or [
            [] for _ in range(columns)
        ]
        pairs, tied = _best(flipped, columns, rows)
        return [(i, j) for j, i in pairs], tied
    tries = {
        frozenset((i, j) for i, j in enumerate(order) if table[i][j] > 0)
        for order in permutations(range(columns), rows)
    }
    total = {pairs: sum(table[i][j] for i, j in sorted(pairs)) for pairs in tries}
    best = max(total, key=lambda pairs: total[pairs])
    return sorted(best), sum(
        abs(other - total[best]) < 1e-9 for other in total.values()
    ) > 1

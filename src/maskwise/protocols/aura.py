"""AURA: visible and amodal masks of AmodalReasonSeg (ICCV 2025). No code was published; this is our reading.

The paper says: gIoU is the mean IoU over all images, cIoU the cumulative intersection over the cumulative union,
visible and amodal separately; of LISA and LLM-Seg, which it trained as baselines, only matched targets are scored,
"ignoring any unmatched targets". It does not say how masks are paired, what one [SEG] for several instances is
compared with, or whether the true answer was in the prompt. What we chose, and the other readings as options:

- `phrases="union"`: one [SEG] speaks of all instances of its phrase (the paper's figures show three bottles under
  one), so the target is their union, and likewise for predicted regions that share a phrase. `"instances"`: each
  alone.
- `matching="iou"`: one to one by best total IoU (visible and amodal together, since one [SEG] makes both masks): free
  answers need not keep the order. `"order"`: k-th with k-th, as the LISA code base does with the true answer in the
  prompt.
- `unmatched="count"`: a target nobody met scores 0 and its pixels join the union. `"ignore"`: it is left out, as the
  paper says of two baselines.
- `extra="ignore"`: masks beyond the targets are free, as in the LISA code base. `"count"`: each scores 0.
- `unit="image"`: the mean over an image's targets, then over images, as the words say. `"question"`: over
  questions; `"mask"`: over targets, as LISA's code would.
- `answers="any"`: `"free"` or `"forced"` refuses the others.

IoU is 1 where both masks are empty. Figures: `giou_visible`, `ciou_visible`, `giou_amodal`, `ciou_amodal` are the
paper's; `giou` and `ciou` pool both types and are ours. A predicted region without a mask of one type counts as an
empty mask of that type. A question without targets has no term. A missing or failed reply leaves its targets
unmatched.
"""

from typing import Literal

import numpy as np

from maskwise.arrays import Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.mask_pairs import pair_in_order, unpaired
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Metric, Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.phrases import merge_phrases
from maskwise.protocols.scoring_input import ScoringInput

DESCRIPTION = (
    "visible and amodal masks, one per phrase, matched by IoU; mean over images (our reading of the paper)"
)
Answers = Literal["any", "free", "forced"]
Matching = Literal["iou", "order"]
Unit = Literal["image", "question", "mask"]
Leftover = Literal["count", "ignore"]


def score(
    inputs: ScoringInput,
    *,
    phrases: Literal["union", "instances"] = "union",
    matching: Matching = "iou",
    unmatched: Leftover = "count",
    extra: Leftover = "ignore",
    unit: Unit = "image",
    answers: Answers = "any",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    check_answers("aura", inputs, answers)
    if phrases == "union":
        inputs = merge_phrases(inputs)
    overlap_sets = {"visible": inputs.overlaps("visible"), "amodal": inputs.overlaps("amodal")}
    pairs = match_types(inputs, list(overlap_sets.values()), matching)
    parts = {
        name: _score_type(
            overlaps, pairs[overlaps.scorable[inputs.index.sample[pairs]]], unmatched, extra=extra, unit=unit
        )
        for name, overlaps in overlap_sets.items()
    }
    neither = (
        (inputs.ground_truth.counts > 0)
        & ~overlap_sets["visible"].scorable
        & ~overlap_sets["amodal"].scorable
    )
    return Scores(
        protocol="aura",
        options={
            "phrases": phrases,
            "matching": matching,
            "unmatched": unmatched,
            "extra": extra,
            "unit": unit,
            "answers": answers,
        },
        statuses=inputs.statuses(
            {
                "no target: the rule has no term for it": inputs.ground_truth.counts == 0,
                "neither all visible nor all amodal masks of the targets are known": neither,
            }
        ),
        metrics=_pool(parts),
    )


def check_answers(protocol: str, inputs: ScoringInput, answers: Answers) -> None:
    """Raise if predictions are not all of the kind asked for."""
    wrong = (
        np.zeros(len(inputs), bool) if answers == "any" else inputs.predictions.forced == (answers == "free")
    )
    rows = np.flatnonzero(wrong & (inputs.predictions.counts > 0))
    if len(rows):
        raise ProtocolError(
            f"{protocol} was asked for {answers} answers only, but {len(rows)} predictions are not (first: sample "
            f"{inputs.ground_truth.ids[rows[0]]!r})"
        )


def match_types(inputs: ScoringInput, overlap_sets: list[Overlaps], matching: Matching) -> Int64Array:
    """Matched pairs, positions in the index: one matching for all planes."""
    index = inputs.index
    if matching == "order":
        return index.find(*pair_in_order(index.pred_offsets, index.target_offsets))
    if all(overlaps is overlap_sets[0] or not overlaps.target.known.any() for overlaps in overlap_sets):
        return overlap_sets[0].matched
    return match(index, np.sum([overlaps.iou for overlaps in overlap_sets], axis=0))


def _score_type(
    overlaps: Overlaps, pairs: Int64Array, unmatched: Leftover, *, extra: Leftover, unit: Unit
) -> dict[str, Metric]:
    """gIoU and cIoU of one mask type."""
    index, ground_truth, count = overlaps.index, overlaps.ground_truth, len(overlaps.ground_truth)
    sample, pred, target = index.sample[pairs], index.pred[pairs], index.target[pairs]
    both_empty = (overlaps.pred.area[pred] == 0) & (overlaps.target.area[target] == 0)
    union = overlaps.pred.area[pred] + overlaps.target.area[target] - overlaps.intersection[pairs]
    value = np.where(both_empty, 1.0, overlaps.intersection[pairs] / np.maximum(union, 1))
    pair_counts = np.bincount(sample, minlength=count)
    pixels = int_sums(sample, union, count)
    if unmatched == "count":
        left = unpaired(len(overlaps.target.area), target)
        left = left[overlaps.scorable[ground_truth.sample[left]]]
        pair_counts += np.bincount(ground_truth.sample[left], minlength=count)
        pixels += int_sums(ground_truth.sample[left], overlaps.target.area[left], count)
    if extra == "count":
        left = unpaired(len(overlaps.pred.area), pred)
        left = left[(overlaps.scorable & (ground_truth.counts > 0))[overlaps.predictions.sample[left]]]
        pair_counts += np.bincount(overlaps.predictions.sample[left], minlength=count)
        pixels += int_sums(overlaps.predictions.sample[left], overlaps.pred.area[left], count)
    share = _share_unit(overlaps, pair_counts, unit)
    return {
        "giou": Metric(sums(sample, value, count) * share, pair_counts * share),
        "ciou": Metric(int_sums(sample, overlaps.intersection[pairs], count), pixels),
    }


def _share_unit(overlaps: Overlaps, pair_counts: Int64Array, unit: Unit) -> Float64Array:
    """What one term weighs, float64 [samples], so that every unit weighs 1 in all."""
    if unit == "mask":
        return np.ones(len(pair_counts))
    if unit == "question":
        return 1.0 / np.maximum(pair_counts, 1)
    per_image = int_sums(overlaps.ground_truth.cluster, pair_counts, overlaps.ground_truth.cluster_count)
    return 1.0 / np.maximum(per_image, 1)[overlaps.ground_truth.cluster]


def _pool(parts: dict[str, dict[str, Metric]]) -> dict[str, Metric]:
    """The four figures of the paper, and both types together."""
    names = ("giou", "ciou")
    pooled = {
        name: Metric(
            np.sum([part[name].numerator for part in parts.values()], axis=0),
            np.sum([part[name].denominator for part in parts.values()], axis=0),
        )
        for name in names
    }
    return pooled | {f"{name}_{kind}": parts[kind][name] for kind in parts for name in names}

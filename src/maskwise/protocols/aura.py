"""AURA: visible and amodal masks of AmodalReasonSeg (ICCV 2025). No code was published; this is our reading.

The paper says: gIoU is the mean IoU over all images, cIoU the cumulative intersection over the cumulative union,
visible and amodal separately. Of LISA and LLM-Seg, which it trained as baselines, only matched targets are scored,
"ignoring any unmatched targets". It does not say how masks are paired, what one [SEG] for several instances is
compared with, or whether the true answer was in the prompt. What we chose, and the other readings as options:

- `phrases="union"`: one [SEG] stands for all instances of its phrase (the paper's figures show three bottles under
  one), so the target is their union, and likewise for predicted regions that share a phrase. The union of predicted
  regions is that of the masks they have; a target phrase needs the masks of all its members. `"instances"`: each
  alone.
- `matching="iou"`: one to one by the largest total IoU (visible and amodal together, since one [SEG] makes both masks),
  because free answers need not keep the order. Masks that overlap in neither type are not paired. `"order"`: k-th with
  k-th, as the LISA code base does with the true answer in the prompt.
- `unmatched="count"`: an unmatched target scores 0 and its pixels join the union. `"ignore"`: it is left out, as the
  paper says of two baselines.
- `extra="count"`: an unmatched mask scores 0 and its pixels join the union; otherwise a model that returns every region
  of the image would be perfect. `"ignore"`: masks beyond the targets are free, as in the LISA code base.
- `unit="image"`: the mean over an image's targets, then over images, as the words say. `"question"`: over questions;
  `"mask"`: over targets, as LISA's code would.
- `answers="any"`: `"free"` or `"forced"` refuses the others.

The IoU of a matched pair is 1 where both masks are empty. A predicted region without a mask of one type counts as an
empty mask of that type. An unmatched target or region without pixels of a type has no term in that type. A question
without targets, or with empty targets only, has no term. A missing or failed prediction leaves its targets unmatched.

Metrics: `giou_visible`, `ciou_visible`, `giou_amodal`, `ciou_amodal` are the paper's; `giou` and `ciou` pool both types
and are ours.
"""

from typing import Literal

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.mask_pairs import pair_in_order, unpaired
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import MetricTerms, Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps, break_ties
from maskwise.protocols.phrases import merge_phrases
from maskwise.protocols.scoring_input import NO_TARGET, ScoringInput

Answers = Literal["any", "free", "forced"]
Matching = Literal["iou", "order"]
Unit = Literal["image", "question", "mask"]
UnpairedMasks = Literal["count", "ignore"]


RegionPairs = tuple[Int64Array, Int64Array]
"""Predicted region and target of each pair, by position among all: int64 [k] each."""


def score(
    inputs: ScoringInput,
    *,
    phrases: Literal["union", "instances"] = "union",
    matching: Matching = "iou",
    unmatched: UnpairedMasks = "count",
    extra: UnpairedMasks = "count",
    unit: Unit = "image",
    answers: Answers = "any",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    check_answers("aura", inputs, answers)
    if phrases == "union":
        inputs = merge_phrases(inputs)
    types = {"visible": inputs.overlaps("visible"), "amodal": inputs.overlaps("amodal")}
    pairs = match_types(inputs, list(types.values()), matching)
    options: dict[str, UnpairedMasks] = {"unmatched": unmatched, "extra": extra}
    parts = {
        name: _score_type(overlaps, pairs, unit=unit, **options)
        for name, overlaps in types.items()
    }
    some = inputs.ground_truth.counts > 0
    areas = np.sum([overlaps.target.area for overlaps in types.values()], axis=0)
    empty: BoolArray = int_sums(inputs.ground_truth.sample, areas, len(some)) == 0
    neither = some & ~types["visible"].scorable & ~types["amodal"].scorable
    return Scores(
        protocol="aura",
        options={
            "phrases": phrases,
            "matching": matching,
            **options,
            "unit": unit,
            "answers": answers,
        },
        statuses=inputs.statuses(
            {
                NO_TARGET: empty,
                "neither all visible nor all amodal masks of the targets are known": neither,
            }
        ),
        metrics=_pool(parts),
    )


def check_answers(protocol: str, inputs: ScoringInput, answers: Answers) -> None:
    """Raise if predictions are not all of the kind asked for."""
    forced = inputs.predictions.forced
    wrong = (
        np.zeros(len(inputs), bool)
        if answers == "any"
        else forced == (answers == "free")
    )
    rows = np.flatnonzero(wrong & (inputs.predictions.counts > 0))
    if len(rows):
        raise ProtocolError(
            f"{protocol} was asked for {answers} answers only, but {len(rows)} predictions are not (first: sample "
            f"{inputs.ground_truth.ids[rows[0]]!r})"
        )


def match_types(
    inputs: ScoringInput, types: list[Overlaps], matching: Matching
) -> RegionPairs:
    """One matching for all given mask types."""
    pairs = inputs.pairs
    if matching == "order":
        _, pred, target = pair_in_order(pairs.pred_offsets, pairs.target_offsets)
        return pred, target
    if all(
        overlaps is types[0] or not overlaps.target.known.any() for overlaps in types
    ):
        matched = types[0].matched
    else:
        shared = np.sum([overlaps.intersection for overlaps in types], axis=0)
        total_iou = np.sum([overlaps.iou for overlaps in types], axis=0)
        gain = np.where(shared > 0, total_iou, 0.0)
        matched = match(pairs, break_ties(gain, shared))
    return pairs.pred[matched], pairs.target[matched]


def _score_type(
    overlaps: Overlaps,
    pairs: RegionPairs,
    *,
    unmatched: UnpairedMasks,
    extra: UnpairedMasks,
    unit: Unit,
) -> dict[str, MetricTerms]:
    """gIoU and cIoU of one mask type."""
    ground_truth = overlaps.ground_truth
    count = len(overlaps.ground_truth)
    pred, target = pairs
    is_scorable = overlaps.scorable[ground_truth.sample[target]]
    pred = pred[is_scorable]
    target = target[is_scorable]
    sample = ground_truth.sample[target]
    shared = overlaps.shared(pred, target)
    union = overlaps.pred.area[pred] + overlaps.target.area[target] - shared
    value = np.where(union == 0, 1.0, shared / np.maximum(union, 1))
    terms = np.bincount(sample, minlength=count)
    pixels = int_sums(sample, union, count)
    has_target = (
        int_sums(ground_truth.sample, overlaps.target.known.astype(np.int64), count) > 0
    )
    for masks, paired, counts in (
        (overlaps.target, target, unmatched),
        (overlaps.pred, pred, extra),
    ):
        left = unpaired(len(masks.area), paired)
        left = left[
            (overlaps.scorable & has_target)[masks.sample[left]]
            & (masks.area[left] > 0)
        ]
        if counts == "count":
            terms += np.bincount(masks.sample[left], minlength=count)
            pixels += int_sums(masks.sample[left], masks.area[left], count)
    share = _share_unit(overlaps, terms, unit)
    return {
        "giou": MetricTerms(sums(sample, value, count) * share, terms * share),
        "ciou": MetricTerms(int_sums(sample, shared, count), pixels),
    }


def _share_unit(overlaps: Overlaps, terms: Int64Array, unit: Unit) -> Float64Array:
    """The weight of one term, float64 [samples], so that every unit has weight 1 in total."""
    if unit == "mask":
        return np.ones(len(terms))
    if unit == "question":
        return 1.0 / np.maximum(terms, 1)
    cluster = overlaps.ground_truth.cluster
    per_image = int_sums(cluster, terms, overlaps.ground_truth.cluster_count)
    return 1.0 / np.maximum(per_image, 1)[cluster]


def _pool(parts: dict[str, dict[str, MetricTerms]]) -> dict[str, MetricTerms]:
    """The four metrics of the paper, and both types together."""
    names = ("giou", "ciou")
    pooled = {
        name: MetricTerms(
            np.sum([part[name].numerator for part in parts.values()], axis=0),
            np.sum([part[name].denominator for part in parts.values()], axis=0),
        )
        for name in names
    }
    return pooled | {
        f"{name}_{kind}": parts[kind][name] for kind in parts for name in names
    }

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

from maskwise.errors import ProtocolError
from maskwise.protocols.evaluation import Evaluation, Plane
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Floats, Int64s, Metric, Scores, sums, whole_sums
from maskwise.protocols.pairs import in_order, left_over
from maskwise.protocols.phrases import unite_phrases

RULE = "visible and amodal masks, one per phrase, matched by IoU; mean over images (our reading of the paper)"
Answers = Literal["any", "free", "forced"]
Matching = Literal["iou", "order"]
Unit = Literal["image", "question", "mask"]
Leftover = Literal["count", "ignore"]


def score(
    evaluation: Evaluation,
    *,
    phrases: Literal["union", "instances"] = "union",
    matching: Matching = "iou",
    unmatched: Leftover = "count",
    extra: Leftover = "ignore",
    unit: Unit = "image",
    answers: Answers = "any",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    check_answers("aura", evaluation, answers)
    if phrases == "union":
        evaluation = unite_phrases(evaluation)
    planes = {"visible": evaluation.plane("visible"), "amodal": evaluation.plane("amodal")}
    pairs = match_types(evaluation, list(planes.values()), matching)
    parts = {
        name: _score_type(
            plane, pairs[plane.judged[evaluation.index.sample[pairs]]], unmatched, extra=extra, unit=unit
        )
        for name, plane in planes.items()
    }
    neither = (evaluation.truth.counts > 0) & ~planes["visible"].judged & ~planes["amodal"].judged
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
        verdicts=evaluation.verdicts(
            {
                "no target: the rule has no term for it": evaluation.truth.counts == 0,
                "neither all visible nor all amodal masks of the targets are known": neither,
            }
        ),
        metrics=_pool(parts),
    )


def check_answers(protocol: str, evaluation: Evaluation, answers: Answers) -> None:
    """Raise if replies are not all of the kind asked for."""
    wrong = (
        np.zeros(len(evaluation), bool)
        if answers == "any"
        else evaluation.replies.forced == (answers == "free")
    )
    rows = np.flatnonzero(wrong & (evaluation.replies.counts > 0))
    if len(rows):
        raise ProtocolError(
            f"{protocol} was asked for {answers} answers only, but {len(rows)} predictions are not (first: sample "
            f"{evaluation.truth.ids[rows[0]]!r})"
        )


def match_types(evaluation: Evaluation, planes: list[Plane], matching: Matching) -> Int64s:
    """Matched pairs, positions in the index: one matching for all planes."""
    index = evaluation.index
    if matching == "order":
        return index.find(*in_order(index.pred_offsets, index.target_offsets))
    if all(plane is planes[0] or not plane.target.known.any() for plane in planes):
        return planes[0].matched
    return match(index, np.sum([plane.iou for plane in planes], axis=0))


def _score_type(
    plane: Plane, pairs: Int64s, unmatched: Leftover, *, extra: Leftover, unit: Unit
) -> dict[str, Metric]:
    """gIoU and cIoU of one mask type."""
    index, truth, count = plane.index, plane.truth, len(plane.truth)
    sample, pred, target = index.sample[pairs], index.pred[pairs], index.target[pairs]
    both_empty = (plane.pred.area[pred] == 0) & (plane.target.area[target] == 0)
    union = plane.pred.area[pred] + plane.target.area[target] - plane.intersection[pairs]
    value = np.where(both_empty, 1.0, plane.intersection[pairs] / np.maximum(union, 1))
    terms = np.bincount(sample, minlength=count)
    pixels = whole_sums(sample, union, count)
    if unmatched == "count":
        left = left_over(len(plane.target.area), target)
        left = left[plane.judged[truth.sample[left]]]
        terms += np.bincount(truth.sample[left], minlength=count)
        pixels += whole_sums(truth.sample[left], plane.target.area[left], count)
    if extra == "count":
        left = left_over(len(plane.pred.area), pred)
        left = left[(plane.judged & (truth.counts > 0))[plane.replies.sample[left]]]
        terms += np.bincount(plane.replies.sample[left], minlength=count)
        pixels += whole_sums(plane.replies.sample[left], plane.pred.area[left], count)
    share = _share_unit(plane, terms, unit)
    return {
        "giou": Metric(sums(sample, value, count) * share, terms * share),
        "ciou": Metric(whole_sums(sample, plane.intersection[pairs], count), pixels),
    }


def _share_unit(plane: Plane, terms: Int64s, unit: Unit) -> Floats:
    """What one term weighs, float64 [samples], so that every unit weighs 1 in all."""
    if unit == "mask":
        return np.ones(len(terms))
    if unit == "question":
        return 1.0 / np.maximum(terms, 1)
    per_image = whole_sums(plane.truth.cluster, terms, plane.truth.clusters)
    return 1.0 / np.maximum(per_image, 1)[plane.truth.cluster]


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

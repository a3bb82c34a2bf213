"""Metrics of hidden pixels: the part of the amodal mask that the visible mask does not show."""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.masks import pair_areas
from maskwise.protocols.metrics import MetricTerms, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.scoring_input import ScoringInput


def hidden_metrics(
    inputs: ScoringInput, rows: BoolArray, pred: Int64Array, target: Int64Array
) -> dict[str, MetricTerms]:
    """`occluded_iou`, `occluded_ciou` and `copy_gain` over the targets with hidden pixels; see `strict`.

    rows: bool [samples], the questions to look at; pred, target: int64 [k], the matched pairs.
    """
    ground_truth = inputs.ground_truth
    count = len(inputs)
    if not rows.any():
        nothing = MetricTerms(np.zeros(count), np.zeros(count, np.int64))
        return dict.fromkeys(("occluded_iou", "occluded_ciou", "copy_gain"), nothing)
    visible = inputs.overlaps("visible")
    amodal = inputs.overlaps("amodal")
    area, copy_iou = _hidden_targets(inputs, visible, amodal, rows)
    kept = area[target] > 0
    pred = pred[kept]
    target = target[kept]
    sample = ground_truth.sample[target]
    shared, drawn = _hidden_overlap(visible, amodal, pred, target)
    union = drawn + area[target] - shared
    position = inputs.pairs.find(pred, target)
    targets = np.bincount(ground_truth.sample[area > 0], minlength=count)
    cumulative = int_sums(ground_truth.sample, area, count) + int_sums(
        sample, drawn - shared, count
    )
    gain = sums(sample, amodal.iou[position], count) - sums(
        ground_truth.sample, copy_iou, count
    )
    return {
        "occluded_iou": MetricTerms(
            sums(sample, shared / np.maximum(union, 1), count), targets
        ),
        "occluded_ciou": MetricTerms(int_sums(sample, shared, count), cumulative),
        "copy_gain": MetricTerms(gain, targets),
    }


def visible_outside_amodal(
    inputs: ScoringInput, counted: BoolArray, *, pairs: tuple[Int64Array, Int64Array]
) -> MetricTerms:
    """Share of the counted regions whose visible mask leaves the amodal one or is absent; an absent one is right where
    the matched target is fully hidden. counted: bool [regions]; pairs: regions and targets matched.
    """
    sample = inputs.predictions.sample
    count = len(inputs)
    whole = np.bincount(sample[counted], minlength=count)
    if not counted.any():
        return MetricTerms(np.zeros(count, np.int64), whole)
    visible = inputs.overlaps("visible")
    amodal = inputs.overlaps("amodal")
    outside = counted & ((visible.pred.area == 0) | (amodal.pred.area == 0))
    rows = np.flatnonzero(counted & ~outside)
    areas = pair_areas(
        visible.pred.masks[rows], amodal.pred.masks[rows], threads=inputs.threads
    )
    outside[rows] = areas.intersection < areas.a
    pred, target = pairs
    fully_hidden = visible.target.known & (visible.target.area == 0)
    outside[pred[fully_hidden[target] & (visible.pred.area[pred] == 0)]] = False
    return MetricTerms(np.bincount(sample[outside], minlength=count), whole)


def _hidden_targets(
    inputs: ScoringInput, visible: Overlaps, amodal: Overlaps, rows: BoolArray
) -> tuple[Int64Array, Float64Array]:
    """Hidden pixels of each target of the rows of which both masks are known, and, where there are any, the IoU of its
    two masks: [targets] each.
    """
    known = (
        rows[inputs.ground_truth.sample] & visible.target.known & amodal.target.known
    )
    places = np.flatnonzero(known)
    areas = pair_areas(
        visible.target.masks[places],
        amodal.target.masks[places],
        threads=inputs.threads,
    )
    area = np.zeros(len(known), np.int64)
    copy_iou = np.zeros(len(known))
    area[places] = areas.b - areas.intersection
    copy_iou[places] = np.where(area[places] > 0, areas.iou(), 0.0)
    return area, copy_iou


def _hidden_overlap(
    visible: Overlaps, amodal: Overlaps, pred: Int64Array, target: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """For pairs: pixels shared by the hidden parts, and pixels predicted as hidden. Without a visible mask nothing is
    shared and the whole amodal mask is predicted as hidden, unless the target is fully hidden.
    """
    shared = np.zeros(len(pred), np.int64)
    drawn = amodal.pred.area[pred].copy()
    has_visible = visible.pred.area[pred] > 0
    usable = (drawn > 0) & (has_visible | (visible.target.area[target] == 0))
    for own in (True, False):
        rows = np.flatnonzero(usable & (has_visible == own))
        hidden = amodal.pred.masks[pred[rows]]
        if own:
            hidden = hidden - visible.pred.masks[pred[rows]]
        true = amodal.target.masks[target[rows]] - visible.target.masks[target[rows]]
        areas = pair_areas(hidden, true, threads=amodal.threads)
        shared[rows] = areas.intersection
        drawn[rows] = areas.a
    return shared, drawn

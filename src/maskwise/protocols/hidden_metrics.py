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
    hidden_area, copy_iou = _hidden_targets(inputs, visible, amodal, rows)
    is_hidden = hidden_area > 0
    target_counts = np.bincount(ground_truth.sample[is_hidden], minlength=count)

    # Of the matched pairs only those whose target has hidden pixels count.
    has_hidden = is_hidden[target]
    pred = pred[has_hidden]
    target = target[has_hidden]
    sample = ground_truth.sample[target]
    shared, predicted = _hidden_overlap(visible, amodal, pred, target)
    union = predicted + hidden_area[target] - shared
    iou = shared / np.maximum(union, 1)
    # The union over a sample includes the targets that nothing was matched with.
    all_hidden = int_sums(ground_truth.sample, hidden_area, count)
    wrongly_predicted = int_sums(sample, predicted - shared, count)
    position = inputs.pairs.find(pred, target)
    amodal_iou = sums(sample, amodal.iou[position], count)
    gain = amodal_iou - sums(ground_truth.sample, copy_iou, count)
    return {
        "occluded_iou": MetricTerms(sums(sample, iou, count), target_counts),
        "occluded_ciou": MetricTerms(
            int_sums(sample, shared, count), all_hidden + wrongly_predicted
        ),
        "copy_gain": MetricTerms(gain, target_counts),
    }


def visible_outside_amodal(
    inputs: ScoringInput, counted: BoolArray, *, pairs: tuple[Int64Array, Int64Array]
) -> MetricTerms:
    """Share of the counted regions whose visible mask leaves the amodal one or is absent; an absent one is right where
    the matched target is fully hidden. counted: bool [regions]; pairs: regions and targets matched.
    """
    sample = inputs.predictions.sample
    count = len(inputs)
    region_counts = np.bincount(sample[counted], minlength=count)
    if not counted.any():
        return MetricTerms(np.zeros(count, np.int64), region_counts)
    visible = inputs.overlaps("visible")
    amodal = inputs.overlaps("amodal")
    is_absent = (visible.pred.area == 0) | (amodal.pred.area == 0)
    outside = counted & is_absent
    rows = np.flatnonzero(counted & ~is_absent)
    areas = pair_areas(
        visible.pred.masks[rows], amodal.pred.masks[rows], threads=inputs.threads
    )
    outside[rows] = areas.intersection < areas.a
    pred, target = pairs
    fully_hidden = visible.target.known & (visible.target.area == 0)
    is_rightly_absent = fully_hidden[target] & (visible.pred.area[pred] == 0)
    outside[pred[is_rightly_absent]] = False
    return MetricTerms(np.bincount(sample[outside], minlength=count), region_counts)


def _hidden_targets(
    inputs: ScoringInput, visible: Overlaps, amodal: Overlaps, rows: BoolArray
) -> tuple[Int64Array, Float64Array]:
    """Hidden pixels of each target of the rows of which both masks are known, and, where there are any, the IoU of its
    two masks: [targets] each.
    """
    is_asked = rows[inputs.ground_truth.sample]
    has_both = visible.target.known & amodal.target.known
    places = np.flatnonzero(is_asked & has_both)
    areas = pair_areas(
        visible.target.masks[places],
        amodal.target.masks[places],
        threads=inputs.threads,
    )
    hidden_area = np.zeros(len(has_both), np.int64)
    hidden_area[places] = areas.b - areas.intersection
    copy_iou = np.zeros(len(has_both))
    copy_iou[places] = np.where(hidden_area[places] > 0, areas.iou(), 0.0)
    return hidden_area, copy_iou


def _hidden_overlap(
    visible: Overlaps, amodal: Overlaps, pred: Int64Array, target: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """For pairs: pixels shared by the hidden parts, and pixels predicted as hidden. Without a visible mask nothing is
    shared and the whole amodal mask is predicted as hidden, unless the target is fully hidden.
    """
    shared = np.zeros(len(pred), np.int64)
    predicted = amodal.pred.area[pred].copy()
    has_visible = visible.pred.area[pred] > 0
    is_fully_hidden = visible.target.area[target] == 0
    is_usable = (predicted > 0) & (has_visible | is_fully_hidden)
    for with_visible in (True, False):
        rows = np.flatnonzero(is_usable & (has_visible == with_visible))
        row_pred = pred[rows]
        row_target = target[rows]
        predicted_hidden = amodal.pred.masks[row_pred]
        if with_visible:
            predicted_hidden = predicted_hidden - visible.pred.masks[row_pred]
        true_hidden = amodal.target.masks[row_target] - visible.target.masks[row_target]
        areas = pair_areas(predicted_hidden, true_hidden, threads=amodal.threads)
        shared[rows] = areas.intersection
        predicted[rows] = areas.a
    return shared, predicted

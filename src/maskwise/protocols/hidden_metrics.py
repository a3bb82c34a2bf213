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


def hidden_f1(
    inputs: ScoringInput,
    rows: BoolArray,
    counted: BoolArray,
    *,
    pairs: tuple[Int64Array, Int64Array],
) -> dict[str, MetricTerms]:
    """`hidden_f1` and `visible_iou` over the questions with hidden pixels; see `strict`.

    rows: bool [samples], the questions to look at; counted: bool [regions]; pairs: matched regions and targets.

    Smallest example: the target shows 1 pixel and hides 1. The amodal mask of both pixels scores 1. A second region
    that covers 2 other pixels is predicted as hidden as well: F1 = 2 * 1 / (1 + 2 + 1) = 0.5.
    """
    ground_truth = inputs.ground_truth
    count = len(inputs)
    if not rows.any():
        nothing = MetricTerms(np.zeros(count), np.zeros(count, np.int64))
        return dict.fromkeys(("hidden_f1", "visible_iou"), nothing)
    visible = inputs.overlaps("visible")
    amodal = inputs.overlaps("amodal")
    hidden_area, _ = _hidden_targets(inputs, visible, amodal, rows)
    hidden_of_sample = int_sums(ground_truth.sample, hidden_area, count)
    has_hidden = hidden_of_sample > 0

    pred, target = pairs
    shared, predicted = _hidden_by_truth(visible, amodal, pred, target)
    # What is not matched is predicted as hidden with all its pixels.
    is_unmatched = counted.copy()
    is_unmatched[pred] = False
    region_sample = inputs.predictions.sample
    unmatched_area = np.where(is_unmatched, amodal.pred.area, 0)
    pair_sample = ground_truth.sample[target]
    predicted_area = int_sums(pair_sample, predicted, count)
    predicted_area += int_sums(region_sample, unmatched_area, count)
    shared_area = int_sums(pair_sample, shared, count)
    f1 = 2 * shared_area / np.maximum(predicted_area + hidden_of_sample, 1)

    # A target that shows nothing has no visible mask to compare.
    is_partly_visible = (hidden_area > 0) & (visible.target.area > 0)
    target_counts = np.bincount(ground_truth.sample[is_partly_visible], minlength=count)
    position = inputs.pairs.find(pred, target)
    visible_iou = np.where(is_partly_visible[target], visible.iou[position], 0.0)
    return {
        "hidden_f1": MetricTerms(
            np.where(has_hidden, f1, 0.0), has_hidden.astype(np.int64)
        ),
        "visible_iou": MetricTerms(
            sums(pair_sample, visible_iou, count), target_counts
        ),
    }


def _hidden_by_truth(
    visible: Overlaps, amodal: Overlaps, pred: Int64Array, target: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """For pairs: pixels of the amodal mask in the hidden part of the target, and outside its visible part, int64 [k].

    0 where either mask of the target is not known.
    """
    shared = np.zeros(len(pred), np.int64)
    predicted = np.zeros(len(pred), np.int64)
    has_both = visible.target.known[target] & amodal.target.known[target]
    rows = np.flatnonzero(has_both & (amodal.pred.area[pred] > 0))
    drawn = amodal.pred.masks[pred[rows]]
    true_visible = visible.target.masks[target[rows]]
    true_hidden = amodal.target.masks[target[rows]] - true_visible
    threads = amodal.threads
    shared[rows] = pair_areas(drawn, true_hidden, threads=threads).intersection
    inside = pair_areas(drawn, true_visible, threads=threads)
    predicted[rows] = inside.a - inside.intersection
    return shared, predicted


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

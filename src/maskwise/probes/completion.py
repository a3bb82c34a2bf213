"""Mask types and completion: which kind of mask was drawn, and how much of the hidden part."""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int8Array, Int32Array, Int64Array
from maskwise.masks import Masks, pair_areas
from maskwise.protocols import GroundTruth, MetricTerms, PredictionColumns
from maskwise.protocols.ground_truth import AMODAL, BOTH, VISIBLE
from maskwise.protocols.prediction_columns import UNSTATED
from maskwise.store import MaskColumn

FOUND = 0.5
"""The share of the visible part that a predicted mask has to cover for the object to count as found:
completion says nothing about a mask of another object."""


@dataclass(frozen=True)
class CompletionTerms:
    """Metrics over questions with targets, as terms of every sample.

    amodal_for_visible: of the questions that ask for visible masks, those with amodal ones;
    visible_for_amodal: the reverse. missed: hidden share that a predicted amodal mask lacks.
    excess: what it covers outside the true amodal mask, as a share of that. uncalled: hidden share
    that a visible mask covers. The last three are about objects that were found.
    """

    amodal_for_visible: MetricTerms
    visible_for_amodal: MetricTerms
    missed: MetricTerms
    excess: MetricTerms
    uncalled: MetricTerms


def measure_completion(
    truth: GroundTruth, predictions: PredictionColumns
) -> CompletionTerms:
    """The metrics of a run's predictions, in the order of the ground truth."""
    drawn = drawn_types(predictions)
    has_targets = truth.counts > 0
    asks_visible = has_targets & (truth.requested_type == VISIBLE)
    asks_amodal = has_targets & (truth.requested_type == AMODAL)
    states_type = drawn != UNSTATED
    sizes = truth.image_size
    visible = union_by_sample(truth.visible, truth.offsets, sizes)
    amodal = union_by_sample(truth.amodal, truth.offsets, sizes)
    hidden = amodal - visible
    hidden_area = hidden.area()
    predicted_amodal = union_by_sample(predictions.amodal, predictions.offsets, sizes)
    predicted_visible = union_by_sample(predictions.visible, predictions.offsets, sizes)
    completes = _is_found(predicted_amodal, visible) & (hidden_area > 0)
    completes &= has_targets & (truth.requested_type != VISIBLE)
    shows = _is_found(predicted_visible, visible) & (hidden_area > 0)
    shows &= has_targets & (truth.requested_type != AMODAL)
    reached = pair_areas(predicted_amodal, hidden).intersection / _nonzero(hidden_area)
    overlap = pair_areas(predicted_amodal, amodal)
    excess = (overlap.a - overlap.intersection) / _nonzero(overlap.b)
    shown = pair_areas(predicted_visible, hidden).intersection / _nonzero(hidden_area)
    return CompletionTerms(
        amodal_for_visible=_share(drawn == AMODAL, asks_visible & states_type),
        visible_for_amodal=_share(drawn == VISIBLE, asks_amodal & states_type),
        missed=_mean(1 - reached, completes),
        # One mask that covers half the image must not decide the mean.
        excess=_mean(np.minimum(excess, 1.0), completes),
        uncalled=_mean(shown, shows),
    )


def drawn_types(predictions: PredictionColumns) -> Int8Array:
    """The mask type of each prediction: what it states, else what its masks are; UNSTATED without
    regions.
    """
    count = len(predictions)
    has_visible = np.zeros(count, bool)
    has_amodal = np.zeros(count, bool)
    has_visible[predictions.sample[predictions.visible.present]] = True
    has_amodal[predictions.sample[predictions.amodal.present]] = True
    held = np.select(
        [has_visible & has_amodal, has_visible, has_amodal],
        [BOTH, VISIBLE, AMODAL],
        UNSTATED,
    )
    is_stated = predictions.mask_type != UNSTATED
    drawn = np.where(is_stated, predictions.mask_type, held)
    return np.where(predictions.counts > 0, drawn, UNSTATED).astype(np.int8)


def union_by_sample(
    column: MaskColumn, offsets: Int64Array, sizes: Int32Array
) -> Masks:
    """One mask per sample: the union of the known masks of its rows. Masks of another size than the
    image do not count.
    """
    sample = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    fits = column.present & (column.masks.size == sizes[sample]).all(1)
    kept = np.concatenate([[0], np.cumsum(fits)])
    return column.masks[np.flatnonzero(fits)].merge(kept[offsets], sizes)


def _is_found(predicted: Masks, visible: Masks) -> BoolArray:
    areas = pair_areas(predicted, visible)
    return areas.intersection >= FOUND * _nonzero(areas.b)


def _nonzero(area: Int64Array) -> Int64Array:
    return np.maximum(area, 1)


def _share(hit: BoolArray, counted: BoolArray) -> MetricTerms:
    return MetricTerms((hit & counted).astype(np.int64), counted.astype(np.int64))


def _mean(values: Float64Array, counted: BoolArray) -> MetricTerms:
    return MetricTerms(np.where(counted, values, 0.0), counted.astype(np.int64))

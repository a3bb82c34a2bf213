"""What a reader of predictions returns, and the columns of predictions that consist of masks only."""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import StoreError
from maskwise.masks import Masks
from maskwise.protocols.columns import encode_strings, no_masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.prediction_columns import (
    MISSING,
    PREDICTED,
    UNSTATED,
    PredictionColumns,
)
from maskwise.protocols.ragged import counts_to_offsets
from maskwise.runs.schema import ReadOptions
from maskwise.store import MaskColumn


@dataclass(frozen=True)
class LoadedPredictions:
    """Predictions in the order of the dataset.

    read: how many there were. matched: how many of them are for a sample of the dataset. first_unknown: the sample id
    of the first one that is not.
    """

    predictions: PredictionColumns
    read: int
    matched: int
    first_unknown: str | None = None


def align(
    truth: GroundTruth, ids: list[str], predictions: PredictionColumns, where: str
) -> LoadedPredictions:
    """Put predictions (in any order, with their sample ids) in the order of the dataset."""
    if ids == truth.ids:
        return LoadedPredictions(predictions, len(ids), len(ids))
    row = {sample: item for item, sample in enumerate(truth.ids)}
    target = np.fromiter((row.get(sample, -1) for sample in ids), np.int64, len(ids))
    known = np.flatnonzero(target >= 0)
    rows, times = np.unique(target[known], return_counts=True)
    if (times > 1).any():
        raise StoreError(
            f"{where}: two predictions for sample {truth.ids[rows[times > 1][0]]!r}; keep one"
        )
    source = np.full(len(truth), len(ids))
    source[target[known]] = known
    unknown = np.flatnonzero(target < 0)
    first = ids[unknown[0]] if len(unknown) else None
    return LoadedPredictions(predictions.take(source), len(ids), len(known), first)


def masks_to_columns(
    truth: GroundTruth,
    owner: Int64Array,
    masks: Masks,
    *,
    answered: BoolArray,
    options: ReadOptions,
    no_target: BoolArray | None = None,
    score: Float64Array | None = None,
    logits: Int64Array | None = None,
) -> PredictionColumns:
    """Predictions that consist of masks. owner: int64 [masks], sample of each, ascending; answered, no_target: bool
    [samples], which have a prediction, and which state that there is no target (None: no sample).
    """
    count = len(owner)
    samples = len(truth)
    shown = MaskColumn(masks, np.ones(count, bool))
    absent = no_masks(count)
    visible = options.mask_type == "visible"
    return PredictionColumns(
        state=np.where(answered, PREDICTED, MISSING).astype(np.int8),
        reasons={},
        offsets=counts_to_offsets(np.bincount(owner, minlength=samples)),
        visible=shown if visible else absent,
        amodal=absent if visible else shown,
        score=np.ones(count) if score is None else score,
        names=encode_strings([None] * count),
        mask_type=np.full(samples, UNSTATED, np.int8),
        no_target=np.zeros(samples, bool) if no_target is None else no_target,
        forced=answered & options.teacher_forced,
        logits=logits,
    )

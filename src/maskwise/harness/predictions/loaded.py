"""What a reader hands back, and the columns of predictions that are masks and nothing else."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import StoreError
from maskwise.masks import Masks
from maskwise.protocols.columns import encode_strings
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.prediction_columns import MISSING, PREDICTED, UNSTATED, PredictionColumns
from maskwise.protocols.ragged import counts_to_offsets
from maskwise.store import MaskColumn


@dataclass(frozen=True)
class ReadOptions:
    """What the name of a file cannot tell. mask_type: of masks that do not say; zero_inside: logits of 0 are inside
    (GSVA), not outside; min_score: COCO results below it are dropped; forced: replies were made with the true answer in
    the prompt.
    """

    mask_type: Literal["visible", "amodal"] = "visible"
    zero_inside: bool = False
    min_score: float = 0.0
    forced: bool = False


@dataclass(frozen=True)
class LoadedPredictions:
    """Columns in the order of the ground truth; how many predictions were read, and how many of them had a sample."""

    replies: PredictionColumns
    read: int
    matched: int
    first_unknown: str | None = None


def align(truth: GroundTruth, ids: list[str], replies: PredictionColumns, where: str) -> LoadedPredictions:
    """Put replies (given in any order, with their samples' ids) in the order of the truth."""
    if ids == truth.ids:
        return LoadedPredictions(replies, len(ids), len(ids))
    row = {sample: item for item, sample in enumerate(truth.ids)}
    target = np.fromiter((row.get(sample, -1) for sample in ids), np.int64, len(ids))
    known = np.flatnonzero(target >= 0)
    rows, times = np.unique(target[known], return_counts=True)
    if (times > 1).any():
        raise StoreError(f"{where}: two predictions for sample {truth.ids[rows[times > 1][0]]!r}; keep one")
    source = np.full(len(truth), len(ids))
    source[target[known]] = known
    unknown = np.flatnonzero(target < 0)
    first = ids[unknown[0]] if len(unknown) else None
    return LoadedPredictions(replies.take(source), len(ids), len(known), first)


def masks_to_replies(
    truth: GroundTruth,
    owner: Int64Array,
    masks: Masks,
    *,
    answered: BoolArray,
    settings: ReadOptions,
    score: Float64Array | None = None,
    logits: Int64Array | None = None,
) -> PredictionColumns:
    """Predictions that are masks. owner: int64 [masks], the sample of each, rising; answered: bool [samples]."""
    count, samples = len(owner), len(truth)
    shown = MaskColumn(masks, np.ones(count, bool))
    absent = no_masks(count)
    visible = settings.mask_type == "visible"
    return PredictionColumns(
        state=np.where(answered, PREDICTED, MISSING).astype(np.int8),
        reasons={},
        offsets=counts_to_offsets(np.bincount(owner, minlength=samples)),
        visible=shown if visible else absent,
        amodal=absent if visible else shown,
        score=np.ones(count) if score is None else score,
        names=encode_strings([None] * count),
        mask_type=np.full(samples, UNSTATED, np.int8),
        no_target=np.zeros(samples, bool),
        forced=answered & settings.forced,
        logits=logits,
    )


def no_masks(count: int) -> MaskColumn:
    """A column of which no mask is known."""
    ends = np.zeros(count, np.int64)
    return MaskColumn(
        Masks(np.zeros(0, np.uint8), ends, ends, np.zeros((count, 2), np.int32)), np.zeros(count, bool)
    )

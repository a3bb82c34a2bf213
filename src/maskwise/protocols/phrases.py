"""One mask per phrase: the union of the regions a phrase refers to."""

from dataclasses import replace

import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.masks import Masks
from maskwise.protocols.columns import Phrases
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.ragged import counts_to_offsets
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.store import Codes, MaskColumn


def merge_phrases(inputs: ScoringInput) -> ScoringInput:
    """The input with one target per phrase and one predicted region per phrase: the union of the regions it refers to.

    A region that no phrase refers to stays by itself, after the phrases of its sample. Where no phrase refers to
    several regions nothing changes. A predicted union is that of the known masks; a target union needs all of them.
    """
    ground_truth = inputs.ground_truth
    predictions = inputs.predictions
    if not _joins(ground_truth.phrases) and not _joins(predictions.phrases):
        return inputs
    if ground_truth.phrases is not None:
        ground_truth = _merge_targets(ground_truth, ground_truth.phrases)
    if predictions.phrases is not None:
        predictions = _merge_predictions(predictions, predictions.phrases)
    return ScoringInput(ground_truth, predictions, threads=inputs.threads)


def _joins(phrases: Phrases | None) -> bool:
    return phrases is not None and bool((np.diff(phrases.offsets) > 1).any())


def _merge_targets(ground_truth: GroundTruth, phrases: Phrases) -> GroundTruth:
    groups = _group(phrases, ground_truth.sample)
    first = groups.members[groups.offsets[:-1]]
    return replace(
        ground_truth,
        offsets=counts_to_offsets(
            np.bincount(groups.sample, minlength=len(ground_truth))
        ),
        visible=_merge(ground_truth.visible, groups),
        amodal=_merge(ground_truth.amodal, groups),
        overlap=_merge(ground_truth.overlap, groups, partial=True),
        names=Codes(ground_truth.names.codes[first], ground_truth.names.names),
        part=ground_truth.part[first],
        phrases=None,
    )


def _merge_predictions(
    predictions: PredictionColumns, phrases: Phrases
) -> PredictionColumns:
    groups = _group(phrases, predictions.sample)
    first = groups.members[groups.offsets[:-1]]
    return replace(
        predictions,
        offsets=counts_to_offsets(
            np.bincount(groups.sample, minlength=len(predictions))
        ),
        visible=_merge(predictions.visible, groups, partial=True),
        amodal=_merge(predictions.amodal, groups, partial=True),
        score=np.maximum.reduceat(
            predictions.score[groups.members], groups.offsets[:-1]
        ),
        names=Codes(predictions.names.codes[first], predictions.names.names),
        phrases=None,
        logits=None,
        measured=None,
    )


def _group(phrases: Phrases, sample: Int64Array) -> Phrases:
    """The phrases that refer to regions, and every other region as a group of its own; sorted by sample."""
    lengths = np.diff(phrases.offsets)
    alone = np.ones(len(sample), bool)
    alone[phrases.members] = False
    single = np.flatnonzero(alone)
    owner = np.concatenate([phrases.sample[lengths > 0], sample[single]])
    counts = np.concatenate([lengths[lengths > 0], np.ones(len(single), np.int64)])
    members = np.concatenate([phrases.members, single])
    order = np.argsort(owner, kind="stable")
    starts = (np.cumsum(counts) - counts)[order]
    offsets = counts_to_offsets(counts[order])
    places = np.repeat(starts - offsets[:-1], counts[order]) + np.arange(len(members))
    return Phrases(owner[order], offsets, members[places])


def _merge(column: MaskColumn, groups: Phrases, *, partial: bool = False) -> MaskColumn:
    """The union of each group's masks; known where all of them are (`partial`: where any is)."""
    present = column.present[groups.members]
    count = len(groups.sample)
    owner = np.repeat(np.arange(count), np.diff(groups.offsets))
    having = np.bincount(owner[present], minlength=count)
    known: BoolArray = having > 0 if partial else having == np.diff(groups.offsets)
    rows = groups.members[present & known[owner]]
    size = np.zeros((count, 2), np.int32)
    size[owner[present]] = column.masks.size[groups.members[present]]
    size[~known] = 0
    masks: Masks = column.masks[rows].merge(
        counts_to_offsets(np.where(known, having, 0)), size
    )
    return MaskColumn(masks, known)

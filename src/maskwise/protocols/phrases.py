"""One phrase, one mask: the regions a phrase speaks of, taken together."""

from dataclasses import replace

import numpy as np

from maskwise.masks import Masks
from maskwise.protocols.evaluation import Evaluation
from maskwise.protocols.metrics import Flags, Int64s
from maskwise.protocols.tables import Phrases, Replies, Truth, offsets_of
from maskwise.store import Codes, MaskColumn


def unite_phrases(evaluation: Evaluation) -> Evaluation:
    """The evaluation with one target a phrase and one predicted region a phrase: the union of what it speaks of.

    A region no phrase speaks of stays by itself, after the phrases of its sample. Where no phrase speaks of several
    regions nothing changes.
    """
    truth, replies = evaluation.truth, evaluation.replies
    if not _joins(truth.phrases) and not _joins(replies.phrases):
        return evaluation
    if truth.phrases is not None:
        truth = _unite_targets(truth, truth.phrases)
    if replies.phrases is not None:
        replies = _unite_predictions(replies, replies.phrases)
    return Evaluation(truth, replies, threads=evaluation.threads)


def _joins(phrases: Phrases | None) -> bool:
    return phrases is not None and bool((np.diff(phrases.offsets) > 1).any())


def _unite_targets(truth: Truth, phrases: Phrases) -> Truth:
    groups = _group(phrases, truth.sample)
    first = groups.members[groups.offsets[:-1]]
    return replace(
        truth,
        offsets=offsets_of(np.bincount(groups.sample, minlength=len(truth))),
        visible=_unite(truth.visible, groups),
        amodal=_unite(truth.amodal, groups),
        overlap=_unite(truth.overlap, groups, partial=True),
        names=Codes(truth.names.codes[first], truth.names.names),
        part=truth.part[first],
        phrases=None,
    )


def _unite_predictions(replies: Replies, phrases: Phrases) -> Replies:
    groups = _group(phrases, replies.sample)
    first = groups.members[groups.offsets[:-1]]
    return replace(
        replies,
        offsets=offsets_of(np.bincount(groups.sample, minlength=len(replies))),
        visible=_unite(replies.visible, groups),
        amodal=_unite(replies.amodal, groups),
        score=np.maximum.reduceat(replies.score[groups.members], groups.offsets[:-1]),
        names=Codes(replies.names.codes[first], replies.names.names),
        phrases=None,
        logits=None,
        measured=None,
    )


def _group(phrases: Phrases, sample: Int64s) -> Phrases:
    """The phrases that speak of anything, and every region nobody speaks of as a group of its own; sorted by sample."""
    lengths = np.diff(phrases.offsets)
    alone = np.ones(len(sample), bool)
    alone[phrases.members] = False
    single = np.flatnonzero(alone)
    owner = np.concatenate([phrases.sample[lengths > 0], sample[single]])
    counts = np.concatenate([lengths[lengths > 0], np.ones(len(single), np.int64)])
    members = np.concatenate([phrases.members, single])
    order = np.argsort(owner, kind="stable")
    starts = (np.cumsum(counts) - counts)[order]
    offsets = offsets_of(counts[order])
    places = np.repeat(starts - offsets[:-1], counts[order]) + np.arange(len(members))
    return Phrases(owner[order], offsets, members[places])


def _unite(column: MaskColumn, groups: Phrases, *, partial: bool = False) -> MaskColumn:
    """The union of each group's masks; known where all of them are (`partial`: where any is)."""
    present = column.present[groups.members]
    count = len(groups.sample)
    owner = np.repeat(np.arange(count), np.diff(groups.offsets))
    having = np.bincount(owner[present], minlength=count)
    known: Flags = having > 0 if partial else having == np.diff(groups.offsets)
    rows = groups.members[present & known[owner]]
    size = np.zeros((count, 2), np.int32)
    size[owner] = column.masks.size[groups.members]
    size[~known] = 0
    masks: Masks = column.masks[rows].merge(offsets_of(np.where(known, having, 0)), size)
    return MaskColumn(masks, known)

"""Building blocks of the columns: offsets, mask columns, encoded strings and the phrases of answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Int32Array, Int64Array
from maskwise.masks import Mask, Masks
from maskwise.protocols.ragged import counts_to_offsets, flatten
from maskwise.schema import Answer
from maskwise.store import Codes, MaskColumn


@dataclass(frozen=True, slots=True)
class Phrases:
    """Which masks each phrase of the answers speaks of.

    sample: int64 [phrases], rising; offsets: int64 [phrases + 1]; members: int64, positions among all regions;
    words: the words of each phrase, where they were kept.
    """

    sample: Int64Array
    offsets: Int64Array
    members: Int64Array
    words: Codes | None = None


def mask_column(masks: Sequence[Mask | None]) -> MaskColumn:
    """Masks of which some are not known."""
    counts = [mask.counts if mask else "" for mask in masks]
    sizes = np.array(
        [mask.size if mask else (0, 0) for mask in masks], np.int64
    ).reshape(-1, 2)
    return MaskColumn(
        Masks.from_strings(counts, sizes),
        np.array([mask is not None for mask in masks], bool),
    )


def encode_strings(texts: Sequence[str | None]) -> Codes:
    """Text as numbers, names in order of first appearance."""
    names = tuple(dict.fromkeys(texts))
    code = {name: item for item, name in enumerate(names)}
    return Codes(np.array([code[text] for text in texts], np.int32), names)


def no_masks(count: int) -> MaskColumn:
    """A column in which no mask is known."""
    ends = np.zeros(count, np.int64)
    return MaskColumn(
        Masks(np.zeros(0, np.uint8), ends, ends, np.zeros((count, 2), np.int32)),
        np.zeros(count, bool),
    )


def take_masks(
    column: MaskColumn, rows: Int32Array | BoolArray | Int64Array
) -> MaskColumn:
    return MaskColumn(column.masks[rows], column.present[rows])


def phrase_columns(answers: Sequence[tuple[Answer | None, int]]) -> Phrases | None:
    """The phrases of answers, each given with the number of its sample's regions; None where there are none."""
    starts = counts_to_offsets([count for _, count in answers])
    rows = [
        (
            sample,
            [first + region for region in phrase.regions],
            answer.text[phrase.start : phrase.stop],
        )
        for sample, ((answer, _), first) in enumerate(zip(answers, starts.tolist()))
        if answer is not None
        for phrase in answer.phrases
    ]
    if not rows:
        return None
    return Phrases(
        np.array([sample for sample, _, _ in rows], np.int64),
        counts_to_offsets([len(members) for _, members, _ in rows]),
        np.array([member for _, members, _ in rows for member in members], np.int64),
        encode_strings([words for _, _, words in rows]),
    )


def take_phrases(
    phrases: Phrases, place: Int64Array, regions: Int64Array, *, count: int
) -> Phrases:
    """The phrases of the samples kept, in their new order. place: int64, the new position of each sample, `count` where
    it is not kept; regions: int64, the regions kept, in their new order.
    """
    position = np.zeros(
        int(max(phrases.members.max(initial=-1), regions.max(initial=-1))) + 1, np.int64
    )
    position[regions] = np.arange(len(regions))
    stay = np.flatnonzero(place[phrases.sample] < count)
    order = stay[np.argsort(place[phrases.sample[stay]], kind="stable")]
    members = flatten(phrases.offsets, order)
    words = phrases.words
    return Phrases(
        place[phrases.sample[order]],
        counts_to_offsets(np.diff(phrases.offsets)[order]),
        position[phrases.members[members]],
        None if words is None else Codes(words.codes[order], words.names),
    )

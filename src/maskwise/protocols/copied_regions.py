"""Predicted regions that repeat the mask of an earlier region of the same sample."""

from collections import Counter

import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.masks import Masks
from maskwise.protocols.ground_truth import BOTH
from maskwise.protocols.mask_selection import SelectedMasks
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.scoring_input import ScoringInput


def find_copies(
    inputs: ScoringInput, overlaps: Overlaps, counted: BoolArray
) -> BoolArray:
    """Whether each counted region is a copy, bool [regions]: as many regions of its sample with the same mask come
    before it as there are equal targets in the sample (usually one).

    Where both types are requested, both masks have to be the same; an absent mask is not the same as one with pixels:
    for the target (A, A) the regions (A, A) and (-, A) score 0.5 in any order.
    """
    is_copy = np.zeros(len(counted), bool)
    # Equal masks have equal areas: only those need to be compared.
    rows = _same_area(overlaps.pred, counted)
    if not len(rows):
        return is_copy
    keys = _keys(inputs, "pred", overlaps, rows)
    repeated_samples = set()
    for (sample, *_), times in Counter(keys).items():
        if times > 1:
            repeated_samples.add(sample)
    if not repeated_samples:
        return is_copy
    samples = np.array(sorted(repeated_samples), np.int64)
    allowed = _equal_targets(inputs, overlaps, samples)
    times_seen: Counter[tuple[int, bytes, bytes]] = Counter()
    for row, key in zip(rows.tolist(), keys):
        sample = key[0]
        is_copy[row] = times_seen[key] >= allowed.get(sample, 1)
        times_seen[key] += 1
    return is_copy


def _same_area(masks: SelectedMasks, counted: BoolArray) -> Int64Array:
    """The counted regions that share their area with another one of their sample, ascending."""
    rows = np.flatnonzero(counted)
    order = rows[np.lexsort((masks.area[rows], masks.sample[rows]))]
    area = masks.area[order]
    sample = masks.sample[order]
    equals_next = (area[1:] == area[:-1]) & (sample[1:] == sample[:-1])
    is_shared = np.zeros(len(order), bool)
    is_shared[1:] |= equals_next
    is_shared[:-1] |= equals_next
    return np.sort(order[is_shared])


def _keys(
    inputs: ScoringInput, side: str, overlaps: Overlaps, rows: Int64Array
) -> list[tuple[int, bytes, bytes]]:
    """Sample and run lengths of each region; those of the visible and of the amodal mask where both are requested."""
    masks: SelectedMasks = getattr(overlaps, side)
    sample = masks.sample[rows]
    strings = _canonical_strings(masks.masks[rows])
    amodal_strings = [b""] * len(rows)
    wants_both = inputs.ground_truth.requested_type[sample] == BOTH
    if wants_both.any():
        # The selected mask of a region without a visible one is its amodal one.
        _replace_strings(
            strings, getattr(inputs.overlaps("visible"), side), rows, wants_both
        )
        _replace_strings(
            amodal_strings, getattr(inputs.overlaps("amodal"), side), rows, wants_both
        )
    return list(zip(sample.tolist(), strings, amodal_strings))


def _replace_strings(
    strings: list[bytes], masks: SelectedMasks, rows: Int64Array, replaced: BoolArray
) -> None:
    """Put the run lengths of masks in the places to be replaced, nothing where a mask has no pixels."""
    for place in np.flatnonzero(replaced).tolist():
        strings[place] = b""
    places = np.flatnonzero(replaced & (masks.area[rows] > 0))
    for place, text in zip(
        places.tolist(), _canonical_strings(masks.masks[rows[places]])
    ):
        strings[place] = text


def _canonical_strings(masks: Masks) -> list[bytes]:
    """The run lengths of masks; equal masks may have been written in different ways."""
    return (masks & masks).to_strings()


def _equal_targets(
    inputs: ScoringInput, overlaps: Overlaps, samples: Int64Array
) -> dict[int, int]:
    """The largest number of equal targets in each of the samples."""
    is_asked = np.zeros(len(inputs), bool)
    is_asked[samples] = True
    target = overlaps.target
    wants_both = inputs.ground_truth.requested_type[target.sample] == BOTH
    # Where both types are requested, a target may have an amodal mask alone.
    rows = np.flatnonzero(is_asked[target.sample] & (target.known | wants_both))
    times_of = Counter(_keys(inputs, "target", overlaps, rows))
    most: dict[int, int] = {}
    for (sample, *_), times in times_of.items():
        most[sample] = max(times, most.get(sample, 0))
    return most

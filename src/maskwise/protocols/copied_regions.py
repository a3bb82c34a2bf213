"""Predicted regions that repeat the mask of an earlier region of the same sample."""

from collections import Counter

import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.protocols.ground_truth import BOTH
from maskwise.protocols.mask_selection import SelectedMasks
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.scoring_input import ScoringInput


def find_copies(
    inputs: ScoringInput, overlaps: Overlaps, counted: BoolArray
) -> BoolArray:
    """Whether each counted region is a copy, bool [regions]: as many regions of its sample with the same mask come
    before it as there are equal targets in the sample (usually one).

    Where both types are requested, both masks have to be the same.
    """
    found = np.zeros(len(counted), bool)
    rows = _same_area(overlaps.pred, counted)
    if not len(rows):
        return found
    keys = _keys(inputs, "pred", overlaps, rows)
    repeated = {sample for (sample, *_), times in Counter(keys).items() if times > 1}
    if not repeated:
        return found
    allowed = _equal_targets(inputs, overlaps, np.array(sorted(repeated), np.int64))
    seen: Counter[tuple[int, bytes, bytes]] = Counter()
    for row, key in zip(rows.tolist(), keys):
        found[row] = seen[key] >= allowed.get(key[0], 1)
        seen[key] += 1
    return found


def _same_area(masks: SelectedMasks, counted: BoolArray) -> Int64Array:
    """The counted regions that share their area with another one of their sample, ascending."""
    rows = np.flatnonzero(counted)
    order = rows[np.lexsort((masks.area[rows], masks.sample[rows]))]
    area = masks.area[order]
    sample = masks.sample[order]
    same = (area[1:] == area[:-1]) & (sample[1:] == sample[:-1])
    either = np.zeros(len(order), bool)
    either[1:] |= same
    either[:-1] |= same
    return np.sort(order[either])


def _keys(
    inputs: ScoringInput, side: str, overlaps: Overlaps, rows: Int64Array
) -> list[tuple[int, bytes, bytes]]:
    """Sample and run lengths of each region; those of the amodal mask where both types are requested."""
    masks: SelectedMasks = getattr(overlaps, side)
    sample = masks.sample[rows]
    batch = masks.masks[rows]
    strings = (batch & batch).to_strings()  # run lengths in canonical form
    more = [b""] * len(rows)
    both = np.flatnonzero(inputs.ground_truth.requested_type[sample] == BOTH)
    if len(both):
        amodal: SelectedMasks = getattr(inputs.overlaps("amodal"), side)
        some = both[amodal.area[rows[both]] > 0]
        batch = amodal.masks[rows[some]]
        for place, text in zip(some.tolist(), (batch & batch).to_strings()):
            more[place] = text
    return list(zip(sample.tolist(), strings, more))


def _equal_targets(
    inputs: ScoringInput, overlaps: Overlaps, samples: Int64Array
) -> dict[int, int]:
    """The largest number of equal targets in each of the samples."""
    asked = np.zeros(len(inputs), bool)
    asked[samples] = True
    rows = np.flatnonzero(asked[overlaps.target.sample] & overlaps.target.known)
    most: dict[int, int] = {}
    for (sample, *_), times in Counter(_keys(inputs, "target", overlaps, rows)).items():
        most[sample] = max(times, most.get(sample, 0))
    return most

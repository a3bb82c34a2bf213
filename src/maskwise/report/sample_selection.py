"""Selection of the samples of a gallery: worst, best, typical, and those without a score."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from maskwise.runs.schema import SliceGroup
from maskwise.runs.tables import ScoreRows

Int64s = NDArray[np.int64]
SelectedSample = tuple[str, int]
"""Why a sample is shown, and its row."""


def select_samples(
    rows: ScoreRows, clusters: Int64s, count: int
) -> list[SelectedSample]:
    """Up to `count` samples of each kind, each sample once, kinds in turn: worst, best, typical, not scored.

    worst, best: by the sample's gIoU, ties in a random but repeatable order. typical: at random from the middle half.
    not scored: failed, missing and excluded ones, every reason in turn. clusters: int64 [n], the image of each sample.
    """
    # A fixed seed: the same run gives the same gallery.
    order = np.random.default_rng(0).permutation(len(rows.value))
    is_counted = rows.scored & (rows.weight > 0)
    counted = order[is_counted[order]]
    ranked = counted[np.argsort(rows.value[counted], kind="stable")]
    quarter = len(ranked) // 4
    middle_half = ranked[quarter : len(ranked) - quarter]
    not_scored = order[~rows.scored[order]]
    turns = _turns(rows.reason.codes[not_scored])
    wanted = {
        "worst": ranked,
        "best": ranked[::-1],
        "typical": order[np.isin(order, middle_half)],
        "not scored": not_scored[np.argsort(turns, kind="stable")],
    }
    return list(_in_turn(wanted, clusters, count))


def select_disagreements(
    a: ScoreRows, b: ScoreRows, clusters: Int64s, count: int
) -> list[SelectedSample]:
    """Up to `count` samples on each side where two runs differ most in gIoU; one without a value counts as 0."""
    order = np.random.default_rng(0).permutation(len(a.value))
    is_counted = (a.weight > 0) | (b.weight > 0)
    change = (np.nan_to_num(b.value) - np.nan_to_num(a.value)) * is_counted
    ascending = order[np.argsort(change[order], kind="stable")]
    descending = ascending[::-1]
    wanted = {
        "B is better": descending[change[descending] > 0],
        "A is better": ascending[change[ascending] < 0],
    }
    return list(_in_turn(wanted, clusters, count))


def _turns(codes: NDArray[np.int32]) -> Int64s:
    """How many equal codes come before each one."""
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    first = np.searchsorted(ranked, ranked)
    turns = np.empty(len(codes), np.int64)
    turns[order] = np.arange(len(codes)) - first
    return turns


def _in_turn(
    wanted: Mapping[str, Int64s], clusters: Int64s, count: int
) -> Iterator[SelectedSample]:
    """One sample of each kind in turn, so that a gallery that does not fit still has all kinds."""
    taken: set[int] = set()
    queues = {
        kind: _other_images_first(rows, clusters, count)
        for kind, rows in wanted.items()
    }
    for _ in range(count):
        for kind, queue in queues.items():
            row = next((row for row in queue if row not in taken), None)
            if row is not None:
                taken.add(row)
                yield kind, row


def _other_images_first(rows: Int64s, clusters: Int64s, count: int) -> Iterator[int]:
    """The first rows, enough to choose `count` from: first one per image, then the others."""
    # At most a quarter of the rows, or the last of them would not be extreme any more.
    considered = rows[: max(count, min(8 * count, len(rows) // 4))]
    _, first = np.unique(clusters[considered], return_index=True)
    is_first = np.zeros(len(considered), np.bool_)
    is_first[first] = True
    yield from considered[is_first].tolist()
    yield from considered[~is_first].tolist()


def largest(groups: Sequence[SliceGroup], count: int) -> list[SliceGroup]:
    """The groups with the most samples, in the order given."""
    positions = range(len(groups))
    by_size = sorted(positions, key=lambda position: -groups[position].samples)
    return [groups[position] for position in sorted(by_size[:count])]

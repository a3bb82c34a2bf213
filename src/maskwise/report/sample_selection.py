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
    order = np.random.default_rng(0).permutation(len(rows.value))
    counted = order[(rows.scored & (rows.weight > 0))[order]]
    ranked = counted[np.argsort(rows.value[counted], kind="stable")]
    quarter = len(ranked) // 4
    rest = order[~rows.scored[order]]
    wanted = {
        "worst": ranked,
        "best": ranked[::-1],
        "typical": order[np.isin(order, ranked[quarter : len(ranked) - quarter])],
        "not scored": rest[np.argsort(_turns(rows.reason.codes[rest]), kind="stable")],
    }
    return list(_in_turn(wanted, clusters, count))


def select_disagreements(
    a: ScoreRows, b: ScoreRows, clusters: Int64s, count: int
) -> list[SelectedSample]:
    """Up to `count` samples on each side where two runs differ most in gIoU; one without a value counts as 0."""
    order = np.random.default_rng(0).permutation(len(a.value))
    change = (np.nan_to_num(b.value) - np.nan_to_num(a.value)) * (
        (a.weight > 0) | (b.weight > 0)
    )
    ranked = order[np.argsort(change[order], kind="stable")]
    wanted = {
        "B is better": ranked[::-1][change[ranked[::-1]] > 0],
        "A is better": ranked[change[ranked] < 0],
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
    near = rows[: max(count, min(8 * count, len(rows) // 4))]
    _, first = np.unique(clusters[near], return_index=True)
    own = np.zeros(len(near), np.bool_)
    own[first] = True
    yield from near[own].tolist()
    yield from near[~own].tolist()


def largest(groups: Sequence[SliceGroup], count: int) -> list[SliceGroup]:
    """The groups with the most samples, in the order given."""
    ranked = sorted(range(len(groups)), key=lambda item: -groups[item].samples)[:count]
    return [groups[item] for item in sorted(ranked)]

"""One-to-one matching of predictions and targets, question by question, by the best total."""

import math
from collections.abc import Iterator

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.mask_pairs import MaskPairs, unpaired

SMALL = 32
"""Tables with more rows than this go to scipy."""


def match(index: MaskPairs, gain: Float64Array) -> Int64Array:
    """The pairs of the matching with the largest total gain in each question: int64 positions in `index`, rising.

    gain: float64 [pairs], not negative. Each question gets min(predictions, targets) pairs, those without gain too.
    Most questions are settled by looking at the best partner of each prediction or target; assignment is solved only
    where two of them compete for one partner.
    """
    chosen, settled = _settle_by_best(index, gain)
    _assign(index, gain, np.flatnonzero(~settled), chosen)
    chosen[_pair_leftovers(index, chosen)] = True
    return np.flatnonzero(chosen)


def _assign(index: MaskPairs, gain: Float64Array, samples: Int64Array, chosen: BoolArray) -> None:
    """Solve the assignment of each of the samples; sets the pairs chosen, as far as they gain."""
    for sample in samples.tolist():
        first, width = int(index.first[sample]), int(index.targets[sample])
        table = gain[first : index.first[sample + 1]].reshape(-1, width).tolist()
        for rows, columns in _knots(table):
            part = [[table[row][column] for column in columns] for row in rows]
            for row, column in _solve(part):
                chosen[first + rows[row] * width + columns[column]] = True


def _knots(table: list[list[float]]) -> Iterator[tuple[list[int], list[int]]]:
    """Rows and columns that gain from each other, directly or through others: what has to be solved together."""
    free = set(range(len(table)))
    while free:
        rows, columns, open_ = set[int](), set[int](), {free.pop()}
        while open_:
            rows |= open_
            found = {
                column for row in open_ for column, value in enumerate(table[row]) if value > 0
            } - columns
            columns |= found
            open_ = {row for row in free if any(table[row][column] > 0 for column in found)}
            free -= open_
        if columns:
            yield sorted(rows), sorted(columns)


def _solve(table: list[list[float]]) -> list[tuple[int, int]]:
    """The pairs with the largest total. Loading scipy takes longer than solving hundreds of small tables here."""
    rows, columns = len(table), len(table[0])
    if rows > columns:
        return [(row, column) for column, row in _solve([list(column) for column in zip(*table)])]
    if rows <= SMALL:
        return _augment(table)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    return list(zip(*(side.tolist() for side in linear_sum_assignment(np.array(table), maximize=True))))


def _augment(table: list[list[float]]) -> list[tuple[int, int]]:
    """The Hungarian method with potentials: give the rows their columns one by one, each along a cheapest path of
    exchanges. No more rows than columns.
    """
    rows, columns = len(table), len(table[0])
    row_price, column_price = [0.0] * rows, [0.0] * columns
    holder: list[int | None] = [None] * columns
    for start in range(rows):
        slack, before = [math.inf] * columns, [-1] * columns
        done, row, last = set[int](), start, -1
        while True:
            for column in range(columns):
                cost = -table[row][column] - row_price[row] - column_price[column]
                if column not in done and cost < slack[column]:
                    slack[column], before[column] = cost, last
            last = min((column for column in range(columns) if column not in done), key=slack.__getitem__)
            step = slack[last]
            row_price[start] += step
            for column in range(columns):
                if column in done:
                    column_price[column] -= step
                    row_price[holder[column]] += step  # type: ignore[index]
                else:
                    slack[column] -= step
            done.add(last)
            if holder[last] is None:
                break
            row = holder[last]  # type: ignore[assignment]
        while before[last] >= 0:
            holder[last] = holder[before[last]]
            last = before[last]
        holder[last] = start
    return [(row, column) for column, row in enumerate(holder) if row is not None]


def _settle_by_best(index: MaskPairs, gain: Float64Array) -> tuple[BoolArray, BoolArray]:
    """Give every prediction its best target where no two want the same one (then no matching has a larger total), or
    every target its best prediction. Returns the pairs chosen and whether each question is settled.
    """
    by_pred = _best(index.pred, gain, index)
    by_target = _best(index.target, gain, index)
    clash_pred = _clashes(index, by_pred, index.target)
    clash_target = _clashes(index, by_target, index.pred)
    chosen = np.zeros(len(gain), bool)
    from_pred = by_pred[~clash_pred[index.sample[by_pred]]]
    from_target = by_target[(clash_pred & ~clash_target)[index.sample[by_target]]]
    chosen[from_pred] = True
    chosen[from_target] = True
    return chosen, ~(clash_pred & clash_target)


def _best(side: Int64Array, gain: Float64Array, index: MaskPairs) -> Int64Array:
    """For each mask of one side that gains from anyone, its best pair, the first of equals."""
    useful = np.flatnonzero(gain > 0)
    if not len(useful):
        return useful
    masks = side[useful]
    if side is index.target:
        order = np.argsort(masks, kind="stable")
        useful, masks = useful[order], masks[order]
    starts = np.flatnonzero(np.concatenate([[True], masks[1:] != masks[:-1]]))
    top = np.maximum.reduceat(gain[useful], starts)
    lengths = np.diff(np.append(starts, len(masks)))
    hits = np.flatnonzero(gain[useful] == np.repeat(top, lengths))
    owner = masks[hits]
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    return np.sort(useful[hits[first]])


def _clashes(index: MaskPairs, best: Int64Array, partner: Int64Array) -> BoolArray:
    """Whether two of a question's best pairs share their partner, bool [samples]."""
    taken = np.bincount(partner[best], minlength=1)
    clash = np.zeros(len(index.preds), bool)
    clash[index.sample[best[taken[partner[best]] > 1]]] = True
    return clash


def _pair_leftovers(index: MaskPairs, chosen: BoolArray) -> Int64Array:
    """Pair the masks still free in each question in their order, as far as they go."""
    pairs = np.flatnonzero(chosen)
    free_pred = unpaired(int(index.pred_offsets[-1]), index.pred[pairs])
    free_target = unpaired(int(index.target_offsets[-1]), index.target[pairs])
    sample_pred = np.repeat(np.arange(len(index.preds)), index.preds)[free_pred]
    sample_target = np.repeat(np.arange(len(index.targets)), index.targets)[free_target]
    begin = np.searchsorted(sample_target, np.arange(len(index.targets) + 1))
    position = begin[sample_pred] + _ranks(sample_pred)
    usable = position < begin[sample_pred + 1]
    return index.find(sample_pred[usable], free_pred[usable], free_target[position[usable]])


def _ranks(groups: Int64Array) -> Int64Array:
    """Position of each item within its group; groups are sorted."""
    if not len(groups):
        return groups
    starts = np.concatenate([[True], groups[1:] != groups[:-1]])
    first = np.flatnonzero(starts)
    return np.arange(len(groups)) - np.repeat(first, np.diff(np.append(first, len(groups))))

"""One-to-one matching of predicted regions and targets, sample by sample, with the largest total gain."""

import math
from collections.abc import Iterator

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.mask_pairs import MaskPairs, pair_in_order, unpaired

SMALL = 32
"""Components with more rows than this are solved by scipy."""
MANY_PAIRS = 512
"""Samples with more pairs than this are split into components by scipy."""
DENSE_CELLS = 2**22
"""Components with more cells than this are solved as sparse matrices."""

Component = tuple[list[int], list[int], list[float]]
"""Predicted region, target and gain of each pair of a connected component."""


def match(pairs: MaskPairs, gain: Float64Array) -> Int64Array:
    """Positions in `pairs` of the matching with the largest total gain in each sample, ascending.

    gain: float64 [pairs], not negative; pairs without gain are not matched. Most samples are solved by looking at the
    best partner of each region. Where two regions share their best partner, an assignment problem is solved in each
    connected component of the pairs that gain. Ties: the same input gives the same matching; where several are
    optimal, earlier regions come first in most cases.
    """
    chosen, settled = _settle_by_best(pairs, gain)
    for sample in np.flatnonzero(~settled).tolist():
        first, last = np.searchsorted(
            pairs.pred, pairs.pred_offsets[sample : sample + 2]
        )
        part = first + np.flatnonzero(gain[first:last] > 0)
        columns = (pairs.pred[part], pairs.target[part], gain[part])
        matched = [
            pair for component in _components(*columns) for pair in _solve(component)
        ]
        found = np.array(matched, np.int64).reshape(-1, 2)
        chosen[pairs.find(found[:, 0], found[:, 1])] = True
    return np.flatnonzero(chosen)


def pair_remaining(
    pairs: MaskPairs,
    matched: tuple[Int64Array, Int64Array],
    *,
    empty: tuple[BoolArray, BoolArray],
) -> tuple[Int64Array, Int64Array]:
    """Pair what the matching left over in each sample, as far as it goes: empty masks with empty masks first, then in
    order.

    matched: regions and targets already paired; empty: bool [regions] and bool [targets], known masks without pixels.
    Returns all pairs, the matched ones included, sorted by predicted region.
    """
    pred, target = matched
    for only_empty in (True, False):
        free = [
            unpaired(len(part), taken) for part, taken in zip(empty, (pred, target))
        ]
        if only_empty:
            free = [rows[part[rows]] for rows, part in zip(free, empty)]
        starts = [
            np.searchsorted(rows, offsets)
            for rows, offsets in zip(free, (pairs.pred_offsets, pairs.target_offsets))
        ]
        _, more_pred, more_target = pair_in_order(*starts)
        pred = np.concatenate([pred, free[0][more_pred]])
        target = np.concatenate([target, free[1][more_target]])
    order = np.argsort(pred, kind="stable")
    return pred[order], target[order]


def _components(
    pred: Int64Array, target: Int64Array, gain: Float64Array
) -> Iterator[Component]:
    """The connected components of pairs that gain: no region is in two of them."""
    label = (
        _label_few(pred, target)
        if len(pred) <= MANY_PAIRS
        else _label_many(pred, target)
    )
    order = np.argsort(label, kind="stable")
    bounds = np.flatnonzero(np.diff(label[order])) + 1
    for rows in np.split(order, bounds):
        yield pred[rows].tolist(), target[rows].tolist(), gain[rows].tolist()


def _label_few(pred: Int64Array, target: Int64Array) -> Int64Array:
    """A number for each pair, equal within a component, by union-find."""
    parent: dict[tuple[str, int], tuple[str, int]] = {}

    def root(node: tuple[str, int]) -> tuple[str, int]:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for one, other in zip(pred.tolist(), target.tolist()):
        parent[root(("pred", one))] = root(("target", other))
    number: dict[tuple[str, int], int] = {}
    labels = [
        number.setdefault(root(("pred", one)), len(number)) for one in pred.tolist()
    ]
    return np.array(labels, np.int64)


def _label_many(pred: Int64Array, target: Int64Array) -> Int64Array:
    """As `_label_few`, by scipy: loading it takes longer than many small samples do."""
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    rows, row = np.unique(pred, return_inverse=True)
    columns, column = np.unique(target, return_inverse=True)
    count = len(rows) + len(columns)
    graph = coo_array(
        (np.ones(len(row), np.int8), (row, len(rows) + column)), shape=(count, count)
    )
    _, label = connected_components(graph.tocsr(), directed=False)
    found: Int64Array = label[row].astype(np.int64)
    return found


def _solve(component: Component) -> list[tuple[int, int]]:
    """The pairs (region, target) with the largest total gain."""
    pred, target, gain = component
    if len(pred) == 1:
        return [(pred[0], target[0])]
    rows = sorted(set(pred))
    columns = sorted(set(target))
    row = {region: item for item, region in enumerate(rows)}
    column = {region: item for item, region in enumerate(columns)}
    cells = [
        (row[one], column[other], value)
        for one, other, value in zip(pred, target, gain)
    ]
    if len(rows) * len(columns) > DENSE_CELLS:
        solved = _solve_sparse(cells, len(rows), len(columns))
    else:
        solved = _solve_dense(cells, len(rows), len(columns))
    listed = {(one, other) for one, other, _ in cells}
    return [
        (rows[one], columns[other]) for one, other in solved if (one, other) in listed
    ]


def _solve_dense(
    cells: list[tuple[int, int, float]], rows: int, columns: int
) -> list[tuple[int, int]]:
    if rows > columns:
        flipped = [(column, row, value) for row, column, value in cells]
        return [(row, column) for column, row in _solve_dense(flipped, columns, rows)]
    if rows <= SMALL:
        table = [[0.0] * columns for _ in range(rows)]
        for row, column, value in cells:
            table[row][column] = value
        return _augment(table)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    matrix = np.zeros((rows, columns))
    for row, column, value in cells:
        matrix[row, column] = value
    return list(
        zip(*(side.tolist() for side in linear_sum_assignment(matrix, maximize=True)))
    )


def _solve_sparse(
    cells: list[tuple[int, int, float]], rows: int, columns: int
) -> list[tuple[int, int]]:
    """Each row has a column of its own with no gain, so a full matching of the rows exists."""
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching  # noqa: PLC0415

    row, column, value = (np.array(part) for part in zip(*cells))
    own = np.arange(rows)
    # Every weight is 1 larger than its gain: zeros would count as absent cells.
    weight = np.concatenate([value + 1.0, np.ones(rows)])
    place = (np.concatenate([row, own]), np.concatenate([column, columns + own]))
    matrix = coo_array((weight, place), shape=(rows, columns + rows)).tocsr()
    found = min_weight_full_bipartite_matching(matrix, maximize=True)
    return [
        (one, other)
        for one, other in zip(*(side.tolist() for side in found))
        if other < columns
    ]


def _augment(table: list[list[float]]) -> list[tuple[int, int]]:
    """The Hungarian method with potentials: rows get their columns one by one, each along a cheapest path of
    exchanges. There are no more rows than columns.
    """
    rows = len(table)
    columns = len(table[0])
    row_price = [0.0] * rows
    column_price = [0.0] * columns
    holder: list[int | None] = [None] * columns
    for start in range(rows):
        slack = [math.inf] * columns
        before = [-1] * columns
        done = set[int]()
        row = start
        last = -1
        while True:
            for column in range(columns):
                cost = -table[row][column] - row_price[row] - column_price[column]
                if column not in done and cost < slack[column]:
                    slack[column] = cost
                    before[column] = last
            last = min(
                (column for column in range(columns) if column not in done),
                key=slack.__getitem__,
            )
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


def _settle_by_best(
    pairs: MaskPairs, gain: Float64Array
) -> tuple[BoolArray, BoolArray]:
    """Give every prediction its best target where no two share it (then no matching has a larger total), or every
    target its best prediction. Returns the chosen pairs and whether each sample is solved.
    """
    by_pred = _best(pairs.pred, gain)
    by_target = _best(pairs.target, gain)
    clash_pred = _clashes(pairs, by_pred, pairs.target)
    clash_target = _clashes(pairs, by_target, pairs.pred)
    chosen = np.zeros(len(gain), bool)
    from_pred = by_pred[~clash_pred[pairs.sample[by_pred]]]
    from_target = by_target[(clash_pred & ~clash_target)[pairs.sample[by_target]]]
    chosen[from_pred] = True
    chosen[from_target] = True
    return chosen, ~(clash_pred & clash_target)


def _best(side: Int64Array, gain: Float64Array) -> Int64Array:
    """For each region of one side with any gain, its best pair, the first of equals. Positions, ascending."""
    useful = np.flatnonzero(gain > 0)
    if not len(useful):
        return useful
    regions = side[useful]
    if (np.diff(regions) < 0).any():
        order = np.argsort(regions, kind="stable")
        useful = useful[order]
        regions = regions[order]
    starts = np.flatnonzero(np.concatenate([[True], regions[1:] != regions[:-1]]))
    top = np.maximum.reduceat(gain[useful], starts)
    lengths = np.diff(np.append(starts, len(regions)))
    hits = np.flatnonzero(gain[useful] == np.repeat(top, lengths))
    owner = regions[hits]
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    return np.sort(useful[hits[first]])


def _clashes(pairs: MaskPairs, best: Int64Array, partner: Int64Array) -> BoolArray:
    """Whether two of a sample's best pairs share their partner, bool [samples]."""
    taken = np.bincount(partner[best], minlength=1)
    clash = np.zeros(len(pairs.preds), bool)
    clash[pairs.sample[best[taken[partner[best]] > 1]]] = True
    return clash

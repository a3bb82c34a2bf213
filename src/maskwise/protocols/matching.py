"""One-to-one matching of predicted regions and targets, sample by sample, with the largest total gain."""

import math
from collections.abc import Iterator

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.mask_pairs import MaskPairs, pair_in_order, unpaired

SMALL = 32
"""Components with more rows than this are solved by scipy, whose import takes longer than
the smaller ones do."""
MANY_PAIRS = 512
"""Samples with more pairs than this are split into components by scipy."""
DENSE_CELLS = 2**22
"""Components with more cells than this (32 MB) are solved as sparse matrices."""

Component = tuple[list[int], list[int], list[float]]
"""Predicted region, target and gain of each pair of a connected component."""

Cells = dict[tuple[int, int], float]
"""Gain by row and column of a component's table."""


def match(pairs: MaskPairs, gain: Float64Array) -> Int64Array:
    """Positions in `pairs` of the matching with the largest total gain in each sample, ascending.

    gain: float64 [pairs], not negative; pairs without gain are not matched. Most samples are solved by looking at the
    best partner of each region. Where two regions share their best partner, an assignment problem is solved in each
    connected component of the pairs that gain. Ties: the same input gives the same matching; where several are
    optimal, earlier regions come first in most cases.
    """
    chosen, is_solved = _settle_by_best(pairs, gain)
    for sample in np.flatnonzero(~is_solved).tolist():
        sample_regions = pairs.pred_offsets[sample : sample + 2]
        first, last = np.searchsorted(pairs.pred, sample_regions)
        useful = first + np.flatnonzero(gain[first:last] > 0)
        pred = pairs.pred[useful]
        target = pairs.target[useful]
        for component in _components(pred, target, gain[useful]):
            matched = np.array(_solve(component), np.int64).reshape(-1, 2)
            chosen[pairs.find(matched[:, 0], matched[:, 1])] = True
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
    empty_pred, empty_target = empty
    for only_empty in (True, False):
        free_pred = unpaired(len(empty_pred), pred)
        free_target = unpaired(len(empty_target), target)
        if only_empty:
            free_pred = free_pred[empty_pred[free_pred]]
            free_target = free_target[empty_target[free_target]]
        pred_starts = np.searchsorted(free_pred, pairs.pred_offsets)
        target_starts = np.searchsorted(free_target, pairs.target_offsets)
        _, more_pred, more_target = pair_in_order(pred_starts, target_starts)
        pred = np.concatenate([pred, free_pred[more_pred]])
        target = np.concatenate([target, free_target[more_target]])
    order = np.argsort(pred, kind="stable")
    return pred[order], target[order]


def _components(
    pred: Int64Array, target: Int64Array, gain: Float64Array
) -> Iterator[Component]:
    """The connected components of pairs that gain: no region is in two of them."""
    label_pairs = _label_few if len(pred) <= MANY_PAIRS else _label_many
    label = label_pairs(pred, target)
    order = np.argsort(label, kind="stable")
    bounds = np.flatnonzero(np.diff(label[order])) + 1
    for rows in np.split(order, bounds):
        yield pred[rows].tolist(), target[rows].tolist(), gain[rows].tolist()


def _label_few(pred: Int64Array, target: Int64Array) -> Int64Array:
    """A number for each pair, equal within a component, by union-find."""
    parent: dict[tuple[str, int], tuple[str, int]] = {}

    def root(node: tuple[str, int]) -> tuple[str, int]:
        while parent.setdefault(node, node) != node:
            # Halve the path: later searches are shorter.
            grandparent = parent[parent[node]]
            parent[node] = grandparent
            node = grandparent
        return node

    for pred_region, target_region in zip(pred.tolist(), target.tolist()):
        pred_root = root(("pred", pred_region))
        parent[pred_root] = root(("target", target_region))
    number: dict[tuple[str, int], int] = {}
    labels = []
    for pred_region in pred.tolist():
        component_root = root(("pred", pred_region))
        labels.append(number.setdefault(component_root, len(number)))
    return np.array(labels, np.int64)


def _label_many(pred: Int64Array, target: Int64Array) -> Int64Array:
    """As `_label_few`, by scipy: loading it takes longer than many small samples do."""
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    pred_regions, pred_node = np.unique(pred, return_inverse=True)
    target_regions, target_index = np.unique(target, return_inverse=True)
    # The nodes of the graph: first the predicted regions, then the targets.
    target_node = len(pred_regions) + target_index
    node_count = len(pred_regions) + len(target_regions)
    ones = np.ones(len(pred_node), np.int8)
    graph = coo_array((ones, (pred_node, target_node)), shape=(node_count, node_count))
    _, node_label = connected_components(graph.tocsr(), directed=False)
    label: Int64Array = node_label[pred_node].astype(np.int64)
    return label


def _solve(component: Component) -> list[tuple[int, int]]:
    """The pairs (region, target) with the largest total gain."""
    pred, target, gain = component
    if len(pred) == 1:
        return [(pred[0], target[0])]
    rows = sorted(set(pred))
    columns = sorted(set(target))
    row_of = {region: row for row, region in enumerate(rows)}
    column_of = {region: column for column, region in enumerate(columns)}
    cells = {}
    for pred_region, target_region, value in zip(pred, target, gain):
        cells[row_of[pred_region], column_of[target_region]] = value
    if len(rows) * len(columns) > DENSE_CELLS:
        solution = _solve_sparse(cells, len(rows), len(columns))
    else:
        solution = _solve_dense(cells, len(rows), len(columns))
    # A solver may fill up with cells that are no pairs; they gain nothing.
    return [
        (rows[row], columns[column])
        for row, column in solution
        if (row, column) in cells
    ]


def _solve_dense(cells: Cells, rows: int, columns: int) -> list[tuple[int, int]]:
    """Row and column of the matched cells, and of cells without gain."""
    if rows > columns:
        transposed = {(column, row): value for (row, column), value in cells.items()}
        solution = _solve_dense(transposed, columns, rows)
        return [(row, column) for column, row in solution]
    if rows <= SMALL:
        table = [[0.0] * columns for _ in range(rows)]
        for (row, column), value in cells.items():
            table[row][column] = value
        return _assign_rows(table)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    matrix = np.zeros((rows, columns))
    for (row, column), value in cells.items():
        matrix[row, column] = value
    matched_rows, matched_columns = linear_sum_assignment(matrix, maximize=True)
    return list(zip(matched_rows.tolist(), matched_columns.tolist()))


def _solve_sparse(cells: Cells, rows: int, columns: int) -> list[tuple[int, int]]:
    """Row and column of the matched cells.

    Each row has a column of its own with no gain, so a full matching of the rows exists.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching  # noqa: PLC0415

    row, column = np.array(list(cells)).T
    value = np.array(list(cells.values()))
    own = np.arange(rows)
    # Every weight is 1 larger than its gain: zeros would count as absent cells.
    weight = np.concatenate([value + 1.0, np.ones(rows)])
    all_rows = np.concatenate([row, own])
    all_columns = np.concatenate([column, columns + own])
    shape = (rows, columns + rows)
    matrix = coo_array((weight, (all_rows, all_columns)), shape=shape).tocsr()
    solution = min_weight_full_bipartite_matching(matrix, maximize=True)
    matched_rows, matched_columns = (side.tolist() for side in solution)
    return [
        (row, column)
        for row, column in zip(matched_rows, matched_columns)
        if column < columns
    ]


def _assign_rows(table: list[list[float]]) -> list[tuple[int, int]]:
    """The Hungarian method with potentials (Kuhn 1955, Munkres 1957).

    Rows get their columns one by one, each along a cheapest path of exchanges. There
    are no more rows than columns. Returns row and column of every row.
    """
    rows = len(table)
    columns = len(table[0])
    row_price = [0.0] * rows
    column_price = [0.0] * columns
    holder: list[int | None] = [None] * columns
    for start in range(rows):
        # slack: the least extra cost of reaching each column on a path from `start`;
        # previous: the column before it on that path, -1 for the first.
        slack = [math.inf] * columns
        previous = [-1] * columns
        done = set[int]()
        row = start
        last = -1
        while True:
            for column in range(columns):
                cost = -table[row][column] - row_price[row] - column_price[column]
                if column not in done and cost < slack[column]:
                    slack[column] = cost
                    previous[column] = last
            open_columns = [column for column in range(columns) if column not in done]
            last = min(open_columns, key=slack.__getitem__)
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
        # The last column is free: every column of the path moves to the row before.
        while previous[last] >= 0:
            holder[last] = holder[previous[last]]
            last = previous[last]
        holder[last] = start
    return [(row, column) for column, row in enumerate(holder) if row is not None]


def _settle_by_best(
    pairs: MaskPairs, gain: Float64Array
) -> tuple[BoolArray, BoolArray]:
    """Give every prediction its best target where no two share it (then no matching has a larger total), or every
    target its best prediction. Returns the chosen pairs and whether each sample is solved.
    """
    best_of_pred = _best(pairs.pred, gain)
    best_of_target = _best(pairs.target, gain)
    pred_clash = _clashes(pairs, best_of_pred, pairs.target)
    target_clash = _clashes(pairs, best_of_target, pairs.pred)
    by_target = pred_clash & ~target_clash
    chosen = np.zeros(len(gain), bool)
    chosen[best_of_pred[~pred_clash[pairs.sample[best_of_pred]]]] = True
    chosen[best_of_target[by_target[pairs.sample[best_of_target]]]] = True
    return chosen, ~(pred_clash & target_clash)


def _best(side: Int64Array, gain: Float64Array) -> Int64Array:
    """For each region of one side with any gain, its best pair, the first of equals. Positions, ascending."""
    useful = np.flatnonzero(gain > 0)
    if not len(useful):
        return useful
    region = side[useful]
    if (np.diff(region) < 0).any():
        order = np.argsort(region, kind="stable")
        useful = useful[order]
        region = region[order]
    starts = np.flatnonzero(_begins_group(region))
    largest = np.maximum.reduceat(gain[useful], starts)
    lengths = np.diff(np.append(starts, len(region)))
    is_largest = gain[useful] == np.repeat(largest, lengths)
    largest_rows = np.flatnonzero(is_largest)
    first_rows = largest_rows[_begins_group(region[largest_rows])]
    return np.sort(useful[first_rows])


def _begins_group(sorted_values: Int64Array) -> BoolArray:
    """Whether each of the sorted values, at least one, differs from the one before it."""
    return np.concatenate([[True], sorted_values[1:] != sorted_values[:-1]])


def _clashes(pairs: MaskPairs, best: Int64Array, partner: Int64Array) -> BoolArray:
    """Whether two of a sample's best pairs share their partner, bool [samples]."""
    best_partner = partner[best]
    times_chosen = np.bincount(best_partner, minlength=1)
    is_shared = times_chosen[best_partner] > 1
    clash = np.zeros(len(pairs.preds), bool)
    clash[pairs.sample[best[is_shared]]] = True
    return clash

"""Samples in groups, and within each group by image: sums per image and per group."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Float64Array, Int64Array, NumberArray


class ImageGroups:
    """Samples in groups, and within each group by image.

    codes: int [samples], the group of each sample; cluster: int64 [samples], its image; count: number of groups, below
    65536. A cell is one image within one group.
    """

    def __init__(
        self, codes: NDArray[np.integer[Any]], cluster: Int64Array, count: int
    ) -> None:
        by_image = np.argsort(cluster, kind="stable")
        # The second sort is stable, so the samples of one image stay together within a group.
        # uint16 is sorted by radix sort, which is several times faster than int64.
        group_by_image = codes[by_image].astype(np.uint16)
        self._order = by_image[np.argsort(group_by_image, kind="stable")]
        group = codes[self._order]
        image = cluster[self._order]
        begins_cell = np.ones(len(group), bool)
        begins_cell[1:] = (group[1:] != group[:-1]) | (image[1:] != image[:-1])
        self._starts = np.flatnonzero(begins_cell)
        self.group = group[self._starts].astype(np.int64)
        """The group of each cell, int64 [cells]."""
        self._firsts = np.searchsorted(self.group, np.arange(count + 1))
        self._filled = np.flatnonzero(np.diff(self._firsts))
        self._cells: dict[int, tuple[NumberArray, Float64Array]] = {}

    @classmethod
    def single(cls, cluster: Int64Array) -> "ImageGroups":
        """All samples as one group."""
        return cls(np.zeros(len(cluster), np.int64), cluster, 1)

    def __len__(self) -> int:
        return len(self._firsts) - 1

    def samples(self) -> Int64Array:
        """Number of samples of each group, int64 [groups]."""
        cell_bounds = np.append(self._starts, len(self._order))
        return np.diff(cell_bounds[self._firsts])

    def images(self) -> Int64Array:
        """Number of images of each group, int64 [groups]."""
        return np.diff(self._firsts)

    def cells_of(self, group: int) -> slice:
        """The cells of a group: one for each of its images."""
        return slice(int(self._firsts[group]), int(self._firsts[group + 1]))

    def cells(self, column: NumberArray) -> Float64Array:
        """Sums of a column [samples] over each cell, float64 [cells]; kept for the next call with the same array."""
        key = id(column)
        if key not in self._cells:
            values = column[self._order]
            total = np.add.reduceat(values, self._starts) if len(values) else values
            # The column is kept as well, so that its id stays its own.
            self._cells[key] = (column, total.astype(np.float64, copy=False))
        _, cell_sums = self._cells[key]
        return cell_sums

    def forget(self, column: NumberArray) -> None:
        """Drop the sums of a column, which take as much memory as the column where every sample is a cell."""
        self._cells.pop(id(column), None)

    def add(self, cells: NDArray[Any]) -> Float64Array:
        """Sums of values of cells over each group, float64 [groups]."""
        out = np.zeros(len(self))
        if len(self._filled):
            first_cells = self._firsts[self._filled]
            out[self._filled] = np.add.reduceat(cells, first_cells, dtype=np.float64)
        return out

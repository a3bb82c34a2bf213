"""One side of a comparison, predicted regions or targets: which mask each shows, how large it is, where it lies."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from maskwise.masks import Masks, pair_areas
from maskwise.protocols.extents import Boxes, Extent, Measured
from maskwise.protocols.metrics import Flags, Int64s
from maskwise.protocols.pairs import pairs_within
from maskwise.protocols.tables import Replies, Truth, offsets_of
from maskwise.store import MaskColumn


@dataclass(frozen=True)
class Choice:
    """Which of its masks each region shows in a plane. amodal: the amodal one, not the visible one; known: whether it
    has one to show; exact: whether that is of the type the plane asks for. All bool [regions].
    """

    amodal: Flags
    known: Flags
    exact: Flags

    def same(self, other: "Choice") -> bool:
        """Whether both show the same masks."""
        pairs = ((self.amodal, other.amodal), (self.known, other.known), (self.exact, other.exact))
        return all(np.array_equal(one, another) for one, another in pairs)


NOT_CUT = -1


@dataclass(frozen=True)
class Side:
    """The masks one side shows, pixels to ignore taken away. offsets: int64 [samples + 1]."""

    masks: Masks
    choice: Choice
    extent: Extent
    offsets: Int64s
    threads: int

    @property
    def known(self) -> Flags:
        """Whether there is a mask, bool [regions]."""
        return self.choice.known

    @property
    def area(self) -> Int64s:
        """Pixels, int64 [regions]; 0 where no mask is known."""
        return self.extent.area

    @cached_property
    def sample(self) -> Int64s:
        """Sample of each region."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def cuts(self) -> "Cuts":
        """What is left of masks that share pixels with an earlier one of their sample. With them in place no two masks
        of a sample overlap: areas add up to those of the union.
        """
        one, other = pairs_within(self.offsets)
        meets = np.flatnonzero(intersections((self, one), (self, other), threads=self.threads))
        meets = meets[np.argsort(other[meets], kind="stable")]
        rows, counts = np.unique(other[meets], return_counts=True)
        left = self._subtract(rows, one[meets], offsets_of(counts))
        place = np.full(len(self.area), NOT_CUT)
        place[rows] = np.arange(len(rows))
        area = self.area.copy()
        area[rows] = left.area(threads=self.threads)
        return Cuts(place, left, area)

    def _subtract(self, rows: Int64s, others: Int64s, offsets: Int64s) -> Masks:
        """Mask rows[i] without masks others[offsets[i]:offsets[i + 1]], for each i."""

        def work(ends: tuple[int, int]) -> Masks:
            first, last = ends
            bounds = offsets[first : last + 1]
            taken = self.masks[others[bounds[0] : bounds[-1]]].merge(
                bounds - bounds[0], self.masks.size[rows[first:last]]
            )
            return self.masks[rows[first:last]] - taken

        parts = np.linspace(0, len(rows), self.threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(self.threads) as pool:
            return Masks.concat(list(pool.map(work, pairwise(parts))))


@dataclass(frozen=True)
class Cuts:
    """place: int64 [regions], where a region's cut mask lies in `masks`, or NOT_CUT; area: int64 [regions], pixels of
    every region once they are cut.
    """

    place: Int64s
    masks: Masks
    area: Int64s


class Sides:
    """The sides of one table: each choice of masks is put together once.

    measured: the extents of the table's columns; ignore: one mask a sample, taken from all masks.
    """

    def __init__(
        self, table: Truth | Replies, measured: Measured, ignore: MaskColumn, *, threads: int
    ) -> None:
        self.table, self.measured, self.ignore, self.threads = table, measured, ignore, threads
        self._made: list[Side] = []

    def show(self, choice: Choice) -> Side:
        """The side that shows the masks chosen."""
        for side in self._made:
            if side.choice.same(choice):
                return side
        self._made.append(self._make(choice))
        return self._made[-1]

    def of_type(self, amodal: Flags) -> Side:
        """The side that shows the masks of one type a region, where there are any. amodal: bool [regions]."""
        known = np.where(amodal, self.table.amodal.present, self.table.visible.present)
        return self.show(Choice(amodal, known, known))

    def _make(self, choice: Choice) -> Side:
        table, taken = self.table, choice.amodal & choice.known
        masks = _choose(table.visible.masks, table.amodal.masks, taken)
        area, box = self.measured.visible.area, self.measured.visible.box
        if taken.any():
            area = np.where(taken, self.measured.amodal.area, area)
            box = np.where(taken[:, None], self.measured.amodal.box, box)
        area = np.where(choice.known, area, 0)
        rows = np.flatnonzero(self.ignore.present[table.sample] & choice.known)
        if len(rows):
            left = masks[rows] - self.ignore.masks[table.sample[rows]]
            masks, area[rows] = replace_masks(masks, rows, left), left.area(threads=self.threads)
        return Side(masks, choice, Extent(area, box), table.offsets, self.threads)


def intersections(one: tuple[Side, Int64s], other: tuple[Side, Int64s], *, threads: int) -> Int64s:
    """Pixels shared by regions of one side and regions of another, pair by pair: int64 [k]. Boxes that do not meet
    need no look.
    """
    (left, a), (right, b) = one, other
    out = np.zeros(len(a), np.int64)
    rows = np.flatnonzero(left.known[a] & right.known[b])
    rows = rows[boxes_meet(left.extent.box[a[rows]], right.extent.box[b[rows]])]
    out[rows] = pair_areas(left.masks[a[rows]], right.masks[b[rows]], threads=threads).intersection
    return out


def cut_intersections(
    one: tuple[Side, Int64s], other: tuple[Side, Int64s], shared: Int64s, *, threads: int
) -> Int64s:
    """As `intersections`, which gave `shared`, with the cut masks of both sides in place."""
    (left, a), (right, b) = one, other
    a_cut, b_cut = left.cuts.place[a] != NOT_CUT, right.cuts.place[b] != NOT_CUT
    out = shared.copy()
    for in_a, in_b in ((True, False), (False, True), (True, True)):
        rows = np.flatnonzero((shared > 0) & (a_cut == in_a) & (b_cut == in_b))
        masks = [
            side.cuts.masks[side.cuts.place[regions[rows]]] if cut else side.masks[regions[rows]]
            for side, regions, cut in ((left, a, in_a), (right, b, in_b))
        ]
        out[rows] = pair_areas(*masks, threads=threads).intersection
    return out


def boxes_meet(one: Boxes, other: Boxes) -> Flags:
    """Whether two boxes share pixels, row by row."""
    low, high = np.maximum(one[:, :2], other[:, :2]), np.minimum(one[:, 2:], other[:, 2:])
    return (low[:, 0] < high[:, 0]) & (low[:, 1] < high[:, 1])


def replace_masks(masks: Masks, rows: Int64s, new: Masks) -> Masks:
    """The batch with some rows replaced."""
    order = np.arange(len(masks))
    order[rows] = len(masks) + np.arange(len(rows))
    return Masks.concat([masks, new])[order]


def _choose(visible: Masks, amodal: Masks, take_amodal: Flags) -> Masks:
    if not take_amodal.any():
        return visible
    if take_amodal.all():
        return amodal
    return replace_masks(visible, np.flatnonzero(take_amodal), amodal[take_amodal])

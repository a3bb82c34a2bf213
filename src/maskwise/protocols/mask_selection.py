"""One mask per region, of the selected type, without ignored pixels: predicted regions or targets."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from maskwise.arrays import BoolArray, Int32Array, Int64Array
from maskwise.masks import Masks, pair_areas
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.mask_geometry import MaskGeometry, RegionGeometry
from maskwise.protocols.mask_pairs import pairs_within
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.ragged import counts_to_offsets
from maskwise.store import MaskColumn


@dataclass(frozen=True)
class MaskSelection:
    """Which of its masks each region contributes. amodal: the amodal one, not the visible one; known: whether it has
    that mask; exact: whether the mask is of the type asked for. All bool [regions].
    """

    amodal: BoolArray
    known: BoolArray
    exact: BoolArray

    def same(self, other: "MaskSelection") -> bool:
        """Whether both select the same masks."""
        pairs = ((self.amodal, other.amodal), (self.known, other.known), (self.exact, other.exact))
        return all(np.array_equal(one, another) for one, another in pairs)


UNCHANGED = -1


@dataclass(frozen=True)
class SelectedMasks:
    """One mask per region, without ignored pixels. offsets: int64 [samples + 1]."""

    masks: Masks
    selection: MaskSelection
    geometry: MaskGeometry
    offsets: Int64Array
    threads: int

    @property
    def known(self) -> BoolArray:
        """Whether there is a mask, bool [regions]."""
        return self.selection.known

    @property
    def area(self) -> Int64Array:
        """Pixels, int64 [regions]; 0 where no mask is known."""
        return self.geometry.area

    @cached_property
    def sample(self) -> Int64Array:
        """Sample of each region."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def disjoint(self) -> "DisjointMasks":
        """The masks of each sample made disjoint: a mask loses the pixels of earlier masks. Areas then add up to the
        area of the union.
        """
        one, other = pairs_within(self.offsets)
        meets = np.flatnonzero(intersection_areas((self, one), (self, other), threads=self.threads))
        meets = meets[np.argsort(other[meets], kind="stable")]
        rows, counts = np.unique(other[meets], return_counts=True)
        left = self._subtract(rows, one[meets], counts_to_offsets(counts))
        place = np.full(len(self.area), UNCHANGED)
        place[rows] = np.arange(len(rows))
        area = self.area.copy()
        area[rows] = left.area(threads=self.threads)
        return DisjointMasks(place, left, area)

    def _subtract(self, rows: Int64Array, others: Int64Array, offsets: Int64Array) -> Masks:
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
class DisjointMasks:
    """Masks without the pixels of earlier masks of their sample. place: int64 [regions], position in `masks` of a
    region that lost pixels, else UNCHANGED; area: int64 [regions], of all regions afterwards.
    """

    place: Int64Array
    masks: Masks
    area: Int64Array


class MaskSelector:
    """Selects one mask per region of a table; each selection is made once.

    geometry: of both mask columns; ignore: one mask per sample, subtracted from all masks.
    """

    def __init__(
        self,
        table: GroundTruth | PredictionColumns,
        geometry: RegionGeometry,
        ignore: MaskColumn,
        *,
        threads: int,
    ) -> None:
        self.table, self.geometry, self.ignore, self.threads = table, geometry, ignore, threads
        self._made: list[SelectedMasks] = []

    def select(self, selection: MaskSelection) -> SelectedMasks:
        """The selected masks."""
        for made in self._made:
            if made.selection.same(selection):
                return made
        self._made.append(self._make(selection))
        return self._made[-1]

    def of_type(self, amodal: BoolArray) -> SelectedMasks:
        """The mask of one type per region, where it is known. amodal: bool [regions]."""
        known = np.where(amodal, self.table.amodal.present, self.table.visible.present)
        return self.select(MaskSelection(amodal, known, known))

    def _make(self, selection: MaskSelection) -> SelectedMasks:
        table, taken = self.table, selection.amodal & selection.known
        masks = _choose(table.visible.masks, table.amodal.masks, taken)
        area, box = self.geometry.visible.area, self.geometry.visible.box
        if taken.any():
            area = np.where(taken, self.geometry.amodal.area, area)
            box = np.where(taken[:, None], self.geometry.amodal.box, box)
        area = np.where(selection.known, area, 0)
        rows = np.flatnonzero(self.ignore.present[table.sample] & selection.known)
        if len(rows):
            left = masks[rows] - self.ignore.masks[table.sample[rows]]
            masks, area[rows] = replace_masks(masks, rows, left), left.area(threads=self.threads)
        return SelectedMasks(masks, selection, MaskGeometry(area, box), table.offsets, self.threads)


def intersection_areas(
    one: tuple[SelectedMasks, Int64Array], other: tuple[SelectedMasks, Int64Array], *, threads: int
) -> Int64Array:
    """Pixels shared by the regions of each pair, int64 [k]. Masks are read only where the boxes overlap."""
    (left, a), (right, b) = one, other
    out = np.zeros(len(a), np.int64)
    rows = np.flatnonzero(left.known[a] & right.known[b])
    rows = rows[boxes_overlap(left.geometry.box[a[rows]], right.geometry.box[b[rows]])]
    out[rows] = pair_areas(left.masks[a[rows]], right.masks[b[rows]], threads=threads).intersection
    return out


def disjoint_intersection_areas(
    one: tuple[SelectedMasks, Int64Array],
    other: tuple[SelectedMasks, Int64Array],
    shared: Int64Array,
    *,
    threads: int,
) -> Int64Array:
    """As `intersection_areas`, which returned `shared`, of the disjoint masks."""
    (left, a), (right, b) = one, other
    a_changed, b_changed = left.disjoint.place[a] != UNCHANGED, right.disjoint.place[b] != UNCHANGED
    out = shared.copy()
    for in_a, in_b in ((True, False), (False, True), (True, True)):
        rows = np.flatnonzero((shared > 0) & (a_changed == in_a) & (b_changed == in_b))
        masks = [
            selected.disjoint.masks[selected.disjoint.place[regions[rows]]]
            if changed
            else selected.masks[regions[rows]]
            for selected, regions, changed in ((left, a, in_a), (right, b, in_b))
        ]
        out[rows] = pair_areas(*masks, threads=threads).intersection
    return out


def boxes_overlap(one: Int32Array, other: Int32Array) -> BoolArray:
    """Whether two boxes share pixels, row by row."""
    low, high = np.maximum(one[:, :2], other[:, :2]), np.minimum(one[:, 2:], other[:, 2:])
    return (low[:, 0] < high[:, 0]) & (low[:, 1] < high[:, 1])


def replace_masks(masks: Masks, rows: Int64Array, new: Masks) -> Masks:
    """The batch with some rows replaced."""
    order = np.arange(len(masks))
    order[rows] = len(masks) + np.arange(len(rows))
    return Masks.concat([masks, new])[order]


def _choose(visible: Masks, amodal: Masks, take_amodal: BoolArray) -> Masks:
    if not take_amodal.any():
        return visible
    if take_amodal.all():
        return amodal
    return replace_masks(visible, np.flatnonzero(take_amodal), amodal[take_amodal])

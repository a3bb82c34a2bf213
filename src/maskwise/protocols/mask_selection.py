"""One mask per region, of the selected type, without ignored pixels: predicted regions or targets."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maskwise.arrays import BoolArray, Int32Array, Int64Array
from maskwise.masks import Masks, pair_areas
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.mask_geometry import MaskGeometry, RegionGeometry
from maskwise.protocols.mask_pairs import boxes_overlap, pairs_within
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.ragged import counts_to_offsets, flatten
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
        pairs = (
            (self.amodal, other.amodal),
            (self.known, other.known),
            (self.exact, other.exact),
        )
        return all(np.array_equal(own, others) for own, others in pairs)


FEW_REGIONS = 32
"""Up to this many regions of a sample are compared with each other."""


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
    def overlapping(self) -> BoolArray:
        """Whether masks of a sample may share pixels, bool [samples]; False means that their areas add up to the area
        of the union. Samples with more than FEW_REGIONS regions are not looked into.
        """
        counts = np.diff(self.offsets)
        few = np.flatnonzero((counts > 1) & (counts <= FEW_REGIONS))
        rows = flatten(self.offsets, few)
        earlier, later = (
            rows[part] for part in pairs_within(counts_to_offsets(counts[few]))
        )
        shared = intersection_areas(
            (self, earlier), (self, later), threads=self.threads
        )
        is_overlapping = counts > FEW_REGIONS
        is_overlapping[self.sample[earlier[shared > 0]]] = True
        return is_overlapping

    def unions(self, samples: Int64Array, size: Int32Array) -> Masks:
        """The union of the masks of each of the given samples. size: int32 [samples, 2], of their images."""

        def merge(part: Int64Array) -> Masks:
            counts = np.diff(self.offsets)[samples[part]]
            rows = flatten(self.offsets, samples[part])
            owner = np.repeat(np.arange(len(part)), counts)[self.known[rows]]
            offsets = counts_to_offsets(np.bincount(owner, minlength=len(part)))
            return self.masks[rows[self.known[rows]]].merge(offsets, size[part])

        with ThreadPoolExecutor(self.threads) as pool:
            return Masks.concat(
                list(
                    pool.map(
                        merge, np.array_split(np.arange(len(samples)), self.threads)
                    )
                )
            )


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
        self.table = table
        self.geometry = geometry
        self.ignore = ignore
        self.threads = threads
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
        table = self.table
        taken = selection.amodal & selection.known
        masks = _choose(table.visible.masks, table.amodal.masks, taken)
        area = self.geometry.visible.area
        box = self.geometry.visible.box
        if taken.any():
            area = np.where(taken, self.geometry.amodal.area, area)
            box = np.where(taken[:, None], self.geometry.amodal.box, box)
        area = np.where(selection.known, area, 0)
        rows = np.flatnonzero(self.ignore.present[table.sample] & selection.known)
        if len(rows):
            left = without_ignored(masks[rows], self.ignore, table.sample[rows])
            masks = replace_masks(masks, rows, left)
            area[rows] = left.area(threads=self.threads)
        return SelectedMasks(
            masks, selection, MaskGeometry(area, box), table.offsets, self.threads
        )


def intersection_areas(
    a: tuple[SelectedMasks, Int64Array],
    b: tuple[SelectedMasks, Int64Array],
    *,
    threads: int,
) -> Int64Array:
    """Pixels shared by the regions of each pair, int64 [k]. Masks are read only where the boxes overlap.

    a, b: masks, and the position of each pair's region among them, int64 [k].
    """
    masks_a, regions_a = a
    masks_b, regions_b = b
    shared = np.zeros(len(regions_a), np.int64)
    rows = np.flatnonzero(masks_a.known[regions_a] & masks_b.known[regions_b])
    boxes_a = masks_a.geometry.box[regions_a[rows]]
    boxes_b = masks_b.geometry.box[regions_b[rows]]
    rows = rows[boxes_overlap(boxes_a, boxes_b)]
    areas = pair_areas(
        masks_a.masks[regions_a[rows]], masks_b.masks[regions_b[rows]], threads=threads
    )
    shared[rows] = areas.intersection
    return shared


def without_ignored(masks: Masks, ignore: MaskColumn, sample: Int64Array) -> Masks:
    """Masks without the ignored pixels of their samples. sample: int64 [masks]."""
    rows = np.flatnonzero(ignore.present[sample])
    if not len(rows):
        return masks
    return replace_masks(masks, rows, masks[rows] - ignore.masks[sample[rows]])


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

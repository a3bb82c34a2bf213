"""Areas and bounding boxes of masks, measured in one pass that also finds malformed masks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Int32Array, Int64Array
from maskwise.errors import MaskError
from maskwise.store import MaskColumn


@dataclass(frozen=True)
class MaskGeometry:
    """Area (int64 [n]) and box (int32 [n, 4]: left, top, right, bottom, the last two past the end) of masks; zeros for
    masks that are empty or not known.
    """

    area: Int64Array
    box: Int32Array

    @staticmethod
    def concat(parts: "Sequence[MaskGeometry]") -> "MaskGeometry":
        """Several columns, concatenated."""
        areas = [part.area for part in parts]
        boxes = [part.box for part in parts]
        return MaskGeometry(
            np.concatenate([np.zeros(0, np.int64), *areas]),
            np.concatenate([np.zeros((0, 4), np.int32), *boxes]),
        )


@dataclass(frozen=True)
class RegionGeometry:
    """Areas and boxes of both mask columns of a table."""

    visible: MaskGeometry
    amodal: MaskGeometry

    @property
    def box(self) -> Int32Array:
        """The box around both masks of each region, int32 [regions, 4]; zeros where neither has a pixel."""
        visible = self.visible
        amodal = self.amodal
        if not amodal.area.any():
            return visible.box
        both = ((visible.area > 0) & (amodal.area > 0))[:, None]
        hull = np.concatenate(
            [
                np.minimum(visible.box[:, :2], amodal.box[:, :2]),
                np.maximum(visible.box[:, 2:], amodal.box[:, 2:]),
            ],
            axis=1,
        )
        return np.where(
            both, hull, np.where((visible.area > 0)[:, None], visible.box, amodal.box)
        )

    def take(self, rows: Int64Array) -> "RegionGeometry":
        """Those of some regions."""
        parts = (
            (geometry.area[rows], geometry.box[rows])
            for geometry in (self.visible, self.amodal)
        )
        return RegionGeometry(*(MaskGeometry(area, box) for area, box in parts))


def measure_masks(
    column: MaskColumn, usable: BoolArray, threads: int
) -> tuple[MaskGeometry, Int64Array]:
    """MaskGeometry of the usable masks, and the rows of those that turn out to be malformed."""
    area = np.zeros(len(usable), np.int64)
    box = np.zeros((len(usable), 4), np.int64)
    bad: list[int] = []
    waiting = [np.flatnonzero(usable)]
    while waiting:
        rows = waiting.pop()
        try:
            masks = column.masks if len(rows) == len(usable) else column.masks[rows]
            area[rows], box[rows] = masks.measure(threads=threads)
        except MaskError:
            if len(rows) == 1:
                bad.append(int(rows[0]))
            else:  # a batch fails as a whole: halve it to find the malformed mask
                waiting += np.array_split(rows, 2)
    box[:, 2:] += box[:, :2]
    return MaskGeometry(area, box.astype(np.int32)), np.array(bad, np.int64)

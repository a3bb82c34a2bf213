"""How large masks are and where they lie: measured in one look at every mask, which also tells which are none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError
from maskwise.protocols.metrics import Flags, Int64s
from maskwise.store import MaskColumn

Boxes = NDArray[np.int32]


@dataclass(frozen=True)
class Extent:
    """Area (int64 [n]) and box (int32 [n, 4]: left, top, right, bottom, the last two past the end) of masks; zeros for
    masks that are empty or not known.
    """

    area: Int64s
    box: Boxes

    @staticmethod
    def concat(parts: "Sequence[Extent]") -> "Extent":
        """Those of several columns, one after the other."""
        areas, boxes = [part.area for part in parts], [part.box for part in parts]
        return Extent(
            np.concatenate([np.zeros(0, np.int64), *areas]),
            np.concatenate([np.zeros((0, 4), np.int32), *boxes]),
        )


@dataclass(frozen=True)
class Measured:
    """The extents of both mask columns of a table, measured once."""

    visible: Extent
    amodal: Extent

    def take(self, rows: Int64s) -> "Measured":
        """Those of some regions."""
        parts = ((one.area[rows], one.box[rows]) for one in (self.visible, self.amodal))
        return Measured(*(Extent(area, box) for area, box in parts))


def measure(column: MaskColumn, usable: Flags, threads: int) -> tuple[Extent, Int64s]:
    """Extent of the usable masks, and the rows of those that turn out to be malformed."""
    area, box = np.zeros(len(usable), np.int64), np.zeros((len(usable), 4), np.int64)
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
            else:  # one bad mask spoils a batch: halve it to find which
                waiting += np.array_split(rows, 2)
    box[:, 2:] += box[:, :2]
    return Extent(area, box.astype(np.int32)), np.array(bad, np.int64)

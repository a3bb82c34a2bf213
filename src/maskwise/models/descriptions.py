"""What is known of the objects of an image before a question is asked, as numbers a network can read."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


class Objects(NamedTuple):
    """n objects. visible, amodal: bool (n, s, s). part: uint8 (n, s, s), the part at each pixel of the amodal mask
    counted from 1. kinds: float32 (n, k), probabilities of categories, colours and materials side by side.
    """

    visible: Bools
    amodal: Bools
    part: NDArray[np.uint8]
    kinds: Floats


class Description(NamedTuple):
    """single: float32 (n, d), what each object is and where. pair: float32 (n, n, 6), what i is to j: the shares of j
    that i hides and of i that j hides, how far right and below, and how they overlap.
    """

    single: Floats
    pair: Floats


MEASURES = 11
PAIR = 6


def describe(objects: Objects, most_parts: int) -> Description:
    """Measure masks. Lengths are shares of the frame, areas are square roots of such shares."""
    count = len(objects.visible)
    rows = [_measures(objects, i, most_parts) for i in range(count)]
    measures = np.array(rows, np.float32).reshape(count, MEASURES + 2 * most_parts)
    single = np.concatenate([objects.kinds, measures], 1)
    flat_amodal = flatten(objects.amodal)
    full = np.maximum(flat_amodal.sum(1), 1)
    hides = hiding(objects)
    overlap = flat_amodal @ flat_amodal.T / full[None]
    x, y = (single[:, objects.kinds.shape[1] + i] for i in (0, 1))
    pair = np.stack(
        [
            hides,
            hides.T,
            x[:, None] - x[None],
            y[:, None] - y[None],
            overlap,
            (hides > hides.T).astype(np.float32),
        ],
        2,
    )
    return Description(single, pair.astype(np.float32))


def hiding(objects: Objects) -> Floats:
    """float32 (n, n): the share of object j that object i is seen in front of."""
    amodal = flatten(objects.amodal)
    hides: Floats = flatten(objects.visible) @ amodal.T / np.maximum(amodal.sum(1), 1)[None]
    np.fill_diagonal(hides, 0)
    return hides


def flatten(planes: Bools) -> Floats:
    """Planes (n, s, s) as rows of 0 and 1."""
    return planes.reshape(len(planes), planes.shape[1] * planes.shape[2]).astype(np.float32)


def _measures(objects: Objects, i: int, most_parts: int) -> list[float]:
    """Middle of what is seen, middle and box of the whole, sizes, hidden share, then per part seen and hidden."""
    visible, amodal, part = objects.visible[i], objects.amodal[i], objects.part[i]
    side = visible.shape[0]
    columns, rows = amodal.sum(0), amodal.sum(1)
    full, seen = int(columns.sum()), int(visible.sum())
    if not full:
        return [0.0] * (MEASURES + 2 * most_parts)
    steps = (np.arange(side) + 0.5) / side
    full_x, full_y = float(columns @ steps) / full, float(rows @ steps) / full
    x = float(visible.sum(0) @ steps) / seen if seen else full_x
    y = float(visible.sum(1) @ steps) / seen if seen else full_y
    across, down = np.flatnonzero(columns), np.flatnonzero(rows)
    whole = np.bincount(part[amodal], minlength=most_parts + 1)[1 : most_parts + 1]
    shown = np.bincount(part[visible & amodal], minlength=most_parts + 1)[1 : most_parts + 1]
    return [
        x,
        y,
        full_x,
        full_y,
        across[0] / side,
        down[0] / side,
        (across[-1] + 1) / side,
        (down[-1] + 1) / side,
        (full / side**2) ** 0.5,
        (seen / side**2) ** 0.5,
        max(0.0, 1 - seen / full),
        *(shown / side**2) ** 0.5,
        *(1 - shown / np.maximum(whole, 1)) * (whole > 0),
    ]

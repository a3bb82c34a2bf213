"""Doubts about masks: visible pixels outside the amodal mask, slivers, empty and tiny masks."""

from collections.abc import Iterator

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.auditing.doubts import Doubt
from maskwise.masks import Masks, pair_areas
from maskwise.protocols import GroundTruth
from maskwise.protocols.ground_truth import AMODAL, VISIBLE
from maskwise.terminal import count_noun

FULL_OUTSIDE = 0.1
"""Share of visible pixels outside the amodal mask at which the doubt is complete. Polygons that were drawn apart differ
by a rim of one pixel, 1 to 2 % of an object."""

SPECK_SHARE = 0.005
"""A component with less than this share of the mask is a speck: an occluder leaves larger pieces."""

THIN = 2.0
"""Pixels per pixel of the longer side of its box: a mask below is as thin as a line."""

TINY = 16
"""Pixels: a mask below is too small to be pointed at."""

RowDoubt = tuple[int, Doubt]
"""A row of the dataset, and a doubt about it."""


def check_masks(truth: GroundTruth) -> Iterator[RowDoubt]:
    """All doubts about the masks of the targets."""
    yield from _outside(truth)
    yield from _specks(truth)
    yield from _lines(truth)
    yield from _empty_or_tiny(truth)


def _outside(truth: GroundTruth) -> Iterator[RowDoubt]:
    rows = np.flatnonzero(truth.visible.present & truth.amodal.present)
    areas = pair_areas(truth.visible.masks[rows], truth.amodal.masks[rows])
    outside = areas.a - areas.intersection
    for item in np.flatnonzero(outside).tolist():
        share = outside[item] / areas.a[item]
        name = _name(truth, rows[item])
        yield (
            int(truth.sample[rows[item]]),
            Doubt(
                check="outside",
                strength=min(1.0, float(share) / FULL_OUTSIDE),
                message=f"{outside[item]} of {areas.a[item]} visible pixels of {name} lie outside its amodal mask",
            ),
        )


def _specks(truth: GroundTruth) -> Iterator[RowDoubt]:
    """Specks beside a mask; of the amodal one, if it is known, as occluders cut specks off visible masks."""
    rows = np.arange(len(truth.sample))
    take_amodal = truth.amodal.present
    for column, taken in (
        (truth.visible, rows[truth.visible.present & ~take_amodal]),
        (truth.amodal, rows[take_amodal]),
    ):
        masks = column.masks[taken]
        components, owner = masks.components()
        area = components.area()
        largest = np.zeros(len(masks), np.int64)
        np.maximum.at(largest, owner, area)
        is_speck = (area < SPECK_SHARE * masks.area()[owner]) & (area < largest[owner])
        specks = np.bincount(owner[is_speck], minlength=len(masks))
        for item in np.flatnonzero(specks).tolist():
            count = int(specks[item])
            yield (
                int(truth.sample[taken[item]]),
                Doubt(
                    check="sliver",
                    strength=count / (count + 1),
                    message=f"{count_noun(count, 'speck')} beside the mask of {_name(truth, taken[item])}",
                ),
            )


def _lines(truth: GroundTruth) -> Iterator[RowDoubt]:
    """Requested masks as thin as a line."""
    for rows, masks in _requested_masks(truth):
        area, box = masks.measure()
        thickness = area / np.maximum(np.maximum(box[:, 2], box[:, 3]), 1)
        for item in np.flatnonzero((area >= TINY) & (thickness < THIN)).tolist():
            yield (
                int(truth.sample[rows[item]]),
                Doubt(
                    check="sliver",
                    strength=float(1.0 - thickness[item] / (2 * THIN)),
                    message=f"the mask of {_name(truth, rows[item])} is as thin as a line",
                ),
            )


def _requested_masks(truth: GroundTruth) -> Iterator[tuple[Int64Array, Masks]]:
    """Rows of targets with their masks of a requested type; where both are requested, each in turn."""
    requested = truth.requested_type[truth.sample]
    for column, other in ((truth.visible, AMODAL), (truth.amodal, VISIBLE)):
        rows = np.flatnonzero(column.present & (requested != other))
        yield rows, column.masks[rows]


def _empty_or_tiny(truth: GroundTruth) -> Iterator[RowDoubt]:
    """A target counts by the larger of its masks of a requested type."""
    largest = np.full(len(truth.sample), -1, np.int64)
    for rows, masks in _requested_masks(truth):
        largest[rows] = np.maximum(largest[rows], masks.area())
    for item in np.flatnonzero((largest >= 0) & (largest < TINY)).tolist():
        pixels = int(largest[item])
        what = "is empty" if pixels == 0 else f"has {pixels} pixels"
        yield (
            int(truth.sample[item]),
            Doubt(
                check="empty",
                strength=1.0 - pixels / (2 * TINY),
                message=f"the requested mask of {_name(truth, item)} {what}",
            ),
        )


def _name(truth: GroundTruth, item: int) -> str:
    return repr(str(truth.names.names[truth.names.codes[item]]))

"""Relations between two boxes of an image: how well each holds, from 0 to 1.

The rules are for photographs taken at eye level: what is nearer stands lower in the image. The constants were set by
hand on such photographs, and kept soft where boxes say little.
"""

import math
from collections.abc import Callable

from maskwise.models.photo.box import Box, shared_height, shared_width
from maskwise.models.photo.question import Relation

MIN_STRENGTH = 0.3
"""A relation holds from this strength on."""

FULL_DISTANCE = 0.5
"""Two objects are fully left and right of each other when their centers are this many widths apart."""

OTHER_ROWS_STRENGTH = 0.8
"""Strength of left and right for boxes that share no rows: one usually means things beside each other."""

MIN_ABOVE_STRENGTH = 0.1
"""Of a box whose center is higher than the anchor's, however far down it reaches."""

OTHER_COLUMNS_STRENGTH = 0.3
"""Strength of above for boxes that share no columns."""

ABOVE_SURFACE = 0.15
BELOW_SURFACE = 0.1
"""An object stands on another if its lower edge is at most this far, in heights of the other, above or below it."""

FAR_DISTANCE = 2.0
"""Objects are no longer near each other when they are this many sizes apart."""


def relation_strength(relation: Relation, subject: Box, anchor: Box) -> float:
    """How well "subject RELATION anchor" describes two boxes, in 0..1."""
    return _RULES[relation](subject, anchor)


def _left_of(subject: Box, anchor: Box) -> float:
    mean_width = (subject.width + anchor.width) / 2
    distance = anchor.center_x - subject.center_x
    strength = _clip(distance / (FULL_DISTANCE * mean_width))
    if shared_height(subject, anchor) > 0:
        return strength
    return strength * OTHER_ROWS_STRENGTH


def _right_of(subject: Box, anchor: Box) -> float:
    return _left_of(anchor, subject)


def _above(subject: Box, anchor: Box) -> float:
    """Less for a subject that reaches down into the anchor's rows, or stands beside it."""
    if subject.center_y >= anchor.center_y:
        return 0.0
    lower_part = max(0.0, subject.bottom - anchor.top) / subject.height
    free_part = max(MIN_ABOVE_STRENGTH, 1 - lower_part)
    return free_part * max(OTHER_COLUMNS_STRENGTH, _shared_columns(subject, anchor))


def _below(subject: Box, anchor: Box) -> float:
    return _above(_upside_down(subject), _upside_down(anchor))


def _on(subject: Box, anchor: Box) -> float:
    """The subject's lower edge lies within the anchor's rows, and the subject over its columns."""
    highest = anchor.top - ABOVE_SURFACE * anchor.height
    lowest = anchor.bottom + BELOW_SURFACE * anchor.height
    if not highest <= subject.bottom <= lowest:
        return 0.0
    return _shared_columns(subject, anchor)


def _in(subject: Box, anchor: Box) -> float:
    """Share of the subject inside the anchor; nothing is in something smaller."""
    if subject.area >= anchor.area:
        return 0.0
    width = max(0.0, shared_width(subject, anchor))
    height = max(0.0, shared_height(subject, anchor))
    return width * height / subject.area


def _behind(subject: Box, anchor: Box) -> float:
    return _in_front_of(anchor, subject)


def _in_front_of(subject: Box, anchor: Box) -> float:
    """What stands in front stands lower in the image."""
    if subject.bottom <= anchor.bottom:
        return 0.0
    return _near(subject, anchor)


def _near(subject: Box, anchor: Box) -> float:
    """1 when the boxes touch, 0 when they are FAR_DISTANCE sizes apart."""
    gap_across = max(0.0, -shared_width(subject, anchor))
    gap_down = max(0.0, -shared_height(subject, anchor))
    size = (math.sqrt(subject.area) + math.sqrt(anchor.area)) / 2
    distance = math.hypot(gap_across, gap_down) / size
    return max(0.0, 1 - distance / FAR_DISTANCE)


def _touching(subject: Box, anchor: Box) -> float:
    """Share of the smaller box that lies inside the other one; boxes that only meet touch a little."""
    width = shared_width(subject, anchor)
    height = shared_height(subject, anchor)
    if min(width, height) < 0:
        return 0.0
    share = width * height / min(subject.area, anchor.area)
    return max(MIN_STRENGTH, share)


def _shared_columns(subject: Box, anchor: Box) -> float:
    """Share of the narrower box's columns that the other one has too, in 0..1."""
    shared = max(0.0, shared_width(subject, anchor))
    return shared / min(subject.width, anchor.width)


def _upside_down(box: Box) -> Box:
    return Box(box.left, -box.bottom, box.right, -box.top)


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


_RULES: dict[Relation, Callable[[Box, Box], float]] = {
    "left_of": _left_of,
    "right_of": _right_of,
    "above": _above,
    "below": _below,
    "on": _on,
    "in": _in,
    "behind": _behind,
    "in_front_of": _in_front_of,
    "near": _near,
    "touching": _touching,
}

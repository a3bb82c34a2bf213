"""Relations between two boxes of an image: how well each holds, from 0 to 1."""

import math
from collections.abc import Callable

from maskwise.models.photo.proposals import Box
from maskwise.models.photo.question import Relation

MIN_STRENGTH = 0.3
"""A relation holds from this strength on."""


def relation_strength(relation: Relation, subject: Box, anchor: Box) -> float:
    """How well "subject RELATION anchor" describes two boxes (left, top, right, bottom)."""
    return _RULES[relation](subject, anchor)


def _left_of(subject: Box, anchor: Box) -> float:
    """Full when the centers are half a width apart."""
    apart = _center(anchor)[0] - _center(subject)[0]
    widths = (subject[2] - subject[0] + anchor[2] - anchor[0]) / 2
    return min(1.0, max(0.0, apart / (0.5 * widths))) * _beside(subject, anchor)


def _above(subject: Box, anchor: Box) -> float:
    if _center(subject)[1] >= _center(anchor)[1]:
        return 0.0
    over = max(0.0, subject[3] - anchor[1]) / (subject[3] - subject[1])
    return max(0.1, 1 - over) * max(0.3, _shared_columns(subject, anchor))


def _on(subject: Box, anchor: Box) -> float:
    """The subject's lower edge lies within the anchor's rows, and the subject over its columns."""
    height = anchor[3] - anchor[1]
    if not anchor[1] - 0.15 * height <= subject[3] <= anchor[3] + 0.1 * height:
        return 0.0
    return _shared_columns(subject, anchor)


def _in(subject: Box, anchor: Box) -> float:
    """Share of the subject inside the anchor."""
    wide = min(subject[2], anchor[2]) - max(subject[0], anchor[0])
    high = min(subject[3], anchor[3]) - max(subject[1], anchor[1])
    return (
        max(0.0, wide) * max(0.0, high) / _area(subject)
        if _area(subject) < _area(anchor)
        else 0.0
    )


def _in_front_of(subject: Box, anchor: Box) -> float:
    """What stands in front stands lower in the image."""
    return _near(subject, anchor) if subject[3] > anchor[3] else 0.0


def _near(subject: Box, anchor: Box) -> float:
    """1 when the boxes touch, 0 when they are two sizes apart."""
    across = max(0.0, subject[0] - anchor[2], anchor[0] - subject[2])
    down = max(0.0, subject[1] - anchor[3], anchor[1] - subject[3])
    size = (math.sqrt(_area(subject)) + math.sqrt(_area(anchor))) / 2
    return max(0.0, 1 - math.hypot(across, down) / (2 * size))


def _touching(subject: Box, anchor: Box) -> float:
    """Share of the smaller box that lies inside the other one; boxes that only meet touch a little."""
    wide = min(subject[2], anchor[2]) - max(subject[0], anchor[0])
    high = min(subject[3], anchor[3]) - max(subject[1], anchor[1])
    if min(wide, high) < 0:
        return 0.0
    return max(MIN_STRENGTH, wide * high / min(_area(subject), _area(anchor)))


def _beside(subject: Box, anchor: Box) -> float:
    """1 for boxes that share rows, less for others."""
    shared = min(subject[3], anchor[3]) - max(subject[1], anchor[1])
    return 1.0 if shared > 0 else 0.8


def _shared_columns(subject: Box, anchor: Box) -> float:
    shared = min(subject[2], anchor[2]) - max(subject[0], anchor[0])
    return max(0.0, shared) / min(subject[2] - subject[0], anchor[2] - anchor[0])


def _center(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _area(box: Box) -> float:
    return max(1e-6, (box[2] - box[0]) * (box[3] - box[1]))


_RULES: dict[Relation, Callable[[Box, Box], float]] = {
    "left_of": _left_of,
    "right_of": lambda subject, anchor: _left_of(_mirrored(subject), _mirrored(anchor)),
    "above": _above,
    "below": lambda subject, anchor: _above(
        _upside_down(subject), _upside_down(anchor)
    ),
    "on": _on,
    "in": _in,
    "behind": lambda subject, anchor: _in_front_of(anchor, subject),
    "in_front_of": _in_front_of,
    "near": _near,
    "touching": _touching,
}


def _mirrored(box: Box) -> Box:
    return -box[2], box[1], -box[0], box[3]


def _upside_down(box: Box) -> Box:
    return box[0], -box[3], box[2], -box[1]

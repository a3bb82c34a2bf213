"""Harder lessons from lessons: more hiding than the world's training scenes have, and colours that tell nothing.

Objects of other scenes are set in front, so that heavily hidden ones are met often; and the channels of some images
are exchanged, so that what a thing is cannot be read off its colour.
"""

import numpy as np

from maskwise.models.lessons import Lesson

TRIES = 6
"""Objects tried at most; about one in three can be set in front."""

EXCHANGED = 0.25
"""How often an image's channels are exchanged; its colours are then not told."""

LEAST_SEEN = 0.08
"""Of every object at least this share stays seen."""

SIZES = (300, 6000)
"""Pixels of the objects that are set in front."""


def harden(lesson: Lesson, other: Lesson, random: np.random.Generator) -> Lesson:
    """A lesson with objects of another set in front, and now and then with its channels exchanged."""
    for _ in range(random.binomial(TRIES, 0.5)):
        lesson = _set_in_front(lesson, other, random)
    if random.random() < EXCHANGED:
        order = random.permutation(3)
        kinds = lesson.kinds.copy()
        kinds[:, 1] = -1
        lesson = lesson._replace(image=lesson.image[:, :, order], kinds=kinds)
    return lesson


def _set_in_front(lesson: Lesson, other: Lesson, random: np.random.Generator) -> Lesson:
    """With an object of `other` that is seen whole, moved to where it hides a part of another; unchanged if that would
    hide too much.
    """
    number = int(random.integers(len(other.kinds)))
    parts, (left, top, _, _) = other.parts[number], other.boxes[number]
    height, width = parts.shape
    area = int((parts > 0).sum())
    whole = (other.owner[top : top + height, left : left + width] == number) == (parts > 0)
    if not whole.all() or not SIZES[0] <= area <= SIZES[1]:
        return lesson
    side = lesson.owner.shape[0]
    hidden = lesson.boxes[random.integers(len(lesson.boxes))]
    to_left = int(random.integers(hidden[0] - width + 4, max(hidden[2] - 4, hidden[0] - width + 5)))
    to_top = int(random.integers(hidden[1] - height + 4, max(hidden[3] - 4, hidden[1] - height + 5)))
    first_row, first_column = max(0, -to_top), max(0, -to_left)
    parts = parts[first_row : side - to_top, first_column : side - to_left]
    if not parts.any():
        return lesson
    rows, columns = np.flatnonzero(parts.any(1)), np.flatnonzero(parts.any(0))
    first_row, first_column = first_row + int(rows[0]), first_column + int(columns[0])
    parts = parts[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = parts.shape
    window = (
        slice(to_top + first_row, to_top + first_row + height),
        slice(to_left + first_column, to_left + first_column + width),
    )
    source = (
        slice(top + first_row, top + first_row + height),
        slice(left + first_column, left + first_column + width),
    )
    inside = parts > 0
    owner, image = lesson.owner.copy(), lesson.image.copy()
    owner[window][inside] = len(lesson.kinds)
    seen = np.bincount(owner[owner >= 0].astype(np.int64), minlength=len(lesson.kinds))
    if any(seen[i] < LEAST_SEEN * (numbers > 0).sum() for i, numbers in enumerate(lesson.parts)):
        return lesson
    image[window][inside] = other.image[source][inside]
    box = (window[1].start, window[0].start, window[1].stop, window[0].stop)
    return lesson._replace(
        image=image,
        owner=owner,
        kinds=np.concatenate([lesson.kinds, other.kinds[number : number + 1]]),
        boxes=np.concatenate([lesson.boxes, np.array([box])]),
        parts=[*lesson.parts, np.ascontiguousarray(parts)],
    )

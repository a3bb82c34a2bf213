"""What the choice learns from: images as the eye described them, and what each question means among its finds.

Looking takes a while, so what was seen is kept in files beside the lessons; a file that exists is whole.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.models.descriptions import PAIR, Description, describe
from maskwise.models.lessons import SCENES_A_FILE, Lesson, lesson_to_objects
from maskwise.models.sight import match_masks
from maskwise.models.tiny import MOST_PARTS, Tiny
from maskwise.models.words import words_to_numbers


class Asked(NamedTuple):
    """A question to be learnt: its words as numbers (l, k), those of its noun phrase where it is known, and what it
    means (n, 1 + parts).
    """

    words: NDArray[np.int64]
    phrase: NDArray[np.int64] | None
    meant: NDArray[np.float32]


class Exercise(NamedTuple):
    """A described image and its questions."""

    description: Description
    asked: list[Asked]


class View(NamedTuple):
    """A lesson as it was seen: the description of n finds, and the object of the lesson each is (or -1)."""

    description: Description
    matches: NDArray[np.int64]


def view_truth(lesson: Lesson) -> View:
    """As an eye that never errs sees it."""
    objects = lesson_to_objects(lesson)
    return View(describe(objects, MOST_PARTS), np.arange(len(objects.kinds)))


def view(model: Tiny, lesson: Lesson) -> View:
    """As the model sees it."""
    found = model.find(lesson.image)
    matches = match_masks(found.visible, lesson_to_objects(lesson).visible)
    return View(describe(found, MOST_PARTS), np.array(matches, np.int64))


def view_all(model: Tiny, lessons: Sequence[Lesson], folder: Path) -> Iterator[View]:
    """As `view`, lesson by lesson, from files where they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(lessons), SCENES_A_FILE):
        path = folder / f"{first // SCENES_A_FILE:04}.npz"
        if not path.exists():
            _write(path, [view(model, lesson) for lesson in lessons[first : first + SCENES_A_FILE]])
        yield from _read(path)


def make_exercise(lesson: Lesson, seen: View) -> Exercise:
    """What the questions of a lesson mean among what was seen; a target that was not seen is not meant."""
    place = {int(truth): i for i, truth in enumerate(seen.matches) if truth >= 0}
    asked = []
    for question in lesson.questions:
        meant = np.zeros((len(seen.matches), 1 + MOST_PARTS), np.float32)
        for truth, part in question["targets"]:
            if truth in place:
                meant[place[truth], part] = 1
        phrase = words_to_numbers([question["np"]])[0] if "np" in question else None
        asked.append(Asked(words_to_numbers([question["text"]])[0], phrase, meant))
    return Exercise(seen.description, asked)


def _write(path: Path, views: list[View]) -> None:
    being_written = path.with_suffix(".part.npz")
    np.savez(
        being_written,
        counts=np.array([len(seen.matches) for seen in views]),
        single=np.concatenate([seen.description.single for seen in views]),
        pair=np.concatenate([seen.description.pair.reshape(-1, PAIR) for seen in views]),
        matches=np.concatenate([seen.matches for seen in views]),
    )
    being_written.rename(path)


def _read(path: Path) -> Iterator[View]:
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    at = pairs = 0
    for n in columns["counts"].tolist():
        single, matches = columns["single"][at : at + n], columns["matches"][at : at + n]
        pair = columns["pair"][pairs : pairs + n * n].reshape(n, n, PAIR)
        yield View(Description(single, pair), matches)
        at, pairs = at + n, pairs + n * n

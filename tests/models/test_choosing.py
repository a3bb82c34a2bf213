"""What the choice is taught: questions as they are put, and put otherwise, always with the same meaning."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.models.carriers import make_carriers  # noqa: E402
from maskwise.models.choosing import Drill, make_drill  # noqa: E402
from maskwise.models.exercises import Exercise, make_exercise, view_truth  # noqa: E402
from maskwise.models.lessons import scene_to_lesson  # noqa: E402
from maskwise.models.words import words_to_numbers  # noqa: E402
from maskwise.world import scene  # noqa: E402

COUNT = 200


def exercise_of(question: dict[str, object]) -> Exercise:
    lesson = scene_to_lesson(scene(1, 0, "train"))
    return make_exercise(lesson._replace(questions=[question]), view_truth(lesson))


def drill_of(question: dict[str, object]) -> Drill:
    return make_drill([exercise_of(question)], make_carriers(50, 1), COUNT, np.random.default_rng(1))


def holds(drill: Drill, text: str) -> list[bool]:
    """Whether each question has these words side by side."""
    phrase = words_to_numbers([text])[0]
    return [
        any((row[at : at + len(phrase)] == phrase).all() for at in range(len(row) - len(phrase) + 1))
        for row in drill.words.numpy()
    ]


def test_a_noun_phrase_is_carried_by_other_sentences() -> None:
    drill = drill_of({"text": "Mark the red mug.", "np": "the red mug", "targets": [(0, 0)]})
    own, carried = holds(drill, "mark the red mug ."), holds(drill, "the red mug")
    assert 0.3 * COUNT < sum(own) < 0.7 * COUNT
    assert sum(carried) > 0.85 * COUNT, "nonsense may come between its words, nothing else"
    assert (drill.meant[:, 0, 0] == 1).all()
    assert drill.meant.sum() == COUNT


def test_a_question_whose_noun_phrase_is_not_known_is_put_as_it_is() -> None:
    drill = drill_of({"text": "Mark the red mug.", "targets": []})
    assert sum(holds(drill, "mark")) > 0.95 * COUNT
    assert drill.meant.sum() == 0

"""What people judge of a prediction: codes for statistics, questions for people."""

import msgspec

CRITERIA = {
    "target": ("Right target", "Are these the objects that the question asks for?"),
    "mask_type": (
        "Right mask type",
        "Does it mark what the question asks for: the visible part or the whole object?",
    ),
    "boundary": ("Boundary", "Do the outlines follow the objects?"),
    "completion": (
        "Plausible completion",
        "Where a part is hidden, is the completed shape plausible?",
    ),
    "correct": ("Answer correct", "Do the words answer the question?"),
    "grounded": ("Answer grounded", "Do the words and the masks mean the same things?"),
}
"""Title and question of each criterion; `correct` and `grounded` are those that judges of answers use, too."""

RATING_NAMES = ("wrong", "poor", "fair", "good", "right")
"""The steps of the scale, from 1."""


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion: its code and what people read."""

    code: str
    title: str
    question: str


def list_criteria() -> list[Criterion]:
    """All criteria, in the order in which people are asked."""
    return [
        Criterion(code=code, title=title, question=question)
        for code, (title, question) in CRITERIA.items()
    ]

"""The words of an answer: unique names of objects, and a sentence whose phrases are tied to masks."""

from collections.abc import Sequence

from maskwise.language.word_forms import is_plural
from maskwise.models.tiny.spec import CATEGORIES
from maskwise.schema import Answer, Phrase

SAME_PLACE = 0.05
"""Two centers closer than this fraction of the image are neither left nor right of each other."""


def unique_names(objects: Sequence[tuple[str, str, float]]) -> list[str]:
    """A name for each object, given category, color and horizontal center of each, from front to back.

    Color and category, and where several objects share these, their position.
    """
    names = [""] * len(objects)
    groups: dict[tuple[str, str], list[int]] = {}
    for index, (category, color, _) in enumerate(objects):
        groups.setdefault((category, color), []).append(index)
    for (category, color), members in groups.items():
        base = CATEGORIES[category].name_format.format(color=color, noun=category)
        for index, prefix in _position_prefixes(
            members, [center for _, _, center in objects]
        ).items():
            names[index] = f"{prefix} {base}".strip()
    return names


def _position_prefixes(members: list[int], center_x: Sequence[float]) -> dict[int, str]:
    """Two members: left and right if they are apart, else front and back. More: numbers from the left."""
    if len(members) == 1:
        return {members[0]: ""}
    ordered = sorted(members, key=lambda index: center_x[index])
    if len(ordered) > 2:
        return {index: f"number {number}" for number, index in enumerate(ordered, 1)}
    left, right = ordered
    if center_x[right] - center_x[left] > SAME_PLACE:
        return {left: "left", right: "right"}
    front, back = members
    return {front: "front", back: "back"}


def write_answer(targets: Sequence[tuple[str, str]], *, amodal: bool) -> Answer:
    """A sentence that names every target, given as (name, noun); each name is a phrase of its region, in order."""
    if not targets:
        return Answer(text="There is nothing like that here.")
    plural = len(targets) > 1 or is_plural(targets[0][1])
    text = "They are " if plural else "It is "
    phrases = []
    for number, (name, _) in enumerate(targets):
        text += "" if number == 0 else " and " if number == len(targets) - 1 else ", "
        phrase = f"the {name}"
        phrases.append(
            Phrase(start=len(text), stop=len(text) + len(phrase), regions=(number,))
        )
        text += phrase
    text += ", shown whole." if amodal else "."
    return Answer(text=text, phrases=tuple(phrases))

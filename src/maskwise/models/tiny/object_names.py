"""Names that tell the objects of an image apart: color and category, and a position where several share these."""

from collections.abc import Sequence

from maskwise.models.tiny.spec import CATEGORIES

SAME_PLACE = 0.05
"""Two centers closer than this fraction of the image are neither left nor right of each other."""


def unique_names(objects: Sequence[tuple[str, str, float]]) -> list[str]:
    """A name for each object, given category, color and horizontal center of each, from front to back."""
    centers = [center for _, _, center in objects]
    groups: dict[tuple[str, str], list[int]] = {}
    for index, (category, color, _) in enumerate(objects):
        groups.setdefault((category, color), []).append(index)
    names = [""] * len(objects)
    for (category, color), members in groups.items():
        name_format = CATEGORIES[category].name_format
        shared_name = name_format.format(color=color, noun=category)
        for index, position in _positions(members, centers).items():
            names[index] = f"{position} {shared_name}".strip()
    return names


def _positions(members: list[int], centers: Sequence[float]) -> dict[int, str]:
    """The position of each member in words; empty for a single one.

    Two members: left and right if they are apart, else front and back. More: numbers from the left. members: indices,
    from front to back. centers: horizontal centers of all objects, as fractions of the image.
    """
    if len(members) == 1:
        return {members[0]: ""}
    from_left = sorted(members, key=lambda index: centers[index])
    if len(members) > 2:
        return {index: f"number {number}" for number, index in enumerate(from_left, 1)}
    left, right = from_left
    if centers[right] - centers[left] > SAME_PLACE:
        return {left: "left", right: "right"}
    front, back = members
    return {front: "front", back: "back"}

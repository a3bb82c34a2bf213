"""Checks of the words of a question: what it gives away, coordinates and offensive words."""

import functools
import re
from collections.abc import Iterator

from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.filters.filter import FilterContext
from maskwise.language.category_names import find_category_name
from maskwise.language.lexicons import read_lines
from maskwise.language.tokens import split_words
from maskwise.language.word_forms import singular_forms

NUMBER = r"-?\d+(?:\.\d+)?"
COORDINATES = re.compile(
    "|".join(
        (
            rf"[\[(<{{]\s*{NUMBER}(?:\s*[,;x×]\s*{NUMBER})+\s*[\])>}}]",  # (120, 45), [0.1, 0.2, 0.3, 0.4]
            rf"(?<![\d,.]){NUMBER}(?:\s*,\s*{NUMBER}){{3}}(?![\d,.]*\d)",  # 12, 40, 80, 120
            r"\b\d{2,}\s*[x×]\s*\d{2,}\b",  # 640x480, but not 4x4
            r"\b\d+(?:st|nd|rd|th)?[\s-]*(?:px|pixels?)\b",
            rf"\b[xy][12]?\s*[=:]\s*{NUMBER}",
            r"\b(?:region|mark|marker|mask|box|bbox|segment|instance|annotation|object|target|label)s?\s*(?:no\.?|number|id)?"
            r"\s*#?\d+\b",
            r"\b(?:marked|labell?ed|tagged)\s+(?:as\s+|with\s+)?#?\d+\b",
            r"(?:^|\b(?:is|are|of|does|do|can|segment|find|the|in|on|behind)\s+)#\d+\b",  # but not "jersey #23"
            r"\b[a-z]+_\d+\b",  # knife_1
            r"[\[<]/?(?:seg|region|mask|box|bbox|ref|rej)[\s_]?\d*[\]>]",
            r"\b(?:bounding box(?:es)?|coordinates|bbox)\b",
        )
    ),
    re.IGNORECASE,
)

HINTS = re.compile(r"[\d\[<]|box|coord", re.IGNORECASE)
"""What every text with coordinates contains; most questions contain nothing of it."""


def find_coordinates(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """Coordinates, sizes in pixels or the number of a mark in the question."""
    coordinate = find_coordinate(draft.question)
    return f"the question contains {coordinate!r}" if coordinate is not None else None


def find_coordinate(text: str) -> str | None:
    """The first part of a text that looks like a coordinate or the number of a mark; None if there is none."""
    match = COORDINATES.search(text) if HINTS.search(text) else None
    return None if match is None else match.group().strip()


def find_category_leak(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """The name of a target, or of the object it is a part of, in a reasoning question."""
    if draft.kind != "reasoning":
        return None
    for name in dict.fromkeys(_names(draft, image)):
        name_in_question = find_category_name(draft.question, name)
        if name_in_question is not None:
            return f"{name_in_question!r} reveals the target {name.strip()!r}"
    return None


def find_answer_leak(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """The noun of a phrase of the answer in a reasoning question."""
    if draft.kind != "reasoning":
        return None
    for target in draft.targets:
        name_in_question = find_category_name(draft.question, target.phrase)
        if name_in_question is not None:
            return f"{name_in_question!r} reveals {target.phrase!r} of the answer"
    return None


def find_toxic_word(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """An offensive word in the question or the answer."""
    word = find_toxic(f"{draft.question} . {draft.answer}")
    return None if word is None else f"the text contains {word!r}"


def find_toxic(text: str) -> str | None:
    """The first word or phrase of a text that is on the list, also in the plural; None if there is none."""
    words = split_words(text)
    listed = load_toxic_words()
    for place, word in enumerate(words):
        for form in singular_forms(word):
            for phrase in listed.get(form, ()):
                if words[place - len(phrase) + 1 : place] == phrase[:-1]:
                    return " ".join(phrase)
    return None


@functools.cache
def load_toxic_words() -> dict[str, list[tuple[str, ...]]]:
    """The listed words and phrases by their last words."""
    phrases: dict[str, list[tuple[str, ...]]] = {}
    for line in read_lines("toxic_words"):
        words = split_words(line)
        phrases.setdefault(words[-1], []).append(words)
    return phrases


def _names(draft: Draft, image: SourceImage) -> Iterator[str]:
    """The names of the targets and of the objects they are parts of."""
    for id in draft.region_ids:
        region = image.by_id.get(id)
        while region is not None:
            yield region.name
            region = (
                image.by_id.get(region.part_of) if region.part_of is not None else None
            )

"""Texts about a mirrored image: `left` and `right` change places, in questions, answers and names."""

import re

from maskwise.schema import Answer, Phrase

_SIDES = re.compile(r"\b(left|right)(?=(?:most|wards?|ward|-hand|hand)?\b)", re.IGNORECASE)
"""`left` or `right` as a word, or at the beginning of leftmost, rightwards, left-hand."""

_NO_SIDE = re.compile(
    r"\bright (?:now|away|there|here|after|before|next|behind|beside|above|below|under|in|on top|at|to eat|angles?)\b"
    r"|\b(?:is|be|all|that's|not|am|are|the) right[.?!,]"
    r"|\bleft(?:overs?| over| behind| alone| open| out| unattended)\b"
    r"|\b(?:is|are|was|were|has|have|had|been|what's|nothing|anything) left\b"
    r"|\b(?:counter-?|anti-?)?clockwise\b",
    re.IGNORECASE,
)
"""Wordings in which the words may mean something else than a side, or a direction that cannot be swapped."""

_SWAPPED = {"left": "right", "right": "left"}


def can_mirror(text: str) -> bool:
    """True if every `left` and `right` in a text names a side, so that swapping them is correct."""
    return _NO_SIDE.search(text) is None


def mirror_text(text: str) -> str:
    """The text with the sides swapped."""
    return _SIDES.sub(_swap, text)


def mirror_answer(answer: Answer) -> Answer:
    """The answer with the sides swapped; phrases keep their words, whose characters may move."""

    def moved(position: int) -> int:
        return len(mirror_text(answer.text[:position])) if _between_words(answer.text, position) else -1

    phrases = tuple(
        Phrase(start=moved(one.start), stop=moved(one.stop), regions=one.regions) for one in answer.phrases
    )
    return Answer(text=mirror_text(answer.text), phrases=phrases)


def can_mirror_answer(answer: Answer | None) -> bool:
    """True if the sides of an answer can be swapped and no phrase begins or ends within such a word."""
    return answer is None or (
        can_mirror(answer.text)
        and all(
            _between_words(answer.text, place)
            for phrase in answer.phrases
            for place in (phrase.start, phrase.stop)
        )
    )


def _between_words(text: str, position: int) -> bool:
    """False if a side's word would be cut at this position."""
    return len(mirror_text(text[:position]) + mirror_text(text[position:])) == len(
        mirror_text(text)
    ) and mirror_text(text[:position]) + mirror_text(text[position:]) == mirror_text(text)


def _swap(found: re.Match[str]) -> str:
    word = found[1]
    swapped = _SWAPPED[word.lower()]
    if word.isupper():
        return swapped.upper()
    return swapped.capitalize() if word[0].isupper() else swapped

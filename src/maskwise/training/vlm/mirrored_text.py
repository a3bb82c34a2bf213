"""Texts about a mirrored image: `left` and `right` change places, in questions, answers and names."""

import re

from maskwise.schema import Answer, Phrase

_SIDES = re.compile(r"\b(left|right)(?=(?:most|wards?|-hand|hand)?\b)", re.IGNORECASE)
"""`left` or `right` as a word, or at the beginning of leftmost, rightwards, left-hand."""

_CERTAIN = re.compile(
    r"\b(?:left|right)(?:most|wards?|-?hand)\b"
    r"|\b(?:left|right) (?:of|side|half|corner|edge|end|part|third|hand|arm|leg|foot|eye|ear|wing|paw|shoe|glove)\b"
    r"|\b(?:top|bottom|upper|lower|far|front|back|rear)[ -](?:left|right)\b"
    r"|\b(?:on|to|at|from|in|towards?) (?:the|its|their|my|your|his|her) (?:left|right)"
    r"(?= of\b| and\b| or\b|[.,;:?!)]|$)",
    re.IGNORECASE,
)
"""Wordings in which the words name a side. Elsewhere they may not: what is left, the right tool, right behind."""

_ROTATION = re.compile(r"\b(?:counter-?|anti-?)?clockwise\b", re.IGNORECASE)

_SWAPPED = {"left": "right", "right": "left"}


def can_mirror(text: str) -> bool:
    """True if every `left` and `right` in a text certainly names a side, so that swapping them is correct."""
    if _ROTATION.search(text):
        return False
    certain = sum(len(_SIDES.findall(match[0])) for match in _CERTAIN.finditer(text))
    return certain == len(_SIDES.findall(text))


def mirror_text(text: str) -> str:
    """The text with the sides swapped."""
    return _SIDES.sub(_swap, text)


def mirror_answer(answer: Answer) -> Answer:
    """The answer with the sides swapped (`can_mirror_answer`); phrases keep their words, whose characters may move."""

    def moved(position: int) -> int:
        return len(mirror_text(answer.text[:position]))

    phrases = tuple(
        Phrase(
            start=moved(phrase.start), stop=moved(phrase.stop), regions=phrase.regions
        )
        for phrase in answer.phrases
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
    return mirror_text(text[:position]) + mirror_text(text[position:]) == mirror_text(
        text
    )


def _swap(match: re.Match[str]) -> str:
    word = match[1]
    swapped = _SWAPPED[word.lower()]
    if word.isupper():
        return swapped.upper()
    return swapped.capitalize() if word[0].isupper() else swapped

"""The regions that an image's questions speak of, each once, and the phrases of answers that name them."""

import re
from collections.abc import Sequence

import msgspec

from maskwise.formats.draft import Outline
from maskwise.schema import Answer, Phrase

MAX_PHRASE = 256
"""How many characters before a token are searched for a name."""


class Targets:
    """Gathers the outlines of one image. The same name and segmentations again are the same region."""

    def __init__(self) -> None:
        self._outlines: dict[str, Outline] = {}
        self._ids: dict[tuple[str, bytes, bytes], str] = {}

    def add(self, name: str, record: str, *, visible: object = None, amodal: object = None) -> str:
        """The id of a region, new or met before."""
        key = (name, _bytes(visible), _bytes(amodal))
        if key not in self._ids:
            id = self._ids[key] = str(len(self._ids))
            self._outlines[id] = Outline(id, name, record, visible=visible, amodal=amodal)
        return self._ids[key]

    def link(self, part: str, whole: str) -> None:
        """Say which region another is a part of."""
        if part != whole:
            self._outlines[part] = self._outlines[part]._replace(part_of=whole)

    @property
    def outlines(self) -> tuple[Outline, ...]:
        """All of them, in order of first appearance."""
        return tuple(self._outlines.values())


def _bytes(segmentation: object) -> bytes:
    raw = isinstance(segmentation, msgspec.Raw)
    return bytes(segmentation) if raw else msgspec.json.encode(segmentation)  # type: ignore[call-overload]


def parse_answer(text: str, token: str, names: Sequence[str]) -> tuple[Answer, int]:
    """An answer whose masks are marked by a token after the words that name them, and how often the token stands.

    The token goes, with the space before it; where it stands as often as there are names, the words before the k-th
    one become the phrase of target k: the target's own name where it stands there, otherwise the last word.
    """
    *pieces, rest = text.split(token)
    words, phrases = "", []
    for target, piece in enumerate(pieces):
        first = len(words)
        words += piece.rstrip() if piece.strip() else ""
        if len(pieces) == len(names):
            start = first + _phrase_start(words[first:], names[target])
            if start < len(words):
                phrases.append(Phrase(start=start, stop=len(words), regions=(target,)))
    return Answer(text=words + rest, phrases=tuple(phrases)), len(pieces)


def find_wholes(answer: Answer, targets: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Which target is a part of which, where the answer's words say so: `cup_1's handle` is of `cup_1`."""
    said = {
        target: answer.text[phrase.start : phrase.stop]
        for phrase in answer.phrases
        for target in phrase.regions
    }
    wholes = {words: target for target, words in said.items() if ":" not in names[target]}
    found = {}
    for target, words in said.items():
        whole, owner, _ = words.rpartition("'s ")
        if owner and ":" in names[target] and whole in wholes:
            found[targets[target]] = targets[wholes[whole]]
    return found


def _phrase_start(words: str, name: str) -> int:
    """Where the phrase that ends `words` begins; their length where there is none."""
    tail = words[-MAX_PHRASE:]
    whole, _, part = name.partition(":")
    owner = _spelt(whole) + r"(?:_\d+)?"
    named = owner + r"'s\s+" + _spelt(part) + r"(?:_\d+)?" if part else owner
    match = re.search(rf"(?<!\w){named}$", tail, re.IGNORECASE) if whole else None
    if match:
        return len(words) - len(tail) + match.start()
    last = (tail.split() or [""])[-1]
    return len(words) - len(last) if any(map(str.isalnum, last)) else len(words)


def _spelt(name: str) -> str:
    """A pattern of a category name, its underscores also as spaces."""
    return r"[_\s]".join(map(re.escape, re.split(r"[_\s]+", name.strip())))

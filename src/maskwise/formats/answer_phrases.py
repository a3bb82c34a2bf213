"""Parse answers whose masks are marked by a token such as `[SEG]`: the phrases that name each target."""

import re
from collections.abc import Sequence

from maskwise.schema import Answer, Phrase

MAX_PHRASE = 256
"""How many characters before a token are searched for a name."""


def parse_answer(text: str, token: str, names: Sequence[str]) -> tuple[Answer, int]:
    """The answer without the tokens that mark its masks, and the number of tokens.

    A token follows the words that name its mask; it is removed with the space before it. If there are as many tokens
    as names, the words before token k become the phrase of target k: the target's own name if it is there, otherwise
    the last word.
    """
    *pieces, rest = text.split(token)
    words = ""
    phrases = []
    for target, piece in enumerate(pieces):
        first = len(words)
        words += piece.rstrip() if piece.strip() else ""
        if len(pieces) == len(names):
            start = first + _phrase_start(words[first:], names[target])
            if start < len(words):
                phrases.append(Phrase(start=start, stop=len(words), regions=(target,)))
    return Answer(text=words + rest, phrases=tuple(phrases)), len(pieces)


def find_wholes(
    answer: Answer, targets: Sequence[str], names: Sequence[str]
) -> dict[str, str]:
    """Which target is a part of which, if the answer says so: `cup_1's handle` is a part of `cup_1`."""
    said = {
        target: answer.text[phrase.start : phrase.stop]
        for phrase in answer.phrases
        for target in phrase.regions
    }
    wholes = {
        words: target for target, words in said.items() if ":" not in names[target]
    }
    found = {}
    for target, words in said.items():
        whole, owner, _ = words.rpartition("'s ")
        if owner and ":" in names[target] and whole in wholes:
            found[targets[target]] = targets[wholes[whole]]
    return found


def _phrase_start(words: str, name: str) -> int:
    """Where the phrase at the end of `words` begins; the length of `words` if there is none."""
    tail = words[-MAX_PHRASE:]
    whole, _, part = name.partition(":")
    owner = _name_pattern(whole) + r"(?:_\d+)?"
    named = owner + r"'s\s+" + _name_pattern(part) + r"(?:_\d+)?" if part else owner
    match = re.search(rf"(?<!\w){named}$", tail, re.IGNORECASE) if whole else None
    if match:
        return len(words) - len(tail) + match.start()
    last = (tail.split() or [""])[-1]
    return len(words) - len(last) if any(map(str.isalnum, last)) else len(words)


def _name_pattern(name: str) -> str:
    """A pattern for a category name in which underscores may also be spaces."""
    return r"[_\s]".join(map(re.escape, re.split(r"[_\s]+", name.strip())))

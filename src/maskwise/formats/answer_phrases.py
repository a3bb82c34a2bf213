"""Parse answers whose masks are marked by a token such as `[SEG]`: the phrases that name each target."""

import re
from collections.abc import Sequence

from maskwise.schema import Answer, Phrase

MAX_PHRASE = 256
"""How many characters before a token are searched for a name: names of categories have
at most some dozens, and the search stays fast in answers of any length.
"""

NUMBER = r"(?:_\d+)?"
"""Answers number the instances of a category: `cup_1`, `cup_2`."""


def parse_answer(text: str, token: str, names: Sequence[str]) -> tuple[Answer, int]:
    """The answer without the tokens that mark its masks, and the number of tokens.

    A token follows the words that name its mask; it is removed with the space before
    it. If there are as many tokens as names, the words before token k become the phrase
    of target k: the target's own name if it is there, otherwise the last word.
    """
    *pieces, rest = text.split(token)
    # With another number of tokens it is not known which mask belongs to which target.
    has_phrases = len(pieces) == len(names)
    words = ""
    phrases = []
    for target, piece in enumerate(pieces):
        piece_start = len(words)
        words += piece.rstrip()
        if not has_phrases:
            continue
        piece_words = words[piece_start:]
        start = piece_start + _find_phrase(piece_words, names[target])
        if start < len(words):
            phrases.append(Phrase(start=start, stop=len(words), regions=(target,)))
    answer = Answer(text=words + rest, phrases=tuple(phrases))
    return answer, len(pieces)


def find_wholes(
    answer: Answer, targets: Sequence[str], names: Sequence[str]
) -> dict[str, str]:
    """Which target is a part of which, if the answer says so: `cup_1's handle` is a
    part of `cup_1`.

    targets, names: ids and category names of the targets, in order; the category of a
    part is `object:part`. Returns ids of parts and of the objects they belong to.
    """
    words_by_target = {}
    for phrase in answer.phrases:
        for target in phrase.regions:
            words_by_target[target] = answer.text[phrase.start : phrase.stop]
    objects_by_words = {}
    for target, words in words_by_target.items():
        if ":" not in names[target]:
            objects_by_words[words] = target
    wholes = {}
    for target, words in words_by_target.items():
        if ":" not in names[target]:
            continue
        owner_words, possessive, _ = words.rpartition("'s ")
        if possessive and owner_words in objects_by_words:
            owner = objects_by_words[owner_words]
            wholes[targets[target]] = targets[owner]
    return wholes


def _find_phrase(words: str, name: str) -> int:
    """Where the phrase at the end of `words` begins; the length of `words` if there is
    none.
    """
    tail = words[-MAX_PHRASE:]
    object_name, _, part_name = name.partition(":")
    if object_name:
        pattern = _name_pattern(object_name) + NUMBER
        if part_name:
            pattern += r"'s\s+" + _name_pattern(part_name) + NUMBER
        match = re.search(rf"(?<!\w){pattern}$", tail, re.IGNORECASE)
        if match:
            tail_start = len(words) - len(tail)
            return tail_start + match.start()
    tail_words = tail.split()
    if not tail_words:
        return len(words)
    last_word = tail_words[-1]
    is_word = any(character.isalnum() for character in last_word)
    return len(words) - len(last_word) if is_word else len(words)


def _name_pattern(name: str) -> str:
    """A pattern for a category name in which underscores may also be spaces."""
    name_words = re.split(r"[_\s]+", name.strip())
    return r"[_\s]".join(re.escape(word) for word in name_words)

"""Normalize the spelling of a question: lower case, contractions expanded, misspelt cue words corrected.

The weights of the classifier were trained on exactly these words, punctuation included, so that they are not those of
`language/tokens.py`.
"""

import re
from collections.abc import Iterable

from maskwise.language.lexicons import read_pairs, read_words

MAX_CHARACTERS = 4000
"""Characters of a question that are read; the rest is ignored. Nobody asks so long, and the time stays bounded."""

MIN_LETTERS = 4
"""Shorter words are never corrected: most of them are one edit away from several others."""

_ENDS = "|".join(read_words("ends"))
"""The two ends of an object, as in "from nose to tail"."""

_NEGATED_VERBS = "is|are|was|were|do|does|did|has|have|had|need|must|should|would|could"
_REPLACEMENTS = (
    # Apostrophes of other keyboards.
    (re.compile(r"[’‘`´]"), "'"),
    # Negations become a word of their own, also without their apostrophe.
    (re.compile(r"\bcan(not|'t|t)\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (re.compile(rf"\b({_NEGATED_VERBS})n'?t\b"), r"\1 not"),
    # "what's" and "whats" are "what is"; "its" is not "it is".
    (re.compile(r"\b((what|where|who|that|here|there)'?|it')s\b"), r"\1 is"),
    (re.compile(r"(?<=[a-z])' is\b"), " is"),
    (re.compile(r"'(d|ll|ve|re|m|s)\b"), r" '\1"),
    # The mark of an abbreviation ends no clause.
    (re.compile(r"\b(incl|excl|inc)\."), r"\1"),
    # A full-length portrait is not the full portrait.
    (re.compile(r"\bfull-(length|sized?|grown|time|face|scale)\b"), r"full\1"),
    # "Were the fence not there" is "if the fence not there".
    (
        re.compile(
            r"(^|[.?!;,:] )(were|had)(?= (the|a|an|it|this|that|we|you|all|no|every|any|there) )"
        ),
        r"\1if",
    ),
    # "from nose to tail", "from edge to edge": all of it.
    (
        re.compile(rf"\b(from )?({_ENDS}) to ({_ENDS})\b|\bfrom (\w+) to \4\b"),
        "from end to end",
    ),
    # "fence or no fence".
    (re.compile(r"\b(\w+) or no \1\b"), "no matter"),
)
"""Patterns and what replaces them, in this order: later ones see the results of earlier ones."""

_WORD = re.compile(r"'?[a-z]+|[0-9]+|[,;:.?!()&+%]|(?<=\s)-+(?=\s)|[—–]")
"""A word, a number or a mark. A hyphen counts as a dash between spaces only."""

_SLANG = read_pairs("misspellings")
"""Frequent misspellings that are too short to be corrected, or two edits away."""


def split_words(question: str) -> list[str]:
    """Words and punctuation marks of a question, in lower case, contractions expanded."""
    text = question[:MAX_CHARACTERS].lower()
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return _WORD.findall(text)


class SpellingCorrector:
    """Replaces an unknown word by a word of `targets` that is one edit away."""

    def __init__(self, targets: Iterable[str], known: Iterable[str]) -> None:
        self.known = frozenset(known)
        # Two words one edit apart have a form with at most one letter deleted in common: candidates are looked up by
        # these forms, and no target has to be compared that has none.
        self._by_deletion: dict[str, list[str]] = {}
        for word in targets:
            for key in (word, *_deletions(word)):
                self._by_deletion.setdefault(key, []).append(word)

    def correct(self, word: str) -> str:
        """The word itself where it is known, short, or close to no target."""
        word = _SLANG.get(word, word)
        if len(word) < MIN_LETTERS or not word.isalpha() or self._is_known(word):
            return word
        candidates: set[str] = set()
        for key in (word, *_deletions(word)):
            candidates.update(self._by_deletion.get(key, ()))
        close = [
            candidate
            for candidate in candidates
            # Two words of MIN_LETTERS letters that differ in one are too often different words.
            if max(len(candidate), len(word)) > MIN_LETTERS
            and _one_edit_apart(word, candidate)
        ]
        # The longest candidate explains most letters; the alphabet decides among equals, so that the result is fixed.
        return max(close, key=lambda target: (len(target), target), default=word)

    def _is_known(self, word: str) -> bool:
        return word in self.known or word.removesuffix("s") in self.known


def _deletions(word: str) -> list[str]:
    """The word with any one letter removed."""
    return [word[:place] + word[place + 1 :] for place in range(len(word))]


def _one_edit_apart(a: str, b: str) -> bool:
    """Whether one letter substituted, inserted or deleted, or two neighbours swapped, turns a into b."""
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    rest_of_a = a[shared:]
    rest_of_b = b[shared:]
    substituted = rest_of_a[1:] == rest_of_b[1:]
    deleted = rest_of_a[1:] == rest_of_b
    inserted = rest_of_a == rest_of_b[1:]
    swapped = rest_of_a[1::-1] == rest_of_b[:2] and rest_of_a[2:] == rest_of_b[2:]
    return substituted or deleted or inserted or swapped

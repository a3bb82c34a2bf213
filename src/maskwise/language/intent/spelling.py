"""Normalize the spelling of a question: lower case, contractions expanded, misspelt cue words corrected."""

import re
from collections.abc import Iterable

MAX_CHARACTERS = 4000
"""Characters of a question that are read; the rest is ignored."""

MIN_LETTERS = 4
"""Shorter words are never corrected."""

_ENDS = (
    "nose|snout|beak|muzzle|head|neck|collar|crown|tail|toes?|foot|feet|hoof|hooves|hem|tip|top|bottom|base|rim|lid|roof"
    "|wheels?|tyres?|tires?|bow|stern|mast|keel|front|back|rear|bumper|hilt|handle|blade|spout|roots?|sole|heel|edge|end"
)
"""The two ends of an object, as in "from nose to tail"."""

_REPLACEMENTS = (
    (re.compile(r"[’‘`´]"), "'"),
    (re.compile(r"\bcan(not|'t|t)\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (
        re.compile(
            r"\b(is|are|was|were|do|does|did|has|have|had|need|must|should|would|could)n'?t\b"
        ),
        r"\1 not",
    ),
    (re.compile(r"\b((what|where|who|that|here|there)'?|it')s\b"), r"\1 is"),
    (re.compile(r"(?<=[a-z])' is\b"), " is"),
    (re.compile(r"'(d|ll|ve|re|m|s)\b"), r" '\1"),
    (re.compile(r"\b(incl|excl|inc)\."), r"\1"),
    (re.compile(r"\bfull-(length|sized?|grown|time|face|scale)\b"), r"full\1"),
    (
        re.compile(
            r"(^|[.?!;,:] )(were|had)(?= (the|a|an|it|this|that|we|you|all|no|every|any|there) )"
        ),
        r"\1if",
    ),
    (
        re.compile(rf"\b(from )?({_ENDS}) to ({_ENDS})\b|\bfrom (\w+) to \4\b"),
        "from end to end",
    ),
    (re.compile(r"\b(\w+) or no \1\b"), "no matter"),
)
_WORD = re.compile(r"'?[a-z]+|[0-9]+|[,;:.?!()&+%]|(?<=\s)-+(?=\s)|[—–]")
_SLANG = {
    **{
        "u": "you",
        "wat": "what",
        "teh": "the",
        "wich": "which",
        "w": "with",
        "evn": "even",
    },
    **{"jus": "just", "jsut": "just", "olny": "only", "onyl": "only"},
}


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
        self._by_deletion: dict[str, list[str]] = {}
        for word in targets:
            for key in (word, *_deletions(word)):
                self._by_deletion.setdefault(key, []).append(word)

    def correct(self, word: str) -> str:
        """The word itself where it is known, short, or close to no target."""
        word = _SLANG.get(word, word)
        if (
            len(word) < MIN_LETTERS
            or not word.isalpha()
            or word in self.known
            or word.removesuffix("s") in self.known
        ):
            return word
        found = {
            target
            for key in (word, *_deletions(word))
            for target in self._by_deletion.get(key, ())
        }
        close = [
            t
            for t in found
            if max(len(t), len(word)) > MIN_LETTERS and _one_edit_apart(word, t)
        ]
        return max(close, key=lambda target: (len(target), target), default=word)


def _deletions(word: str) -> list[str]:
    """The word with any one letter removed."""
    return [word[:place] + word[place + 1 :] for place in range(len(word))]


def _one_edit_apart(a: str, b: str) -> bool:
    """Whether one letter substituted, inserted or deleted, or two neighbours swapped, turns a into b."""
    same = next(
        (place for place, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b))
    )
    a = a[same:]
    b = b[same:]
    return (
        a[1:] == b[1:]
        or a[1:] == b
        or a == b[1:]
        or (a[1::-1] == b[:2] and a[2:] == b[2:])
    )

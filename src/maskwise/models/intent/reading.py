"""From a question to ideas: words that speak of seeing and hiding by what they mean, all other words as things."""

import re
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Literal, NamedTuple

Wanted = Literal["visible", "amodal"]
"""The two mask types a question may want."""

LONGEST = 4000
"""Characters of a question that are read; what follows them is not."""

SHORTEST = 4
"""Letters a word must have to be taken for a misspelling."""

THINGS = ("THING", "THINGS")
"""The idea of every word that no list has: one thing, or several."""

NAMES = (*THINGS, "VESSEL", "VESSELS", "COLLECTIVE", "SCENE")
"""Ideas of names: a misspelt name is as good as any other, so it is not mended."""

ACTS = ("DOING", "DONE")
"""The idea of such words with -ing or -ed that no thing follows: "peering through", not "a parked car"."""

START = "^"
"""Stands before the first word."""

_ENDS = (
    "nose|snout|beak|muzzle|head|neck|collar|crown|tail|toes?|foot|feet|hoof|hooves|hem|tip|top|bottom|base|rim|lid|roof"
    "|wheels?|tyres?|tires?|bow|stern|mast|keel|front|back|rear|bumper|hilt|handle|blade|spout|roots?|sole|heel|edge|end"
)
"""What a thing reaches from and to, "from nose to tail"."""

_SPELLINGS = (
    (re.compile(r"[’‘`´]"), "'"),
    (re.compile(r"\bcan(not|'t|t)\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (
        re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|need|must|should|would|could)n'?t\b"),
        r"\1 not",
    ),
    (re.compile(r"\b((what|where|who|that|here|there)'?|it')s\b"), r"\1 is"),
    (re.compile(r"(?<=[a-z])' is\b"), " is"),
    (re.compile(r"'(d|ll|ve|re|m|s)\b"), r" '\1"),
    (re.compile(r"\b(incl|excl|inc)\."), r"\1"),
    (re.compile(r"\bfull-(length|sized?|grown|time|face|scale)\b"), r"full\1"),
    (
        re.compile(r"(^|[.?!;,:] )(were|had)(?= (the|a|an|it|this|that|we|you|all|no|every|any|there) )"),
        r"\1if",
    ),
    (re.compile(rf"\b(from )?({_ENDS}) to ({_ENDS})\b|\bfrom (\w+) to \4\b"), "from end to end"),
    (re.compile(r"\b(\w+) or no \1\b"), "no matter"),
)
_WORD = re.compile(r"'?[a-z]+|[0-9]+|[,;:.?!()&+%]|(?<=\s)-+(?=\s)|[—–]")
_MARKS = {
    ":": ";",
    "-": ";",
    "—": ";",
    "–": ";",
    "!": ".",
    "(": ",",
    ")": ",",
    "&": "and",
    "+": "and",
    "%": "PART",
}
_SLANG = {
    **{"u": "you", "wat": "what", "teh": "the", "wich": "which", "w": "with", "evn": "even"},
    **{"jus": "just", "jsut": "just", "olny": "only", "onyl": "only"},
}


class Reading(NamedTuple):
    """A question as words (mended, joined, silent ones gone) and the idea of each; equally many."""

    words: list[str]
    ideas: list[str]


class Lexicon(NamedTuple):
    """ideas: word to idea. silent: words passed over. groups: first word to rows of words and what they become."""

    ideas: dict[str, str]
    silent: frozenset[str]
    known: frozenset[str]
    groups: dict[str, list[tuple[tuple[str, ...], str]]]


class Reader:
    """Reads questions. `known`: further words that are spelt as they should be, besides those of the lexicon."""

    def __init__(self, known: Iterable[str]) -> None:
        self.lexicon = load_lexicon()
        joined = {word for groups in self.lexicon.groups.values() for group, _ in groups for word in group}
        self.known = self.lexicon.known.union(known, joined, self.lexicon.ideas, self.lexicon.silent)
        self._near: dict[str, list[str]] = {}
        for word, idea in sorted(self.lexicon.ideas.items()):
            if len(word) >= SHORTEST and word.isalpha() and idea not in (word, *NAMES):
                for key in (word, *_shortened(word)):
                    self._near.setdefault(key, []).append(word)

    def read(self, question: str) -> Reading:
        """Words and ideas in order. Things in a row count once, as the last of them; no letters, no words."""
        reading = Reading([], [])
        for word in self._join([START, *(self._mend(word) for word in split(question))]):
            idea = self._idea(word)
            while idea in THINGS and reading.ideas and reading.ideas[-1] in THINGS + ACTS:
                reading.words.pop()
                reading.ideas.pop()
            if idea:
                reading.words.append(word)
                reading.ideas.append(idea)
        return reading

    def _mend(self, word: str) -> str:
        """The word of the lexicon that is one slip of the pen away, if the word is not known."""
        word = _SLANG.get(word, word)
        if (
            len(word) < SHORTEST
            or not word.isalpha()
            or word in self.known
            or word.removesuffix("s") in self.known
        ):
            return word
        found = {near for key in (word, *_shortened(word)) for near in self._near.get(key, ())}
        close = [near for near in found if max(len(near), len(word)) > SHORTEST and _one_slip(word, near)]
        return max(close, key=lambda near: (len(near), near), default=word)

    def _join(self, words: list[str]) -> Iterator[str]:
        place = 0
        while place < len(words):
            for group, joined in self.lexicon.groups.get(words[place], ()):
                if tuple(words[place : place + len(group)]) == group:
                    yield joined
                    place += len(group)
                    break
            else:
                yield words[place]
                place += 1

    def _idea(self, word: str) -> str:
        """The idea of a word; empty for silent ones."""
        if word in self.lexicon.silent or word == START:
            return ""
        if word in self.lexicon.ideas:
            return self.lexicon.ideas[word]
        if not word.lstrip("'").isalpha():
            return THINGS[0] if word.isdigit() else _MARKS.get(word, word)
        if len(word) > SHORTEST and word.endswith(("ing", "ed")):
            return ACTS[word.endswith("ed")]
        return THINGS[len(word) > 3 and word.endswith("s") and not word.endswith("ss")]


def split(question: str) -> list[str]:
    """Words and marks of a question, in small letters, short forms written out."""
    text = question[:LONGEST].lower()
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return _WORD.findall(text)


def load_lexicon() -> Lexicon:
    """The lists of `lexicon.txt`."""
    text = resources.files("maskwise.models.intent").joinpath("lexicon.txt").read_text("utf-8")
    lists, groups = text.split("----\n")
    ideas: dict[str, str] = {}
    apart: dict[str, set[str]] = {"SILENT": set(), "KNOWN": set()}
    for line in _lines(lists):
        idea, words = line.split(":")
        for form in (form for word in words.split() for form in _forms(word)):
            if idea in apart:
                apart[idea].add(form)
            else:
                ideas.setdefault(form, form if idea == "SMALL" else idea)
    return Lexicon(ideas, frozenset(apart["SILENT"]), frozenset(apart["KNOWN"]), _read_groups(groups))


def _read_groups(text: str) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """First word to groups, longest first."""
    groups: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for line in _lines(text):
        left, joined = line.split(" = ")
        for group in left.split(", "):
            words = tuple(split(group.replace("-", " ")))
            if group.startswith(START):
                words = (START, *words)
            groups.setdefault(words[0], []).append((words, joined))
    for found in groups.values():
        found.sort(key=lambda group: -len(group[0]))
    return groups


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line and not line.startswith("#"))


def _forms(word: str) -> list[str]:
    if not word.endswith("+"):
        return [word]
    base = word[:-1]
    stem = base.removesuffix("e")
    plural = "es" if base.endswith(("s", "sh", "ch")) else "s"
    return [base, base + plural, stem + "ed", stem + "ing"]


def _shortened(word: str) -> list[str]:
    """The word with any one letter left out."""
    return [word[:place] + word[place + 1 :] for place in range(len(word))]


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter changed, added, dropped, or two neighbours swapped make b of a."""
    same = next((place for place, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    a, b = a[same:], b[same:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:])

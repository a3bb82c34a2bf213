"""What is counted in a reading: ideas in a row, ideas under a negation, and the bare course of the argument."""

import itertools
from collections.abc import Iterator
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from maskwise.models.intent.reading import Reading

BITS = 20
"""Features are numbered by their checksum, this many bits of it."""

COURSE = {
    "hidden": "HIDDEN HIDES BEHIND REST OCCLUDER OCCLUSION FRONT FRAME",
    "seen": "SEEN SEE FREE",
    "whole": "WHOLE WHOLLY TRUE REALLY CONTINUOUS",
    "all": "ALL",
    "more": "INCLUDE COMPLETE GUESS ALSO",
    "less": "EXCLUDE IGNORE STOP WITHOUT CUT",
    "not": "NOT NO NEEDLESS RATHER",
    "only": "ONLY ENOUGH",
    "even": "EVEN",
    "if": "IMAGINE ASIF IF WOULD",
    "gone": "GONE GLASS REMOVE THERE THROUGH AWAY",
    "leave": "LEAVE",
    "but": "BUT",
    "amodal": "AMODAL",
    "modal": "MODAL",
    "part": "PART PARTIAL",
    "shape": "SHAPE",
}
"""The steps an argument is made of, and the ideas that make each."""

TONES = {
    "ask": "SEGMENT WANT MASK",
    "who": "who whose whom",
    "which": "which",
    "what": "what",
    "where": "where",
    "how": "how",
    "if": "IF IMAGINE ASIF",
    "not": "NOT NO",
    "only": "ONLY",
    "told": "THING THINGS VESSEL VESSELS PRONOUN ITS COLLECTIVE SCENE THERE",
}
"""The tones a clause may have, and the ideas that set each by coming first."""

REQUESTS = ("ask", "who", "which", "what", "what like", "where", "how")
"""Tones that say what is to be done or answered."""

_TONE = {idea: tone for tone, ideas in TONES.items() for idea in ideas.split()}
_STEP = {idea: step for step, ideas in COURSE.items() for idea in ideas.split()}
_CUES = frozenset(_STEP)
_BREAKS = frozenset(",;.?")
_NEGATIONS = frozenset(("NOT", "NO", "WITHOUT", "NEEDLESS", "RATHER"))
_TURNED = {"SEE": "hidden", "SEEN": "hidden", "HIDDEN": "seen", "HIDES": "seen"}
"""What is not seen is hidden; what is not hidden is seen."""


def number_features(reading: Reading) -> NDArray[np.int64]:
    """The numbers of a reading's features, each once, ascending: int64 in [0, 2 ** BITS)."""
    names = {f"{kind} {' '.join(row)}" for kind, row in name_features(reading)}
    return np.unique(np.array([crc32(name.encode()) & ((1 << BITS) - 1) for name in names], np.int64))


def name_features(reading: Reading) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All features as (kind, row); some come more than once."""
    ideas, words = ("^", *reading.ideas, "$"), ("^", *reading.words, "$")
    for size in range(1, 5):
        for start in range(len(ideas) - size + 1):
            row = ideas[start : start + size]
            if not _CUES.isdisjoint(row):
                yield "ideas", row
                if size < 3:
                    yield "words", words[start : start + size]
    signed = _sign(reading.ideas)
    for place, (idea, clause) in enumerate(signed):
        yield "signed", (idea,)
        for other, later in signed[place + 1 : place + 6]:
            yield ("pair" if clause == later else "pair apart"), (idea, other)
    yield from _tones(reading.ideas)
    steps = _follow(reading.ideas)
    yield from _rows("course", ("^", *steps, "$"), range(2, 5))
    bare = [step for step in steps if step not in ("|", "part", "shape")]
    yield from _rows("bare course", ("^", *bare, "$"), range(2, 5))


def _sign(ideas: list[str]) -> list[tuple[str, int]]:
    """The ideas of the course in order, marked where a negation precedes in the same clause; each clause's number."""
    found, clause, negated = [], 0, False
    for idea in ideas:
        if idea in _BREAKS or idea == "BUT":
            clause, negated = clause + 1, False
        if idea in _STEP:
            found.append((f"not-{idea}" if negated else idea, clause))
        negated = negated or idea in _NEGATIONS
    return found


def _tones(ideas: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is said in which tone, and what is said at all before which request."""
    clauses: list[list[str]] = [[]]
    for idea in ideas:
        if idea in _BREAKS:
            clauses.append([])
        else:
            clauses[-1].append(idea)
    toned = [(_tone(clause), clause) for clause in clauses if clause]
    request = next((tone for tone, _ in reversed(toned) if tone in REQUESTS), "none")
    for tone, clause in toned:
        steps = _follow(clause)
        for step in steps:
            yield "tone", (tone, step)
            yield "request", (request, step)
        yield from (("tone", (tone, *pair)) for pair in itertools.pairwise(steps))
        yield from (("tone", (tone, idea)) for idea in clause if idea in _CUES)
    steps = [step for _, clause in toned for step in _follow(clause)]
    yield from (("request", (request, *pair)) for pair in itertools.pairwise(steps))


def _tone(clause: list[str]) -> str:
    for idea in clause[:6]:
        if idea in _TONE:
            like = any(pair == ("SEE", "like") for pair in itertools.pairwise(clause))
            return "what like" if like and _TONE[idea] in ("what", "how") else _TONE[idea]
    return "other"


def _follow(ideas: list[str]) -> list[str]:
    """The steps in order, each once in a row; "|" where a clause ends."""
    steps: list[str] = []
    negation = -9
    for place, idea in enumerate(ideas):
        step = "|" if idea in _BREAKS else _STEP.get(idea)
        if step is None:
            continue
        if idea in _TURNED and steps[-1:] == ["not"] and place - negation <= 3:
            steps[-1] = _TURNED[idea]
        elif steps[-1:] != [step]:
            steps.append(step)
        negation = place if step == "not" else negation
    return steps


def _rows(kind: str, items: tuple[str, ...], sizes: range) -> Iterator[tuple[str, tuple[str, ...]]]:
    for size in sizes:
        for start in range(len(items) - size + 1):
            yield kind, items[start : start + size]

"""Hashed features of a tokenized question: n-grams of concepts, negations, linking words, cue sequences, moods."""

import itertools
from collections.abc import Iterator
from zlib import crc32

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.language.intent.tokenizer import TokenizedQuestion

HASH_BITS = 20
"""A feature's index is this many bits of the CRC-32 of its name."""

CUES = {
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
"""Cue to the concepts that give it."""

MOODS = {
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
"""Mood of a clause to the concepts that set it; the first such concept of a clause decides."""

REQUESTS = ("ask", "who", "which", "what", "what like", "where", "how")
"""Moods of clauses that request something."""

LINKS = (
    *(
        "who",
        "whose",
        "whom",
        "which",
        "that",
        "where",
        "when",
        "while",
        "what",
        "how",
        "because",
        "since",
        "as",
    ),
    *("with", "of", "to", "for", "by", "from", "in", "on", "and", "or", "is", "are"),
)
"""Words that tell what follows them apart from the request: a description, a reason, a place."""

_MOOD_OF = {
    concept: mood for mood, concepts in MOODS.items() for concept in concepts.split()
}
_CUE_OF = {
    concept: cue for cue, concepts in CUES.items() for concept in concepts.split()
}
_BREAKS = frozenset(",;.?")
_NEGATIONS = frozenset(("NOT", "NO", "WITHOUT", "NEEDLESS", "RATHER"))
_NEGATED_CUE = {"SEE": "hidden", "SEEN": "hidden", "HIDDEN": "seen", "HIDES": "seen"}
"""What is not seen is hidden; what is not hidden is seen."""


def hash_features(tokens: TokenizedQuestion) -> Int64Array:
    """Indices of a question's features, unique, ascending: int64 in [0, 2 ** HASH_BITS)."""
    names = {f"{kind} {' '.join(items)}" for kind, items in extract_features(tokens)}
    return np.unique(
        np.array(
            [crc32(name.encode()) & ((1 << HASH_BITS) - 1) for name in names], np.int64
        )
    )


def extract_features(
    tokens: TokenizedQuestion,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All features as (kind, items); some occur more than once."""
    concepts = ("^", *tokens.concepts, "$")
    words = ("^", *tokens.words, "$")
    for size in range(1, 5):
        for start in range(len(concepts) - size + 1):
            ngram = concepts[start : start + size]
            if not _CUE_OF.keys().isdisjoint(ngram):
                yield "concepts", ngram
                if size < 3:
                    yield "words", words[start : start + size]
    signed = _mark_negated(tokens.concepts)
    for place, (concept, clause) in enumerate(signed):
        yield "signed", (concept,)
        for other, later in signed[place + 1 : place + 6]:
            yield ("pair" if clause == later else "pair apart"), (concept, other)
    yield from _link_features(tokens.concepts)
    yield from _mood_features(tokens.concepts)
    cues = _cue_sequence(tokens.concepts)
    yield from _ngrams("cues", ("^", *cues, "$"), range(2, 5))
    bare = [cue for cue in cues if cue not in ("|", "part", "shape")]
    yield from _ngrams("bare cues", ("^", *bare, "$"), range(2, 5))


def _mark_negated(concepts: list[str]) -> list[tuple[str, int]]:
    """Concepts that give a cue, in order, marked where a negation precedes in the same clause; each clause's number."""
    found = []
    clause = 0
    negated = False
    for concept in concepts:
        if concept in _BREAKS or concept == "BUT":
            clause = clause + 1
            negated = False
        if concept in _CUE_OF:
            found.append((f"not-{concept}" if negated else concept, clause))
        negated = negated or concept in _NEGATIONS
    return found


def _link_features(concepts: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Cues with the last linking word before them in their clause.

    "Whose whole coat is blue" describes an object, "the whole coat" requests a mask.
    """
    link = "^"
    for concept in concepts:
        if concept in _BREAKS:
            link = "^"
        elif concept in _CUE_OF:
            yield "link", (link, concept)
            yield "link", (link, _CUE_OF[concept])
        elif concept in LINKS:
            link = concept


def _mood_features(concepts: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Cues with the mood of their clause, and cues with the mood of the question's last request."""
    clauses: list[list[str]] = [[]]
    for concept in concepts:
        if concept in _BREAKS:
            clauses.append([])
        else:
            clauses[-1].append(concept)
    moods = [(_mood(clause), clause) for clause in clauses if clause]
    request = next((mood for mood, _ in reversed(moods) if mood in REQUESTS), "none")
    for mood, clause in moods:
        cues = _cue_sequence(clause)
        for cue in cues:
            yield "mood", (mood, cue)
            yield "request", (request, cue)
        yield from (("mood", (mood, *pair)) for pair in itertools.pairwise(cues))
        yield from (
            ("mood", (mood, concept)) for concept in clause if concept in _CUE_OF
        )
    cues = [cue for _, clause in moods for cue in _cue_sequence(clause)]
    yield from (("request", (request, *pair)) for pair in itertools.pairwise(cues))


def _mood(clause: list[str]) -> str:
    for concept in clause[:6]:
        if concept in _MOOD_OF:
            like = any(pair == ("SEE", "like") for pair in itertools.pairwise(clause))
            return (
                "what like"
                if like and _MOOD_OF[concept] in ("what", "how")
                else _MOOD_OF[concept]
            )
    return "other"


def _cue_sequence(concepts: list[str]) -> list[str]:
    """The cues in order without repetitions; "|" where a clause ends."""
    cues: list[str] = []
    negation = -9
    for place, concept in enumerate(concepts):
        cue = "|" if concept in _BREAKS else _CUE_OF.get(concept)
        if cue is None:
            continue
        if concept in _NEGATED_CUE and cues[-1:] == ["not"] and place - negation <= 3:
            cues[-1] = _NEGATED_CUE[concept]
        elif cues[-1:] != [cue]:
            cues.append(cue)
        negation = place if cue == "not" else negation
    return cues


def _ngrams(
    kind: str, items: tuple[str, ...], sizes: range
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for size in sizes:
        for start in range(len(items) - size + 1):
            yield kind, items[start : start + size]

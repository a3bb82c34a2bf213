"""Hashed features of a tokenized question: n-grams of concepts, negations, linking words, cue sequences, moods."""

import itertools
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.language.intent.tokenizer import TokenizedQuestion
from maskwise.language.lexicons import word_set

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

LINKS = word_set(
    "who whose whom which that where when while what how because since as with "
    "of to for by from in on and or is are"
)
"""Words that tell what follows them apart from the request: a description, a reason, a place."""

MAX_NGRAM = 4
"""Longest n-grams, of concepts and of cues."""

MAX_WORD_NGRAM = 2
"""Longest n-grams of words: longer ones are too rare to be learnt."""

MAX_PAIR_DISTANCE = 5
"""Cue concepts this far apart, counted in cue concepts, are a pair."""

MAX_MOOD_PLACE = 6
"""Concepts at the start of a clause among which its mood is looked for."""

MAX_NEGATION_DISTANCE = 3
"""Tokens between a negation and what it negates: "not to be seen"."""

START = "^"
END = "$"
CLAUSE_END = "|"

Feature = tuple[str, tuple[str, ...]]
"""The kind of a feature and its items."""


def _invert(table: dict[str, str]) -> dict[str, str]:
    """Name by word, from words by name."""
    inverted = {}
    for name, words in table.items():
        for word in words.split():
            inverted[word] = name
    return inverted


_MOOD_OF = _invert(MOODS)
_CUE_OF = _invert(CUES)
_BREAKS = frozenset(",;.?")
_NEGATIONS = word_set("NOT NO WITHOUT NEEDLESS RATHER")
_NEGATED_CUE = {"SEE": "hidden", "SEEN": "hidden", "HIDDEN": "seen", "HIDES": "seen"}
"""What is not seen is hidden; what is not hidden is seen."""


def hash_features(tokens: TokenizedQuestion) -> Int64Array:
    """Indices of a question's features, unique, ascending: int64 in [0, 2 ** HASH_BITS)."""
    names = {f"{kind} {' '.join(items)}" for kind, items in extract_features(tokens)}
    bits = (1 << HASH_BITS) - 1
    indices = [crc32(name.encode()) & bits for name in names]
    return np.unique(np.array(indices, np.int64))


def extract_features(tokens: TokenizedQuestion) -> Iterator[Feature]:
    """All features as (kind, items); some occur more than once."""
    yield from _concept_ngrams(tokens)
    yield from _negation_features(tokens.concepts)
    yield from _link_features(tokens.concepts)
    yield from _mood_features(tokens.concepts)
    cues = _cue_sequence(tokens.concepts)
    yield from _cue_ngrams("cues", cues)
    bare = [cue for cue in cues if cue not in (CLAUSE_END, "part", "shape")]
    yield from _cue_ngrams("bare cues", bare)


def _concept_ngrams(tokens: TokenizedQuestion) -> Iterator[Feature]:
    """N-grams that contain a cue, of concepts and of the words themselves."""
    concepts = (START, *tokens.concepts, END)
    words = (START, *tokens.words, END)
    for size in range(1, MAX_NGRAM + 1):
        for start in range(len(concepts) - size + 1):
            ngram = concepts[start : start + size]
            if _CUE_OF.keys().isdisjoint(ngram):
                continue
            yield "concepts", ngram
            if size <= MAX_WORD_NGRAM:
                yield "words", words[start : start + size]


def _negation_features(concepts: list[str]) -> Iterator[Feature]:
    """Cue concepts, negated or not, alone and in pairs within a clause and across clauses."""
    signed = _mark_negated(concepts)
    for place, (concept, clause) in enumerate(signed):
        yield "signed", (concept,)
        later = signed[place + 1 : place + 1 + MAX_PAIR_DISTANCE]
        for other_concept, other_clause in later:
            kind = "pair" if clause == other_clause else "pair apart"
            yield kind, (concept, other_concept)


def _mark_negated(concepts: list[str]) -> list[tuple[str, int]]:
    """Concepts that give a cue, in order, marked where a negation precedes in the same clause; each clause's number."""
    marked = []
    clause = 0
    negated = False
    for concept in concepts:
        if concept in _BREAKS or concept == "BUT":
            clause += 1
            negated = False
        if concept in _CUE_OF:
            name = f"not-{concept}" if negated else concept
            marked.append((name, clause))
        if concept in _NEGATIONS:
            negated = True
    return marked


def _link_features(concepts: list[str]) -> Iterator[Feature]:
    """Cues with the last linking word before them in their clause.

    "Whose whole coat is blue" describes an object, "the whole coat" requests a mask.
    """
    link = START
    for concept in concepts:
        if concept in _BREAKS:
            link = START
        elif concept in _CUE_OF:
            yield "link", (link, concept)
            yield "link", (link, _CUE_OF[concept])
        elif concept in LINKS:
            link = concept


def _mood_features(concepts: list[str]) -> Iterator[Feature]:
    """Cues with the mood of their clause, and cues with the mood of the question's last request."""
    clauses = _split_clauses(concepts)
    moods = [_mood(clause) for clause in clauses]
    requests = [mood for mood in moods if mood in REQUESTS]
    request = requests[-1] if requests else "none"
    all_cues: list[str] = []
    for mood, clause in zip(moods, clauses):
        cues = _cue_sequence(clause)
        all_cues += cues
        for cue in cues:
            yield "mood", (mood, cue)
            yield "request", (request, cue)
        for pair in itertools.pairwise(cues):
            yield "mood", (mood, *pair)
        for concept in clause:
            if concept in _CUE_OF:
                yield "mood", (mood, concept)
    for pair in itertools.pairwise(all_cues):
        yield "request", (request, *pair)


def _split_clauses(concepts: list[str]) -> list[list[str]]:
    """The concepts between marks that end a clause; no clause is empty."""
    clauses: list[list[str]] = [[]]
    for concept in concepts:
        if concept in _BREAKS:
            clauses.append([])
        else:
            clauses[-1].append(concept)
    return [clause for clause in clauses if clause]


def _mood(clause: list[str]) -> str:
    for concept in clause[:MAX_MOOD_PLACE]:
        if concept not in _MOOD_OF:
            continue
        mood = _MOOD_OF[concept]
        # "What does it look like" asks for the looks, not for an object.
        asks_for_looks = ("SEE", "like") in itertools.pairwise(clause)
        if asks_for_looks and mood in ("what", "how"):
            return "what like"
        return mood
    return "other"


def _cue_sequence(concepts: list[str]) -> list[str]:
    """The cues in order without repetitions; CLAUSE_END where a clause ends."""
    cues: list[str] = []
    negation_place: int | None = None
    for place, concept in enumerate(concepts):
        cue = CLAUSE_END if concept in _BREAKS else _CUE_OF.get(concept)
        if cue is None:
            continue
        negation_is_near = (
            negation_place is not None
            and place - negation_place <= MAX_NEGATION_DISTANCE
            and cues[-1] == "not"
        )
        if negation_is_near and concept in _NEGATED_CUE:
            cues[-1] = _NEGATED_CUE[concept]
        elif cues[-1:] != [cue]:
            cues.append(cue)
        if cue == "not":
            negation_place = place
    return cues


def _cue_ngrams(kind: str, cues: Sequence[str]) -> Iterator[Feature]:
    """All n-grams of at least two items."""
    items = (START, *cues, END)
    for size in range(2, MAX_NGRAM + 1):
        for start in range(len(items) - size + 1):
            yield kind, items[start : start + size]

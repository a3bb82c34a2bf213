"""Question to mask type, probability and the words that decide: two readers and a rule of evidence."""

import functools
import hashlib
import math
from collections.abc import Sequence
from importlib import resources
from typing import Literal, NamedTuple

import numpy as np

from maskwise.arrays import Float32Array
from maskwise.language.intent.concept_classifier import (
    ConceptClassifier,
    read_classifier,
)
from maskwise.language.intent.cues import KINDS, POLARITIES, CueKind, CueSpan, Polarity
from maskwise.language.intent.english import english_share, is_english
from maskwise.language.intent.network_file import StoredNetwork, read_network
from maskwise.language.intent.spelling import MAX_CHARACTERS
from maskwise.language.intent.tokenizer import RequestedMask
from maskwise.language.intent.words import QuestionWord, locate_words

MAX_LOG_ODDS = 30
"""Log odds are limited to this: exp of much larger ones would overflow, and the probability is 1 anyway."""

MIN_EVIDENCE = 0.1
"""A question is amodal only if some word belongs to an amodal cue with this probability or more."""

MIN_CUE = 0.5
"""A cue has a word with this probability or more."""

MIN_NEIGHBOR = 0.3
"""Beside such a word, words belong to the cue from this probability on."""

MIN_SHARE = 0.6
"""The amodal mask is never requested without a cue: where no word reaches MIN_CUE, a cue has a word with this share of
the highest probability, and further words in the same proportion."""

OUTER_WORDS = frozenset(("the", "a", "an", "of", "and"))
"""A cue does not end with them."""

NAMED_POLARITIES: tuple[Polarity, ...] = ("none", *POLARITIES.values())
"""Polarity of each column of the network's cues; column 0 is no cue."""


class IntentPrediction(NamedTuple):
    """The mask type that a question requests, its probability in [0.5, 1], and the words that decide.

    language_supported: False where the question is not in English. Its words then say little, so the probability is
    lowered by the share of words that are not English, to 0.5 where none is.
    cue: kind of the cue that decides, "none" where the mask type is visible by default; words that merely mention
    hiding or wholeness give "mention". spans: all cues in the order of the question, without overlap.
    """

    mask_type: RequestedMask
    probability: float
    language_supported: bool = True
    cue: CueKind | Literal["none"] = "none"
    spans: tuple[CueSpan, ...] = ()


class IntentClassifier:
    """The concept classifier, and the network that reads word order and marks the cues."""

    def __init__(self, concepts: ConceptClassifier, stored: StoredNetwork) -> None:
        self.concepts = concepts
        self.stored = stored

    def classify(self, question: str) -> IntentPrediction:
        """The prediction for one question; a question without words is visible, like every neutral question."""
        text = question[:MAX_CHARACTERS]
        words = locate_words(text)
        vocabulary = self.concepts.tokenizer.vocabulary
        supported = is_english(text, vocabulary)
        if not words:
            # Text in another script has no words for the network: nothing is known, unless there is nothing to know.
            certainty = 1.0 if supported else 0.5
            return IntentPrediction("visible", certainty, supported)
        stored = self.stored
        reading = stored.network.read(stored.encoder.encode(words))
        concept_log_odds = self.concepts.log_odds(text)
        log_odds = reading.log_odds + stored.concept_weight * concept_log_odds
        log_odds *= stored.scale
        if not supported:
            log_odds *= english_share(text, vocabulary)
        evidence = cue_probability(reading.cues, ("amodal",))
        if log_odds > 0 and evidence.max() < MIN_EVIDENCE:
            # R2SM's rule: without words that ask for what is hidden the visible mask is meant.
            log_odds = 0.0
        mask_type: RequestedMask = "amodal" if log_odds > 0 else "visible"
        probability = 1 / (1 + math.exp(-min(abs(log_odds), MAX_LOG_ODDS)))
        spans = find_spans(text, words, reading.cues, mask_type=mask_type)
        cue = deciding_cue(spans, mask_type)
        return IntentPrediction(mask_type, probability, supported, cue, spans)


def cue_probability(cues: Float32Array, polarities: Sequence[Polarity]) -> Float32Array:
    """Float32 [words]: the probability that each word belongs to a cue of one of these polarities."""
    columns = [
        column
        for column in range(1, len(NAMED_POLARITIES))
        if NAMED_POLARITIES[column] in polarities
    ]
    total: Float32Array = cues[:, columns].sum(axis=1)
    return total


def find_spans(
    text: str,
    words: Sequence[QuestionWord],
    cues: Float32Array,
    *,
    mask_type: RequestedMask,
) -> tuple[CueSpan, ...]:
    """The cues of a question that agree with its mask type; for the visible one, mentions included."""
    polarities: tuple[Polarity, ...] = ("amodal",)
    if mask_type == "visible":
        polarities = ("visible", "none")
    probability = cue_probability(cues, polarities)
    threshold = MIN_CUE
    if mask_type == "amodal":
        threshold = min(MIN_CUE, MIN_SHARE * float(probability.max()))
    is_neighbor = probability >= threshold * MIN_NEIGHBOR / MIN_CUE
    spans = []
    start = 0
    while start < len(words):
        if not is_neighbor[start]:
            start += 1
            continue
        end = start
        while end < len(words) and is_neighbor[end]:
            end += 1
        first, last = _trim(words, start, end)
        if first < last and probability[first:last].max() >= threshold:
            kind = _kind_of(cues[first:last], polarities)
            begin = words[first].start
            stop = words[last - 1].end
            spans.append(CueSpan(begin, stop, text[begin:stop], kind, POLARITIES[kind]))
        start = end
    return tuple(spans)


def _trim(words: Sequence[QuestionWord], start: int, end: int) -> tuple[int, int]:
    """The range of words without marks at its ends and without articles at its end; empty where nothing remains."""
    while start < end and not words[start].word.isalnum():
        start += 1
    while start < end:
        last = words[end - 1].word
        if last.lstrip("'").isalnum() and last not in OUTER_WORDS:
            break
        end -= 1
    return start, end


def deciding_cue(
    spans: Sequence[CueSpan], mask_type: RequestedMask
) -> CueKind | Literal["none"]:
    """The kind of the longest cue that requests the mask type; "mention" or "none" where there is no request."""
    requests = [span for span in spans if span.polarity == mask_type]
    candidates = requests or list(spans)
    if not candidates:
        return "none"
    return max(candidates, key=lambda span: span.end - span.start).kind


def _kind_of(cues: Float32Array, polarities: Sequence[Polarity]) -> CueKind:
    """The kind with the highest sum over the words of a cue."""
    totals = cues[:, 1:].sum(axis=0)
    for index, kind in enumerate(KINDS):
        if POLARITIES[kind] not in polarities:
            totals[index] = 0
    return KINDS[int(np.argmax(totals))]


def classify_intent(questions: Sequence[str]) -> list[IntentPrediction]:
    """One prediction per question, in order. Accepts any text."""
    classifier = load_classifier()
    return [classifier.classify(question) for question in questions]


@functools.cache
def load_classifier() -> IntentClassifier:
    """The bundled classifier, loaded once."""
    folder = resources.files("maskwise.language.intent")
    with folder.joinpath("weights.npz").open("rb") as file:
        concepts = read_classifier(file)
    with folder.joinpath("network.npz").open("rb") as file:
        stored = read_network(file)
    return IntentClassifier(concepts, stored)


@functools.cache
def hash_classifier() -> str:
    """SHA-256 of the bundled weights."""
    classifier = load_classifier()
    hashed = hashlib.sha256(classifier.concepts.quantized.tobytes())
    weights = classifier.stored.network.weights
    for name in sorted(weights):
        hashed.update(weights[name].tobytes())
    return hashed.hexdigest()

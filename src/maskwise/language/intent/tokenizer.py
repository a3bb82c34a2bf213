"""Tokenize a question into words and concepts: cue words by what they mean, every other word as an object."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from maskwise.language.intent.lexicon import START, load_lexicon
from maskwise.language.intent.spelling import (
    MIN_LETTERS,
    SpellingCorrector,
    split_words,
)

RequestedMask = Literal["visible", "amodal"]
"""The mask types that a question can request."""

OBJECTS = ("THING", "THINGS")
"""Concepts of every word outside the lexicon: singular and plural."""

NOUNS = (*OBJECTS, "VESSEL", "VESSELS", "COLLECTIVE", "SCENE")
"""Concepts of nouns. A misspelt noun is still an object, so nothing is corrected to a noun."""

ACTIONS = ("DOING", "DONE")
"""Concepts of unknown words in -ing and -ed that no noun follows: "peering through", but not "a parked car"."""

_PUNCTUATION = {
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


class TokenizedQuestion(NamedTuple):
    """Words (corrected, phrases merged, function words without meaning removed) and their concepts, equally many."""

    words: list[str]
    concepts: list[str]


class QuestionTokenizer:
    """Tokenizes questions. `vocabulary`: correctly spelt words besides those of the lexicon."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.lexicon = load_lexicon()
        in_phrases = {
            w
            for phrases in self.lexicon.phrases.values()
            for phrase, _ in phrases
            for w in phrase
        }
        concepts = self.lexicon.concepts
        self.vocabulary = self.lexicon.known.union(
            vocabulary, in_phrases, concepts, self.lexicon.skipped
        )
        targets = (
            word
            for word, concept in sorted(concepts.items())
            if len(word) >= MIN_LETTERS
            and word.isalpha()
            and concept not in (word, *NOUNS)
        )
        self._spelling = SpellingCorrector(targets, self.vocabulary)

    def tokenize(self, question: str) -> TokenizedQuestion:
        """Words and concepts in order; empty where the question has no letters.

        Consecutive objects become one token, the last of them.
        """
        tokens = TokenizedQuestion([], [])
        words = [
            START,
            *(self._spelling.correct(word) for word in split_words(question)),
        ]
        for word in self._merge_phrases(words):
            concept = self._concept(word)
            while (
                concept in OBJECTS
                and tokens.concepts
                and tokens.concepts[-1] in OBJECTS + ACTIONS
            ):
                tokens.words.pop()
                tokens.concepts.pop()
            if concept:
                tokens.words.append(word)
                tokens.concepts.append(concept)
        return tokens

    def _merge_phrases(self, words: list[str]) -> Iterator[str]:
        place = 0
        while place < len(words):
            for phrase, merged in self.lexicon.phrases.get(words[place], ()):
                if tuple(words[place : place + len(phrase)]) == phrase:
                    yield merged
                    place += len(phrase)
                    break
            else:
                yield words[place]
                place += 1

    def _concept(self, word: str) -> str:
        """The concept of a word; empty for skipped words."""
        if word in self.lexicon.skipped or word == START:
            return ""
        if word in self.lexicon.concepts:
            return self.lexicon.concepts[word]
        if not word.lstrip("'").isalpha():
            return OBJECTS[0] if word.isdigit() else _PUNCTUATION.get(word, word)
        if len(word) > MIN_LETTERS and word.endswith(("ing", "ed")):
            return ACTIONS[word.endswith("ed")]
        return OBJECTS[len(word) > 3 and word.endswith("s") and not word.endswith("ss")]

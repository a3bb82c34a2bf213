"""Tokenize a question into words and concepts: cue words by what they mean, every other word as an object."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from maskwise.language.intent.lexicon import START, Lexicon, load_lexicon
from maskwise.language.intent.spelling import (
    MIN_LETTERS,
    SpellingCorrector,
    split_words,
)

RequestedMask = Literal["visible", "amodal"]
"""The mask types that a question can request."""

OBJECT = "THING"
OBJECTS = "THINGS"
"""Concepts of every word outside the lexicon: singular and plural."""

NOUNS = (OBJECT, OBJECTS, "VESSEL", "VESSELS", "COLLECTIVE", "SCENE")
"""Concepts of nouns. A misspelt noun is still an object, so nothing is corrected to a noun."""

DOING = "DOING"
DONE = "DONE"
"""Concepts of unknown words in -ing and -ed that no noun follows: "peering through", but not "a parked car"."""

MIN_PLURAL_LETTERS = 4
"""Shorter words in -s are no plurals: "gas", "bus"."""

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
"""Marks that mean the same as another mark, or as a word."""


@dataclass
class TokenizedQuestion:
    """Words (corrected, phrases merged, function words without meaning removed) and their concepts, equally many."""

    words: list[str] = field(default_factory=list)
    concepts: list[str] = field(default_factory=list)


class QuestionTokenizer:
    """Tokenizes questions. `vocabulary`: correctly spelt words besides those of the lexicon."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.lexicon = load_lexicon()
        words_in_phrases: set[str] = set()
        for phrases in self.lexicon.phrases.values():
            for words, _ in phrases:
                words_in_phrases.update(words)
        self.vocabulary = self.lexicon.known.union(
            vocabulary,
            words_in_phrases,
            self.lexicon.concepts,
            self.lexicon.skipped,
        )
        self._spelling = SpellingCorrector(cue_words(self.lexicon), self.vocabulary)

    def tokenize(self, question: str) -> TokenizedQuestion:
        """Words and concepts in order; empty where the question has no letters.

        Consecutive objects become one token, the last of them.
        """
        words = [START]
        words += [self._spelling.correct(word) for word in split_words(question)]
        tokens = TokenizedQuestion()
        for word in self._merge_phrases(words):
            concept = self._concept(word)
            if concept is None:
                continue
            if concept in (OBJECT, OBJECTS):
                # "The old garden chair" is one object: the noun replaces the words before it.
                while tokens.concepts and tokens.concepts[-1] in (
                    OBJECT,
                    OBJECTS,
                    DOING,
                    DONE,
                ):
                    tokens.words.pop()
                    tokens.concepts.pop()
            tokens.words.append(word)
            tokens.concepts.append(concept)
        return tokens

    def _merge_phrases(self, words: list[str]) -> Iterator[str]:
        """The words, with every phrase of the lexicon replaced by its merged word."""
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

    def _concept(self, word: str) -> str | None:
        """The concept of a word; None for skipped words."""
        if word in self.lexicon.skipped or word == START:
            return None
        if word in self.lexicon.concepts:
            return self.lexicon.concepts[word]
        if word.isdigit():
            return OBJECT
        if not word.lstrip("'").isalpha():
            return _PUNCTUATION.get(word, word)
        if len(word) > MIN_LETTERS and word.endswith("ing"):
            return DOING
        if len(word) > MIN_LETTERS and word.endswith("ed"):
            return DONE
        is_plural = word.endswith("s") and not word.endswith("ss")
        if is_plural and len(word) >= MIN_PLURAL_LETTERS:
            return OBJECTS
        return OBJECT


def cue_words(lexicon: Lexicon) -> list[str]:
    """Words that misspelt words are corrected to, sorted: long enough, with a concept that is no noun."""
    words = []
    for word, concept in sorted(lexicon.concepts.items()):
        is_small_word = concept == word
        if len(word) < MIN_LETTERS or not word.isalpha():
            continue
        if not is_small_word and concept not in NOUNS:
            words.append(word)
    return words

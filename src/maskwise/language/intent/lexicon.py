"""The lexicon of the tokenizer: which words carry which concept, read from `lexicons/mask_type_cues.txt`."""

from dataclasses import dataclass

from maskwise.language.intent.spelling import split_words
from maskwise.language.lexicons import read_lines
from maskwise.language.word_forms import verb_forms

LEXICON_FILE = "mask_type_cues"

PHRASES_BEGIN = "----"
"""The line between the lists of words and the phrases."""

START = "^"
"""Marks the start of a question in a phrase of the lexicon."""

Phrase = tuple[tuple[str, ...], str]
"""The words of a phrase, and the word that it is merged into."""


@dataclass(frozen=True)
class Lexicon:
    """concepts: word to concept. skipped: words without a token. known: correctly spelt words without a concept.

    phrases: by their first words, longest first.
    """

    concepts: dict[str, str]
    skipped: frozenset[str]
    known: frozenset[str]
    phrases: dict[str, list[Phrase]]


def load_lexicon() -> Lexicon:
    """The lists of the file."""
    lines = read_lines(LEXICON_FILE)
    border = lines.index(PHRASES_BEGIN)
    concepts: dict[str, str] = {}
    skipped: set[str] = set()
    known: set[str] = set()
    for line in lines[:border]:
        concept, _, words = line.partition(":")
        for form in _all_forms(words):
            if concept == "SILENT":
                skipped.add(form)
            elif concept == "KNOWN":
                known.add(form)
            elif concept == "SMALL":
                concepts.setdefault(form, form)
            else:
                concepts.setdefault(form, concept)
    return Lexicon(
        concepts=concepts,
        skipped=frozenset(skipped),
        known=frozenset(known),
        phrases=_read_phrases(lines[border + 1 :]),
    )


def _all_forms(words: str) -> list[str]:
    """The words of a line; `cover+` stands for cover, covers, covered and covering."""
    forms = []
    for word in words.split():
        if word.endswith("+"):
            forms += verb_forms(word[:-1])
        else:
            forms.append(word)
    return forms


def _read_phrases(lines: list[str]) -> dict[str, list[Phrase]]:
    phrases: dict[str, list[Phrase]] = {}
    for line in lines:
        written, _, merged = line.partition(" = ")
        for phrase in written.split(", "):
            words = tuple(split_words(phrase.replace("-", " ")))
            if phrase.startswith(START):
                words = (START, *words)
            phrases.setdefault(words[0], []).append((words, merged))
    for alternatives in phrases.values():
        alternatives.sort(key=lambda phrase: -len(phrase[0]))
    return phrases

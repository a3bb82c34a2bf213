"""The lexicon of the tokenizer: which words carry which concept, read from `lexicon.txt`."""

from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

from maskwise.language.intent.spelling import split_words

START = "^"
"""Marks the start of a question in a phrase of the lexicon."""


class Lexicon(NamedTuple):
    """concepts: word to concept. skipped: words without a token. known: correctly spelt words without a concept.

    phrases: first word to (words, merged word), longest phrase first.
    """

    concepts: dict[str, str]
    skipped: frozenset[str]
    known: frozenset[str]
    phrases: dict[str, list[tuple[tuple[str, ...], str]]]


def load_lexicon() -> Lexicon:
    """The lists of `lexicon.txt`."""
    text = (
        resources.files("maskwise.language.intent")
        .joinpath("lexicon.txt")
        .read_text("utf-8")
    )
    lists, phrases = text.split("----\n")
    concepts: dict[str, str] = {}
    sets: dict[str, set[str]] = {"SILENT": set(), "KNOWN": set()}
    for line in _lines(lists):
        concept, words = line.split(":")
        for form in (form for word in words.split() for form in _inflected_forms(word)):
            if concept in sets:
                sets[concept].add(form)
            else:
                concepts.setdefault(form, form if concept == "SMALL" else concept)
    return Lexicon(
        concepts,
        frozenset(sets["SILENT"]),
        frozenset(sets["KNOWN"]),
        _read_phrases(phrases),
    )


def _read_phrases(text: str) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for line in _lines(text):
        left, merged = line.split(" = ")
        for phrase in left.split(", "):
            words = tuple(split_words(phrase.replace("-", " ")))
            if phrase.startswith(START):
                words = (START, *words)
            phrases.setdefault(words[0], []).append((words, merged))
    for found in phrases.values():
        found.sort(key=lambda phrase: -len(phrase[0]))
    return phrases


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line and not line.startswith("#"))


def _inflected_forms(word: str) -> list[str]:
    """`cover+` is cover, covers, covered and covering."""
    if not word.endswith("+"):
        return [word]
    base = word[:-1]
    stem = base.removesuffix("e")
    plural = "es" if base.endswith(("s", "sh", "ch")) else "s"
    return [base, base + plural, stem + "ed", stem + "ing"]

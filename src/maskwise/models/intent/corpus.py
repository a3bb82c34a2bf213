"""Sentences by the thousand from a few hundred lines: a grammar of choices, expanded by chance.

The notation of the files in `corpus/`:

    name = this | that          a phrase; a line that begins with | goes on
    <name>                      one of its choices
    (this|that)  [this|that]    a choice on the spot; in square brackets it may also be nothing
    *verb  <name.ing>           the marked verbs of the phrase with -ing
    == name                     begins a family of sentences, one a line
    # ...                       a remark
"""

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from random import Random
from typing import NamedTuple

from maskwise.errors import RecordError
from maskwise.models.intent.reading import Wanted

PHRASES = ("words", "acts")
SENTENCES: tuple[Wanted, ...] = ("visible", "amodal")

_MARK = re.compile(r"<([a-z0-9]+)(?:\.(ing))?>|([()\[\]|])")
_DOUBLED = re.compile("clip|crop|cut|drop|forget|get|infer|let|map|omit|put|run|set|skip|stop|trim")
"""Verbs whose last letter doubles before -ing."""


class Phrase(NamedTuple):
    """A phrase by name; `ing`: its marked verbs take -ing."""

    name: str
    ing: bool


class Choice(NamedTuple):
    """One of several rows of pieces, all as likely."""

    rows: tuple[tuple["Piece", ...], ...]


Piece = str | Phrase | Choice


class Pattern(NamedTuple):
    """A line of the corpus."""

    mask_type: Wanted
    family: str
    line: str
    choice: Choice


class Corpus(NamedTuple):
    """phrases: name to choice. patterns: the sentences, in the order of the files."""

    phrases: dict[str, Choice]
    patterns: list[Pattern]

    def sentence(self, pattern: Pattern, chance: Random) -> str:
        """One sentence of the pattern."""
        return tidy(self._expand(pattern.choice, chance, ing=False))

    def vocabulary(self) -> set[str]:
        """Every word of the corpus."""
        choices = [*self.phrases.values(), *(pattern.choice for pattern in self.patterns)]
        return {
            word
            for choice in choices
            for text in _texts(choice)
            for word in re.findall("[a-z]+", text.lower())
        }

    def digest(self) -> str:
        """A short digest of the corpus and the lexicon, to tell which of them weights were trained on."""
        folder = resources.files("maskwise.models.intent")
        files = [folder.joinpath("corpus", f"{name}.txt") for name in (*PHRASES, *SENTENCES)]
        texts = b"".join(file.read_bytes() for file in (*files, folder.joinpath("lexicon.txt")))
        return hashlib.sha256(texts).hexdigest()[:16]

    def _expand(self, piece: Piece, chance: Random, *, ing: bool) -> str:
        if isinstance(piece, str):
            return re.sub(r"\*([a-z-]+)", lambda found: _inflect(found[1]) if ing else found[1], piece)
        if isinstance(piece, Phrase):
            return self._expand(self.phrases[piece.name], chance, ing=ing or piece.ing)
        text = ""
        for part in chance.choice(piece.rows):
            more = self._expand(part, chance, ing=ing)
            text += " " + more if text[-1:].isalnum() and more[:1].isalnum() else more
        return text


def load_corpus() -> Corpus:
    """The corpus that ships with the package; an unknown phrase or a stray bracket raises RecordError."""
    phrases: dict[str, Choice] = {}
    for name in PHRASES:
        phrases |= dict(_read_phrases(name))
    patterns = [pattern for mask_type in SENTENCES for pattern in _read_patterns(mask_type)]
    for line, choice in [*phrases.items(), *((pattern.line, pattern.choice) for pattern in patterns)]:
        unknown = sorted(set(_names(choice)) - set(phrases))
        if unknown:
            raise RecordError(f"corpus: {line!r} uses the unknown phrase <{unknown[0]}>")
    return Corpus(phrases, patterns)


def tidy(text: str) -> str:
    """Spaces and marks as people write them; sentences begin with a capital."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ([,.;:?!])", r"\1", text)
    text = re.sub(r"([,;:])[,;:]+", r"\1", text)
    text = re.sub(r"([?!])[.,;]|[.,;:]+([.?!])", r"\1\2", text)
    return re.sub(r"(^|[.?!] )([a-z])", lambda found: found[1] + found[2].upper(), text)


def _read_phrases(name: str) -> Iterator[tuple[str, Choice]]:
    text = re.sub(r"\n +\|", " |", "\n".join(_lines(name)))
    for line in text.splitlines():
        phrase, choices = line.split(" = ", 1)
        yield phrase, parse(re.sub(r"\s*\|\s*", "|", choices))


def _read_patterns(mask_type: Wanted) -> Iterator[Pattern]:
    family = ""
    for line in _lines(mask_type):
        if line.startswith("=="):
            family = line[2:].strip()
        else:
            yield Pattern(mask_type, family, line, parse(line))


def _lines(name: str) -> Iterator[str]:
    text = resources.files("maskwise.models.intent").joinpath("corpus", f"{name}.txt").read_text("utf-8")
    return (line for line in text.splitlines() if line.strip() and not line.startswith("#"))


def parse(line: str) -> Choice:
    """A line as a choice of rows; brackets must match."""
    rows: list[list[tuple[Piece, ...]]] = [[]]
    row: list[list[Piece]] = [[]]
    open_brackets: list[str] = []
    place = 0
    for mark in _MARK.finditer(line):
        if mark.start() > place:
            row[-1].append(line[place : mark.start()])
        place = mark.end()
        if mark[1]:
            row[-1].append(Phrase(mark[1], bool(mark[2])))
        elif mark[3] in "([":
            open_brackets.append(mark[3])
            rows.append([])
            row.append([])
        else:
            rows[-1].append(tuple(row.pop()))
            if mark[3] == "|":
                row.append([])
                continue
            if not open_brackets or open_brackets[-1] + mark[3] not in ("()", "[]"):
                raise RecordError(f"corpus: stray {mark[3]!r} in {line!r}")
            optional = open_brackets.pop() == "["
            row[-1].append(Choice((*rows.pop(), ()) if optional else tuple(rows.pop())))
    if open_brackets:
        raise RecordError(f"corpus: {open_brackets[-1]!r} is never closed in {line!r}")
    if line[place:]:
        row[-1].append(line[place:])
    return Choice((*rows[0], tuple(row[0])))


def _inflect(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if _DOUBLED.fullmatch(verb) else "") + "ing"


def _pieces(choice: Choice) -> Iterator[str | Phrase]:
    for row in choice.rows:
        for piece in row:
            if isinstance(piece, Choice):
                yield from _pieces(piece)
            else:
                yield piece


def _names(choice: Choice) -> Iterator[str]:
    return (piece.name for piece in _pieces(choice) if isinstance(piece, Phrase))


def _texts(choice: Choice) -> Iterator[str]:
    return (piece for piece in _pieces(choice) if isinstance(piece, str))

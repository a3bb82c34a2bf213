"""Sentence templates of the training corpus: a grammar of alternatives, expanded at random.

Notation of the files in `corpus/`:

    name = this | that          a phrase; a line that begins with | continues it
    <name>                      one of the phrase's alternatives
    (this|that)  [this|that]    inline alternatives; in square brackets they are optional
    *verb  <name.ing>           the phrase with its marked verbs in -ing
    == name                     starts a family of sentences, one template per line
    # ...                       a comment
"""

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from random import Random
from typing import NamedTuple

from maskwise.errors import RecordError
from maskwise.language.intent.lexicon import LEXICON_FILE
from maskwise.language.intent.tokenizer import RequestedMask
from maskwise.training.intent.sentences import TRAINING_SETS

PHRASE_FILES = ("words", "acts", "reasoning")
TEMPLATE_FILES: tuple[RequestedMask, ...] = ("visible", "amodal")

_MARK = re.compile(r"<([a-z0-9]+)(?:\.(ing))?>|([()\[\]|])")
_DOUBLED = re.compile(
    "chop|clip|crop|cut|dig|dot|drop|forget|get|infer|let|lop|map|omit|put|run|set|"
    "skip|split|stop|strip|trim"
)
"""Verbs whose last letter doubles before -ing."""


class PhraseReference(NamedTuple):
    """A phrase by name; `ing`: its marked verbs take -ing."""

    name: str
    ing: bool


class Alternatives(NamedTuple):
    """Equally likely sequences, one of which is chosen."""

    options: tuple[tuple["TemplatePart", ...], ...]


TemplatePart = str | PhraseReference | Alternatives


class SentenceTemplate(NamedTuple):
    """One line of the corpus."""

    mask_type: RequestedMask
    family: str
    line: str
    content: Alternatives


class TemplateCorpus(NamedTuple):
    """phrases: name to alternatives. templates: in the order of the files."""

    phrases: dict[str, Alternatives]
    templates: list[SentenceTemplate]

    def expand(self, template: SentenceTemplate, rng: Random) -> str:
        """One random sentence of the template."""
        return tidy(self._expand(template.content, rng, ing=False))

    def vocabulary(self) -> set[str]:
        """Every word of the corpus."""
        contents = [
            *self.phrases.values(),
            *(template.content for template in self.templates),
        ]
        return {
            word
            for content in contents
            for text in _texts(content)
            for word in re.findall("[a-z]+", text.lower())
        }

    def digest(self) -> str:
        """A short digest of corpus, hand-written sentences and lexicon, to check what weights were trained on."""
        folder = resources.files("maskwise.training.intent")
        files = [
            folder.joinpath("corpus", f"{name}.txt")
            for name in (*PHRASE_FILES, *TEMPLATE_FILES)
        ]
        files += [
            folder.joinpath("hand_written", f"{name}.jsonl") for name in TRAINING_SETS
        ]
        files.append(
            resources.files("maskwise.language.lexicons").joinpath(
                f"{LEXICON_FILE}.txt"
            )
        )
        texts = b"".join(file.read_bytes() for file in files)
        return hashlib.sha256(texts).hexdigest()[:16]

    def _expand(self, part: TemplatePart, rng: Random, *, ing: bool) -> str:
        if isinstance(part, str):
            return re.sub(
                r"\*([a-z-]+)",
                lambda match: _inflect(match[1]) if ing else match[1],
                part,
            )
        if isinstance(part, PhraseReference):
            return self._expand(self.phrases[part.name], rng, ing=ing or part.ing)
        text = ""
        for each in rng.choice(part.options):
            more = self._expand(each, rng, ing=ing)
            text += " " + more if text[-1:].isalnum() and more[:1].isalnum() else more
        return text


def load_corpus() -> TemplateCorpus:
    """The bundled corpus; an unknown phrase or an unmatched bracket raises RecordError."""
    phrases: dict[str, Alternatives] = {}
    for name in PHRASE_FILES:
        phrases |= dict(_read_phrases(name))
    templates = [
        template
        for mask_type in TEMPLATE_FILES
        for template in _read_templates(mask_type)
    ]
    for line, content in [
        *phrases.items(),
        *((template.line, template.content) for template in templates),
    ]:
        unknown = sorted(set(_references(content)) - set(phrases))
        if unknown:
            raise RecordError(
                f"corpus: {line!r} uses the unknown phrase <{unknown[0]}>"
            )
    return TemplateCorpus(phrases, templates)


def tidy(text: str) -> str:
    """Normal spacing and punctuation; sentences begin with a capital."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ([,.;:?!])", r"\1", text)
    text = re.sub(r"([,;:])[,;:]+", r"\1", text)
    text = re.sub(r"([?!])[.,;]|[.,;:]+([.?!])", r"\1\2", text)
    return re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def parse_template(line: str) -> Alternatives:
    """A line as alternatives; brackets must match."""
    finished: list[list[tuple[TemplatePart, ...]]] = [[]]
    current: list[list[TemplatePart]] = [[]]
    open_brackets: list[str] = []
    place = 0
    for mark in _MARK.finditer(line):
        if mark.start() > place:
            current[-1].append(line[place : mark.start()])
        place = mark.end()
        if mark[1]:
            current[-1].append(PhraseReference(mark[1], bool(mark[2])))
        elif mark[3] in "([":
            open_brackets.append(mark[3])
            finished.append([])
            current.append([])
        else:
            finished[-1].append(tuple(current.pop()))
            if mark[3] == "|":
                current.append([])
                continue
            if not open_brackets or open_brackets[-1] + mark[3] not in ("()", "[]"):
                raise RecordError(f"corpus: unmatched {mark[3]!r} in {line!r}")
            optional = open_brackets.pop() == "["
            current[-1].append(
                Alternatives(
                    (*finished.pop(), ()) if optional else tuple(finished.pop())
                )
            )
    if open_brackets:
        raise RecordError(f"corpus: {open_brackets[-1]!r} is never closed in {line!r}")
    if line[place:]:
        current[-1].append(line[place:])
    return Alternatives((*finished[0], tuple(current[0])))


def _read_phrases(name: str) -> Iterator[tuple[str, Alternatives]]:
    text = re.sub(r"\n +\|", " |", "\n".join(_lines(name)))
    for line in text.splitlines():
        phrase, alternatives = line.split(" = ", 1)
        yield phrase, parse_template(re.sub(r"\s*\|\s*", "|", alternatives))


def _read_templates(mask_type: RequestedMask) -> Iterator[SentenceTemplate]:
    family = ""
    for line in _lines(mask_type):
        if line.startswith("=="):
            family = line[2:].strip()
        else:
            yield SentenceTemplate(mask_type, family, line, parse_template(line))


def _lines(name: str) -> Iterator[str]:
    text = (
        resources.files("maskwise.training.intent")
        .joinpath("corpus", f"{name}.txt")
        .read_text("utf-8")
    )
    return (
        line for line in text.splitlines() if line.strip() and not line.startswith("#")
    )


def _inflect(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if _DOUBLED.fullmatch(verb) else "") + "ing"


def _leaves(content: Alternatives) -> Iterator[str | PhraseReference]:
    for option in content.options:
        for part in option:
            if isinstance(part, Alternatives):
                yield from _leaves(part)
            else:
                yield part


def _references(content: Alternatives) -> Iterator[str]:
    return (part.name for part in _leaves(content) if isinstance(part, PhraseReference))


def _texts(content: Alternatives) -> Iterator[str]:
    return (part for part in _leaves(content) if isinstance(part, str))

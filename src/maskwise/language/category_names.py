"""Whether a text names a category: by its name, a synonym, a plural, another inflection or a compound."""

import functools
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from maskwise.language.lexicons import read_lines, read_sections
from maskwise.language.tokens import split_words
from maskwise.language.word_forms import base_forms, singular_forms

Words = tuple[str, ...]

_SECTIONS = read_sections("name_words")
ARTICLES = frozenset(_SECTIONS["articles"])
POINTERS = frozenset(_SECTIONS["pointers"])
PREPOSITIONS = frozenset(_SECTIONS["prepositions"])
AMBIGUOUS = frozenset(_SECTIONS["ambiguous"])
UNRELATED = frozenset(_SECTIONS["unrelated"])
GENERAL = frozenset(_SECTIONS["general"])
NOT_BY_HEAD = frozenset(tuple(name.split()) for name in _SECTIONS["not by head"])


@dataclass(frozen=True)
class CategoryLexicon:
    """Other names of a category, and the kinds of it. Names are tuples of words in the singular."""

    equal: dict[Words, frozenset[Words]]
    kinds: dict[Words, frozenset[Words]]


def find_category_name(text: str, name: str) -> str | None:
    """The words of a text that name a category; None if there are none.

    name: as datasets write it: "wine glass", "cell_phone", "bow_(weapon)", "car, auto", "knife:blade", "man in white".
    Of a compound the last word counts too: "glass" reveals a wine glass.
    """
    words = split_words(text)
    positions = _base_form_positions(text)
    for revealing in revealing_names(name):
        # Only the last word of a name is inflected: "wine glasses".
        for last in positions.get(revealing[-1], ()):
            first = last - len(revealing) + 1
            if first < 0 or words[first:last] != revealing[:-1]:
                continue
            if _is_noun(words, last, revealing):
                return " ".join(words[first : last + 1])
    return None


@functools.lru_cache(2**10)  # a question is searched for the name of every target
def _base_form_positions(text: str) -> dict[str, list[int]]:
    """Positions of the words of a text that may be an inflection of a base form, by base form."""
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(split_words(text)):
        forms = frozenset([word]) if word in UNRELATED else base_forms(word)
        for form in forms:
            positions.setdefault(form, []).append(position)
    return positions


def _is_noun(words: Words, position: int, name: Words) -> bool:
    """False for a word that is probably not the noun of the same spelling: "can" in "what can I drink"."""
    if len(name) > 1 or name[0] not in AMBIGUOUS:
        return True
    if words[position] == name[0] + "s":
        return True
    return position > 0 and words[position - 1] in ARTICLES


@functools.lru_cache(
    2**12
)  # a dataset has hundreds of categories and thousands of questions
def revealing_names(name: str) -> tuple[Words, ...]:
    """All names that reveal a category, each once, their last words in the singular; the category's own come first."""
    lexicon = load_lexicon()
    # A dictionary without values is a set that keeps the order.
    revealing = dict[Words, None]()
    for written in split_names(name):
        for form in sorted(singular_forms(written[-1])):
            own = (*written[:-1], form)
            equal = [own, *sorted(lexicon.equal.get(own, ()))]
            # Compounds are also written as one word: "wineglass".
            closed = [("".join(words),) for words in equal if len(words) > 1]
            revealing |= dict.fromkeys([*equal, *closed, *_heads(own)])
            for words in equal:
                revealing |= dict.fromkeys(sorted(lexicon.kinds.get(words, ())))
    return tuple(revealing)


def split_names(name: str) -> list[Words]:
    """The names in a dataset's name of a category, each as words without articles and what follows the noun."""
    # "bow_(weapon)" is a bow; "cup's handle" and "knife:blade" name an object and a part of it.
    without_remarks = re.sub(r"\([^)]*\)", " ", name.replace("_", " "))
    parts = re.split(r"[,;/:]|['’]s\s", without_remarks)
    nouns = [_noun(split_words(part)) for part in parts]
    return [noun for noun in dict.fromkeys(nouns) if noun]


def _noun(words: Sequence[str]) -> Words:
    """The words up to the first preposition, without articles."""
    noun: list[str] = []
    for word in words:
        if word in ARTICLES or word in POINTERS:
            continue
        if word in PREPOSITIONS and noun:
            break
        noun.append(word)
    return tuple(noun)


def _heads(name: Words) -> list[Words]:
    """What a compound is a kind of: ("glass",) for ("wine", "glass") and, if the lexicon says so, ("wineglass",)."""
    if len(name) > 1:
        has_no_head = name[-2:] in NOT_BY_HEAD or name[-1] in GENERAL
        return [] if has_no_head else [name[-1:]]
    heads = []
    for whole, kinds in load_lexicon().kinds.items():
        is_compound_of_it = name in kinds and name[0].endswith(whole[0])
        if is_compound_of_it and whole[0] not in GENERAL:
            heads.append(whole)
    return heads


@functools.cache
def load_lexicon() -> CategoryLexicon:
    """The synonyms and kinds that ship with the package: lexicons/category_names.txt."""
    equal: defaultdict[Words, set[Words]] = defaultdict(set)
    kinds: defaultdict[Words, set[Words]] = defaultdict(set)
    for line in read_lines("category_names"):
        whole, is_list_of_kinds, narrower = line.partition(" > ")
        if is_list_of_kinds:
            kinds[tuple(whole.split())] |= {(kind,) for kind in narrower.split()}
            continue
        names = {tuple(name.split()) for name in line.split(" = ")}
        for name in names:
            equal[name] |= names - {name}
    return CategoryLexicon(
        equal={name: frozenset(names) for name, names in equal.items()},
        kinds={name: frozenset(names) for name, names in kinds.items()},
    )

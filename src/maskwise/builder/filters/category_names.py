"""Whether a text names a category: by its name, a synonym, a plural, another inflection or a compound."""

import functools
import re
from collections import defaultdict
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from maskwise.builder.filters.word_forms import (
    base_forms,
    singular_forms,
    split_words,
    word_set,
)

ARTICLES = word_set("a an the some any my your his her its their our")
POINTERS = word_set("this that these those")
PREPOSITIONS = word_set(
    "of in on at with without by from behind under over near for to inside beside between wearing holding sitting "
    "standing that which who and"
)
AMBIGUOUS = word_set(
    "can will may might must saw watch back left right fall park rest stand cover set"
)
"""Categories that are also common words of other kinds: they count in the plural or after an article only."""

UNRELATED = word_set(
    "based basing boarded boarding bowling controlled controlling handled handling locked locking monitored monitoring "
    "plated recorded recording registered rolled rolling set setting sticker sticking suited trained trainer training"
)
"""Inflections of verbs that do not point to the object of the same name."""

GENERAL = word_set(
    "aid base being case control head holder instrument item machine material object piece player set thing tool top "
    "utensil vehicle"
)
"""Last words of compounds that name no category."""

NOT_BY_HEAD = frozenset(
    {
        ("hot", "dog"),
        ("guinea", "pig"),
        ("sea", "horse"),
        ("jelly", "fish"),
        ("star", "fish"),
    }
)
"""Names that their last word does not stand for."""

Words = tuple[str, ...]


class CategoryLexicon(NamedTuple):
    """Other names of a category, and the kinds of it. Names are tuples of words in the singular."""

    equal: dict[Words, frozenset[Words]]
    kinds: dict[Words, frozenset[Words]]


def find_category_name(text: str, name: str) -> str | None:
    """The words of a text that name a category; None if there are none.

    name: as datasets write it: "wine glass", "cell_phone", "bow_(weapon)", "car, auto", "knife:blade", "man in white".
    Of a compound the last word counts too: "glass" reveals a wine glass.
    """
    words = split_words(text)
    places = _base_form_places(text)
    for revealing in revealing_names(name):
        for last in places.get(revealing[-1], ()):
            first = last - len(revealing) + 1
            if (
                first >= 0
                and words[first:last] == revealing[:-1]
                and _is_noun(words, last, revealing)
            ):
                return " ".join(words[first : last + 1])
    return None


@functools.lru_cache(2**10)
def _base_form_places(text: str) -> dict[str, list[int]]:
    """Where words of a text are that may be an inflection of a base form, by base form."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(split_words(text)):
        for form in (word,) if word in UNRELATED else base_forms(word):
            places.setdefault(form, []).append(place)
    return places


def _is_noun(words: Words, place: int, name: Words) -> bool:
    """False for a word that is probably not the noun of the same spelling: "can" in "what can I drink"."""
    if len(name) > 1 or name[0] not in AMBIGUOUS:
        return True
    return words[place] == name[0] + "s" or (place > 0 and words[place - 1] in ARTICLES)


@functools.lru_cache(2**12)
def revealing_names(name: str) -> tuple[Words, ...]:
    """All names that reveal a category, their last words in the singular."""
    lexicon = load_lexicon()
    found = dict[Words, None]()
    for one in split_names(name):
        for own in [(*one[:-1], form) for form in sorted(singular_forms(one[-1]))]:
            equal = [own, *sorted(lexicon.equal.get(own, ()))]
            kinds = [
                kind for words in equal for kind in sorted(lexicon.kinds.get(words, ()))
            ]
            closed = [("".join(words),) for words in equal if len(words) > 1]
            found |= dict.fromkeys([*equal, *closed, *_heads(own), *kinds])
    return tuple(found)


def split_names(name: str) -> list[Words]:
    """The names in a dataset's name of a category, each as words without articles and what follows the noun."""
    plain = re.sub(r"\([^)]*\)", " ", name.replace("_", " "))
    names = [_noun(split_words(part)) for part in re.split(r"[,;/:]|['’]s\s", plain)]
    return [found for found in dict.fromkeys(names) if found]


def _noun(words: Sequence[str]) -> Words:
    kept = [word for word in words if word and word not in ARTICLES | POINTERS]
    end = next(
        (place for place, word in enumerate(kept) if word in PREPOSITIONS and place),
        len(kept),
    )
    return tuple(kept[:end])


def _heads(name: Words) -> list[Words]:
    """What a compound is a kind of: ("glass",) for ("wine", "glass") and, if the lexicon says so, ("wineglass",)."""
    if len(name) > 1:
        return [] if name[-2:] in NOT_BY_HEAD or name[-1] in GENERAL else [name[-1:]]
    broader = (whole for whole, kinds in load_lexicon().kinds.items() if name in kinds)
    return [
        whole
        for whole in broader
        if name[0].endswith(whole[0]) and whole[0] not in GENERAL
    ]


@functools.cache
def load_lexicon() -> CategoryLexicon:
    """The synonyms and kinds that ship with the package."""
    equal: defaultdict[Words, set[Words]] = defaultdict(set)
    kinds: defaultdict[Words, set[Words]] = defaultdict(set)
    text = (
        resources.files("maskwise.builder.filters")
        .joinpath("category_names.txt")
        .read_text("utf-8")
    )
    for line in filter(
        None, (line.partition("#")[0].strip() for line in text.splitlines())
    ):
        whole, is_kinds, narrower = line.partition(" > ")
        if is_kinds:
            kinds[tuple(whole.split())] |= {(kind,) for kind in narrower.split()}
            continue
        names = {tuple(name.split()) for name in line.split(" = ")}
        for name in names:
            equal[name] |= names - {name}
    return CategoryLexicon(
        {name: frozenset(found) for name, found in equal.items()},
        {name: frozenset(found) for name, found in kinds.items()},
    )

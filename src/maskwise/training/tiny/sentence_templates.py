"""Sentences with a gap for the noun phrase of a question, from the training corpus of the intent classifier.

The world's grammar has few wordings, and a grounder trained on these alone takes every unknown word for a hint. The
templates name no object of the world, so the noun phrase alone decides what is meant. Wordings that the world's test
split holds out stay unseen: no template has three consecutive words that only held-out wordings have.
"""

import re
from random import Random

from maskwise.arrays import Int64Array
from maskwise.models.tiny.spec import (
    CATEGORIES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    MATERIAL_NAMES,
)
from maskwise.models.tiny.tokenizer import split_words, tokenize
from maskwise.training.intent.templates import Alternatives, TemplateCorpus, load_corpus
from maskwise.world.question_templates import FAMILIES, PRONOUNS

GAP = "GAP"
NOUN_PHRASES = ("np", "np0", "npm", "nps")
"""Placeholders of the corpus for what is asked for."""

EXCLUDED_FAMILIES = frozenset(
    (
        "hiding says where",
        "other meanings of the words",
        "talk around it",
        "things people know",
        "by other ways",
        "with what is in sight",
        "pictures described",
        "reasoning questions",
        "attributes with cue words",
        "described by what cannot be seen",
    )
)
"""Families of visible sentences whose noun phrase often says where the target is, not what it is."""

_OTHER_TARGET = re.compile(
    r"\b(part|side|end|piece|half|bit) of GAP (is|keeps|makes|gives|helps|lets|the)"
    r"|(covers|hides|blocks|in front of)( part of)? GAP\?|everything .*GAP|them but|to reach GAP",
    re.IGNORECASE,
)
"""Sentences that ask for a piece of the noun phrase, for everything else, or for what is in front of it."""

WORLD_WORDS = frozenset(
    word
    for name in (
        *CATEGORY_NAMES,
        *COLOR_NAMES,
        *MATERIAL_NAMES,
        *(part for category in CATEGORIES.values() for part in category.parts),
    )
    for noun in split_words(name)
    for word in (noun, f"{noun}s", f"{noun}es")
)
"""Words for objects, colors, materials and parts, singular and plural."""


TokenTemplate = tuple[Int64Array, Int64Array]
"""The tokens before and after the gap, int64 [length, 1 + MAX_TRIGRAMS] each."""


def write_templates(count: int, seed: int) -> list[str]:
    """Different sentences with one GAP; every template of the corpus is equally likely."""
    corpus = load_corpus()
    gap = Alternatives(((GAP,),))
    templates = [
        t
        for t in corpus.templates
        if t.mask_type == "amodal" or t.family not in EXCLUDED_FAMILIES
    ]
    gapped = TemplateCorpus(
        corpus.phrases | dict.fromkeys(NOUN_PHRASES, gap), templates
    )
    held_out = held_out_word_trigrams()
    random = Random(seed)
    sentences: dict[str, None] = {}
    while len(sentences) < count:
        text = gapped.expand(random.choice(templates), random)
        words = split_words(text)
        excluded = (
            WORLD_WORDS & set(words)
            or held_out & word_trigrams(words)
            or _OTHER_TARGET.search(text)
        )
        if text.count(GAP) == 1 and not excluded:
            sentences[text] = None
    return list(sentences)


def held_out_word_trigrams() -> set[tuple[str, ...]]:
    """Three consecutive words that occur in held-out wordings of the world and in no other wording."""
    trigrams: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    for family in FAMILIES:
        for template in family.templates:
            for agreeing in PRONOUNS.values():
                filled = template.format(
                    **agreeing, np=GAP, front=GAP, ask=GAP, Ask=GAP
                )
                trigrams[family.held_out] |= word_trigrams(split_words(filled))
    return trigrams[True] - trigrams[False]


def word_trigrams(words: list[str]) -> set[tuple[str, ...]]:
    """All three consecutive words, punctuation left out."""
    plain = [word for word in words if word.isalnum()]
    return set(zip(plain, plain[1:], plain[2:]))


def make_templates(count: int, seed: int) -> list[TokenTemplate]:
    """As write_templates, tokenized."""
    templates = []
    for text in write_templates(count, seed):
        before, after = text.split(GAP)
        templates.append((_tokenize(before), _tokenize(after)))
    return templates


def _tokenize(text: str) -> Int64Array:
    return tokenize([text])[0, : len(split_words(text))]

"""Colors in the words of questions and answers about the world: pairs that a split never shows, and exchanged colors.

A category has some colors in the test split only (`HELD_OUT`). In the training split a question may still name such a
pair, and then there is never a target: a model learns that the pair does not exist, and says so of the test split.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from random import Random

import msgspec

from maskwise.schema import Answer, Phrase, Region, Sample
from maskwise.world.catalogue import CATEGORIES, COLORS, HELD_OUT
from maskwise.world.referring_expressions import noun_phrase

_COLOR = re.compile(rf"\b({'|'.join(COLORS)})\b", re.IGNORECASE)


def names_held_out_color(phrase: str) -> bool:
    """True if a noun phrase has a category in a color that only scenes of the test split show."""
    return _held_out_pairs().search(phrase) is not None


@cache
def _held_out_pairs() -> re.Pattern[str]:
    phrases = []
    for category, colors in HELD_OUT.items():
        for noun in (category, CATEGORIES[category].plural, *CATEGORIES[category].also):
            for color in colors:
                phrases.append(re.escape(noun_phrase(category, color, noun=noun)))
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


def draw_colors(rng: Random) -> dict[str, str]:
    """A random permutation of all color words."""
    names = list(COLORS)
    return dict(zip(names, rng.sample(names, len(names))))


def exchange_colors(sample: Sample, exchanged: Mapping[str, str]) -> Sample:
    """The sample with every color word replaced. It holds only for a sample without its image."""

    def replaced(text: str) -> str:
        return _COLOR.sub(lambda word: _replace_word(word[0], exchanged), text)

    answer = None
    if sample.answer is not None:
        answer = _replace_in_answer(sample.answer, replaced)
    targets: list[Region] = []
    for target in sample.targets:
        name = replaced(target.name)
        targets.append(msgspec.structs.replace(target, name=name))
    return msgspec.structs.replace(
        sample,
        question=replaced(sample.question),
        answer=answer,
        targets=tuple(targets),
    )


def _replace_in_answer(answer: Answer, replaced: Callable[[str], str]) -> Answer:
    """The answer in other words. Phrases keep their words, whose characters may move; none ends within a word."""
    phrases = []
    for phrase in answer.phrases:
        start = len(replaced(answer.text[: phrase.start]))
        stop = len(replaced(answer.text[: phrase.stop]))
        phrases.append(Phrase(start=start, stop=stop, regions=phrase.regions))
    return Answer(text=replaced(answer.text), phrases=tuple(phrases))


def _replace_word(word: str, exchanged: Mapping[str, str]) -> str:
    """The word that takes the place of a color word, capitalized alike."""
    replacement = exchanged[word.lower()]
    return replacement.capitalize() if word[0].isupper() else replacement

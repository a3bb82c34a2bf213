"""Changes of a question's words, each with what must happen to the answer.

    change = WORD_CHANGES["politeness"]
    change.write(AskedQuestion(sample, regions), rng).text

Most keep what is asked for, so that the answer must stay. `negated mask type` asks for the
other mask of the same target. `other languages` ask for one object by its name, and are
compared with the same request in English.
"""

import functools
import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np

from maskwise.language.category_names import find_category_name
from maskwise.language.lexicons import read_sections
from maskwise.schema import MaskType, Region, Sample
from maskwise.world.question_templates import (
    FAMILIES,
    PRONOUNS,
    TemplateFamily,
    TemplateSlots,
    fill_template,
    template_slots,
)

Expectation = Literal["the same answer", "the other mask type"]
SAME: Expectation = "the same answer"
OTHER_TYPE: Expectation = "the other mask type"

LANGUAGES = ("German", "Spanish", "French", "Chinese")
REQUESTS = (
    "Segmentiere {name}.",
    "Segmenta {name}.",
    "Segmente {name}.",
    "请分割图中的{name}。",
)
ENGLISH_REQUEST = "Segment the {name}."

GREETINGS = (
    ("Hello! Would you be so kind as to help me?", "Thank you very much."),
    ("Good morning. If it is not too much trouble:", "Many thanks in advance!"),
    ("Excuse me, I have a small favor to ask.", "I really appreciate it."),
)

INSULTS = (
    ("Come on, hurry up.", "And do not waste my time."),
    ("This is so annoying.", "Get it done already."),
)

DISTRACTORS = (
    "I took this picture on a Tuesday, shortly after lunch.",
    "My cousin collects stamps from Portugal.",
    "The train was twelve minutes late this morning.",
    "Water boils at a lower temperature in the mountains.",
    "My neighbor has been learning to play chess since May.",
    "The meeting has been moved to half past four.",
)
"""Sentences about nothing in the image: they name no object of the world and no word that
hints at a mask type."""

SWAPS = {False: "not only what shows", True: "leave out the hidden"}
"""Families whose words negate the other mask type: for visible and for amodal questions."""

DETERMINERS = ("the ", "all ", "both ", "every ", "each ", "any ", "a ", "an ")
LONGEST_NAME = 80
"""Characters of a noun phrase that a template may take out of a question; longer ones are
whole clauses."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class AskedQuestion(NamedTuple):
    """A sample with the regions of its image."""

    sample: Sample
    regions: tuple[Region, ...]


class ChangedQuestion(NamedTuple):
    """Other words, and the mask type they ask for. control: a question to compare with, if
    that is not the original one.
    """

    text: str
    mask_type: MaskType
    control: str | None = None


class WordChange(NamedTuple):
    """A change of words. write: None where it cannot be applied to a question."""

    expected: Expectation
    write: Callable[[AskedQuestion, np.random.Generator], ChangedQuestion | None]


def _keep(question: AskedQuestion, text: str) -> ChangedQuestion:
    return ChangedQuestion(text, question.sample.mask_type)


def _choose(rng: np.random.Generator, items: Iterable[str]) -> str:
    listed = list(items)
    return listed[int(rng.integers(len(listed)))]


# -- spelling


def _add_typos(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion | None:
    """One typing error in every eighth word, at least one; never in a short word."""
    text = question.sample.question
    words = list(re.finditer(r"[A-Za-z]{5,}", text))
    if not words:
        return None
    count = max(1, round(len(text.split()) / 8))
    picks = rng.permutation(len(words))[:count]
    # From the end, so that earlier places stay right.
    for pick in sorted(picks.tolist(), reverse=True):
        word = words[pick]
        misspelt = _misspell(word.group(), rng)
        text = text[: word.start()] + misspelt + text[word.end() :]
    return _keep(question, text)


def _misspell(word: str, rng: np.random.Generator) -> str:
    """Two letters swapped, one left out, doubled or replaced; the first letter stays."""
    place = 1 + int(rng.integers(len(word) - 2))
    first = word[:place]
    rest = word[place:]
    letter = LETTERS[int(rng.integers(len(LETTERS)))]
    variants = (
        first + rest[1] + rest[0] + rest[2:],
        first + rest[1:],
        first + rest[0] + rest,
        first + letter + rest[1:],
    )
    different = [variant for variant in variants if variant != word]
    return _choose(rng, different)


def _write_carelessly(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion:
    """Lower case without punctuation."""
    return _keep(question, re.sub(r"[.,;:!?]", "", question.sample.question).lower())


def _write_in_capitals(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion:
    return _keep(question, question.sample.question.upper())


# -- sentences around the question


def _surround(
    question: AskedQuestion,
    frames: tuple[tuple[str, str], ...],
    rng: np.random.Generator,
) -> ChangedQuestion:
    before, after = frames[int(rng.integers(len(frames)))]
    return _keep(question, f"{before} {question.sample.question} {after}")


def _ask_politely(question: AskedQuestion, rng: np.random.Generator) -> ChangedQuestion:
    return _surround(question, GREETINGS, rng)


def _ask_rudely(question: AskedQuestion, rng: np.random.Generator) -> ChangedQuestion:
    return _surround(question, INSULTS, rng)


def _distract(question: AskedQuestion, rng: np.random.Generator) -> ChangedQuestion:
    sentence = _choose(rng, DISTRACTORS)
    if rng.random() < 0.5:
        return _keep(question, f"{sentence} {question.sample.question}")
    return _keep(question, f"{question.sample.question} {sentence}")


def _mention_other(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion | None:
    """A sentence that names something else in the image, which is not asked for."""
    name = _other_name(question, rng)
    if name is None:
        return None
    text = f"By the way, I like the {name}. {question.sample.question}"
    return _keep(question, text)


def _negate_other(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion | None:
    """What is not meant is said as well."""
    name = _other_name(question, rng)
    if name is None:
        return None
    return _keep(question, f"{question.sample.question} I do not mean the {name}.")


def _other_name(question: AskedQuestion, rng: np.random.Generator) -> str | None:
    """The name of a whole object in the image that is no target and not in the question."""
    sample = question.sample
    taken = {region.id for region in sample.targets}
    taken |= {region.part_of for region in sample.targets if region.part_of}
    target_names = [region.name for region in sample.targets]
    names = []
    for region in question.regions:
        is_other = region.part_of is None and region.id not in taken and region.name
        if is_other and not _shares_words(
            region.name, [sample.question, *target_names]
        ):
            names.append(region.name)
    return _choose(rng, sorted(set(names))) if names else None


def _shares_words(name: str, texts: list[str]) -> bool:
    """Whether a text has the last word of a name, which is its noun, or names it."""
    noun = name.rsplit(maxsplit=1)[-1].lower()
    return any(noun in text.lower() or find_category_name(text, name) for text in texts)


# -- other sentences for the same request


class _Pattern(NamedTuple):
    family: TemplateFamily
    expression: re.Pattern[str]


@functools.cache
def _patterns() -> list[_Pattern]:
    """The templates with a noun phrase as expressions that take it out, longest first."""
    patterns = []
    for family in FAMILIES:
        for template in family.templates:
            if "np" in template_slots(template) <= {"np", *PRONOUNS[False]}:
                patterns.append((template, family))
    patterns.sort(key=lambda pair: -len(pair[0]))
    return [_Pattern(family, _to_expression(template)) for template, family in patterns]


def _to_expression(template: str) -> re.Pattern[str]:
    expression = re.escape(template).replace(r"\{np\}", "(?P<np>.+)")
    for slot, singular in PRONOUNS[False].items():
        forms = f"(?:{singular}|{PRONOUNS[True][slot]})"
        expression = expression.replace(rf"\{{{slot}\}}", forms)
    return re.compile(expression, re.IGNORECASE)


class _Request(NamedTuple):
    np: str
    family: TemplateFamily


def _read_request(question: str) -> _Request | None:
    """The noun phrase of a question that one of the world's templates could have made."""
    for pattern in _patterns():
        match = pattern.expression.fullmatch(question.strip())
        if match is None:
            continue
        name = match["np"]
        name = name[0].lower() + name[1:]
        if len(name) <= LONGEST_NAME and name.startswith(DETERMINERS):
            return _Request(name, pattern.family)
    return None


def _rephrase(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion | None:
    """A sentence of another family of templates that asks for the same mask type."""
    request = _read_request(question.sample.question)
    if request is None or request.family.intent != question.sample.mask_type:
        return None
    families = [
        family
        for family in FAMILIES
        if family.intent == request.family.intent
        and family is not request.family
        and not family.whole
    ]
    templates = [template for family in families for template in _plain(family)]
    return _keep(question, _fill(_choose(rng, templates), request.np))


def _swap_mask_type(
    question: AskedQuestion, rng: np.random.Generator
) -> ChangedQuestion | None:
    """The other mask type, asked for by a sentence that negates the first one."""
    sample = question.sample
    request = _read_request(sample.question)
    if request is None or request.family.intent != sample.mask_type:
        return None
    if any(
        region.visible is None or region.amodal is None for region in sample.targets
    ):
        return None
    is_amodal = sample.mask_type == "amodal"
    family = next(family for family in FAMILIES if family.name == SWAPS[is_amodal])
    text = _fill(_choose(rng, _plain(family)), request.np)
    return ChangedQuestion(text, "visible" if is_amodal else "amodal")


def _plain(family: TemplateFamily) -> list[str]:
    """The templates that need the noun phrase only."""
    return [item for item in family.templates if template_slots(item) == {"np"}]


def _fill(template: str, name: str) -> str:
    return fill_template(template, TemplateSlots(name))


# -- other languages


@functools.cache
def _translations() -> dict[str, list[str]]:
    return read_sections("category_translations")


def _translate(
    question: AskedQuestion, rng: np.random.Generator, language: int
) -> ChangedQuestion | None:
    """A request for the only object of its name, in another language and in English."""
    sample = question.sample
    if len(sample.targets) != 1 or sample.targets[0].visible is None:
        return None
    target = sample.targets[0]
    name = _category(target.name)
    whole = [region for region in question.regions if region.part_of is None]
    same = [region for region in whole if name and name in region.name.lower()]
    if name is None or target.part_of is not None or len(same) != 1:
        return None
    text = REQUESTS[language].format(name=_translations()[name][language])
    return ChangedQuestion(text, "visible", ENGLISH_REQUEST.format(name=name))


def _category(name: str) -> str | None:
    """The longest category with translations that a name ends with: "red wine glass"."""
    lower = name.lower()
    endings = [
        category
        for category in _translations()
        if lower == category or lower.endswith(f" {category}")
    ]
    return max(endings, key=len, default=None)


WORD_CHANGES: dict[str, WordChange] = {
    "typos": WordChange(SAME, _add_typos),
    "no punctuation": WordChange(SAME, _write_carelessly),
    "capitals": WordChange(SAME, _write_in_capitals),
    "politeness": WordChange(SAME, _ask_politely),
    "rudeness": WordChange(SAME, _ask_rudely),
    "distractor sentence": WordChange(SAME, _distract),
    "other object mentioned": WordChange(SAME, _mention_other),
    "other object negated": WordChange(SAME, _negate_other),
    "paraphrase": WordChange(SAME, _rephrase),
    "negated mask type": WordChange(OTHER_TYPE, _swap_mask_type),
}
"""By name; the order is that of reports."""

LANGUAGE_CHANGES: dict[str, WordChange] = {
    language: WordChange(SAME, functools.partial(_translate, language=number))
    for number, language in enumerate(LANGUAGES)
}

"""Words of the grammar: inflected verb phrases, frames of questions, and sentences before a question."""

import re
import zlib
from functools import lru_cache
from random import Random

from maskwise.builder.knowledge import Fact, load_knowledge
from maskwise.builder.knowledge_file import read_sections
from maskwise.language.word_forms import (
    NUMBERS,
    add_s,
    to_plural,
)

THIRD_PERSON = {"be": "is", "have": "has", "do": "does", "go": "goes"}

HEDGES = ("usually", "typically", "normally", "generally", "commonly")
"""Facts are about things of a sort; an image may show an exception, such as a laptop that is not folded shut."""

PREDICATE_NOUN = re.compile(r"be (?:an?|the|one|part|somebody) ")
"""Beginnings of verb phrases that say what a single thing is: two elephants are not "the heaviest walker"."""

INTRODUCED_SHARE = 0.2
"""Share of questions that are quoted, with a sentence that tells who asks. Of ReasonSeg's 1,326 training questions
42 % have several sentences; here many frames and all events have them too."""


@lru_cache(maxsize=1)
def load_frames() -> dict[str, tuple[str, ...]]:
    """Frames of questions by what they ask for."""
    return read_sections("frames.txt")


@lru_cache(maxsize=1)
def load_introductions() -> dict[str, tuple[str, ...]]:
    """Sentences that end before a quotation, for questions ("asks") and for both questions and requests ("says")."""
    return read_sections("introductions.txt")


@lru_cache(maxsize=4096)
def third_person(phrase: str, hedge: str = "") -> str:
    """A verb phrase after "it": "boil water" gives "boils water"; so do all verbs before a "*".

    hedge: an adverb, which stands before the verb or after "is".
    """
    first, space, rest = phrase.partition(" ")
    rest = re.sub(r"(\w+)\*", lambda match: _inflect(match[1]), rest)
    return _add_adverb(_inflect(first), hedge) + space + rest


@lru_cache(maxsize=4096)
def plural_form(phrase: str, hedge: str = "") -> str:
    """A verb phrase after "they": "be on its back" gives "are on their back"; hedge: as above."""
    first, space, rest = base_form(phrase).partition(" ")
    verb = _add_adverb("are" if first == "be" else first, hedge)
    return re.sub(r"\bits(elf)?\b", _plural_pronoun, verb + space + rest)


def _plural_pronoun(match: re.Match[str]) -> str:
    return "their" if match[1] is None else "themselves"


def choose_hedge(fact: Fact) -> str:
    """An adverb for a fact, always the same, such as "usually"; none for one that is always true."""
    if fact.always:
        return ""
    return HEDGES[zlib.crc32(fact.text.encode()) % len(HEDGES)]


def usual_singular(fact: Fact) -> str:
    """What a thing of a sort does: "usually boils water", "is typically folded shut"."""
    return third_person(fact.text, choose_hedge(fact))


def usual_plural(fact: Fact) -> str:
    """What things of a sort do: "usually boil water"."""
    return plural_form(fact.text, choose_hedge(fact))


def is_about_one(phrase: str) -> bool:
    """Whether a verb phrase holds of single things only: "be the heaviest walker on land"."""
    return PREDICATE_NOUN.match(phrase) is not None


def _add_adverb(verb: str, adverb: str) -> str:
    if not adverb:
        return verb
    return f"{verb} {adverb}" if verb in ("is", "are") else f"{adverb} {verb}"


def base_form(phrase: str) -> str:
    """A verb phrase after "would"."""
    return phrase.replace("*", "")


def negated(phrase: str, hedge: str = "", *, plural: bool) -> str:
    """A verb phrase with "not", after "it" or "they": "does not usually boil water"."""
    first, _, rest = base_form(phrase).partition(" ")
    adverb = f"{hedge} " if hedge else ""
    if first == "be":
        return f"{'are' if plural else 'is'} not {adverb}{rest}"
    return f"{'do' if plural else 'does'} not {adverb}{base_form(phrase)}"


def _inflect(verb: str) -> str:
    return THIRD_PERSON.get(verb, add_s(verb))


def ask_about(fact: Fact, count: int, kind: str | None, random: Random) -> str:
    """A question for all objects of which a fact is true. kind: theirs, None if they have none or several."""
    if fact.kind == "ask":
        return fact.text
    section = _choose_section(fact, count, kind, random)
    question = fill(random.choice(_frames(section, count)), fact, count, kind)
    return f"{fact.opening} {question}" if fact.opening else question


NUMBERED = {
    "what does": ("one thing does", None),
    "what use": ("one thing use", None),
    "event": ("one thing event", None),
    "who does": ("one person does", "everybody does"),
    "who use": (None, "everybody use"),
}
"""Sections of frames with further ones for one target and for several."""


def _frames(section: str, count: int) -> tuple[str, ...]:
    """The frames of a section that suit a number of targets."""
    frames = load_frames()
    further = NUMBERED.get(section, (None, None))[count > 1]
    return frames[section] + (frames[further] if further is not None else ())


def _choose_section(fact: Fact, count: int, kind: str | None, random: Random) -> str:
    if fact.kind == "need":
        return "need"
    if fact.kind == "event":
        return "event who" if kind == "person" else "event"
    verb = "does" if fact.kind == "does" else "use"
    if kind == "person":
        return f"who {verb}"
    if count > 1 and verb == "does" and is_about_one(fact.text):
        return "what does"
    # Kinds and numbers narrow the question down; without them it is more open.
    narrow = random.random()
    if kind is not None and narrow < 0.4:
        return f"which {'kinds' if count > 1 else 'kind'} {_agree(verb, count)}"
    if count > 1 and narrow < 0.8:
        return f"which things {_agree(verb, count)}"
    return f"what {verb}"


def _agree(verb: str, count: int) -> str:
    return "do" if verb == "does" and count > 1 else verb


def fill(frame: str, fact: Fact, count: int, kind: str | None) -> str:
    """A frame with the verb phrase of a fact, the number of targets and their kind."""
    return frame.format(
        vp=base_form(fact.text),
        vps=usual_singular(fact),
        vpp=usual_plural(fact),
        use=base_form(fact.text),
        n=number_word(count),
        kind=kind or "thing",
        kinds=plural_kind(kind),
    )


def plural_kind(kind: str | None) -> str:
    """A kind in the plural; "things" for none."""
    return "things" if kind is None else load_knowledge().kinds[kind].plural


def number_word(count: int) -> str:
    """A number in words, up to ten."""
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def describe(fact: Fact, kind: str | None, count: int = 1) -> str:
    """A noun phrase for what a fact is true of: "the animal that barks", "the things one would sit on"."""
    if kind == "person":
        people = "the one" if count == 1 else "everyone"
        if fact.kind == "use":
            return f"{people} you could {base_form(fact.text)}"
        return f"{people} who {usual_singular(fact)}"
    noun = f"the {kind or 'thing'}" if count == 1 else f"the {plural_kind(kind)}"
    if fact.kind == "use":
        return f"{noun} one would {base_form(fact.text)}"
    verb = usual_singular(fact) if count == 1 else usual_plural(fact)
    return f"{noun} that {verb}"


def introduce(question: str, random: Random) -> tuple[str, str]:
    """What stands before and after a question: who asks it, and quotation marks. Mostly nothing.

    Questions that quote something, or that have a sentence of their own before them, stay as they are.
    """
    is_long = any(mark in question[:-1] for mark in '".?!')
    if is_long or random.random() >= INTRODUCED_SHARE:
        return "", ""
    introductions = load_introductions()
    suitable = introductions["says"]
    if question.endswith("?"):
        suitable += introductions["asks"]
    return f'{random.choice(suitable)} "', '"'


def count_noun(noun: str, count: int) -> str:
    """A noun after a number: "two cups", "two pieces of bread"."""
    if noun in load_knowledge().table.uncountable:
        return f"{number_word(count)} pieces of {noun}"
    return f"{number_word(count)} {to_plural(noun)}"

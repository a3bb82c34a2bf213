"""Word forms of English: plurals, singulars, articles, verb forms and enumerations.

Everything goes by the ending of a word and short lists of exceptions; there is no dictionary. `to_singular` gives the
likeliest form, for looking a word up. `singular_forms` and `base_forms` give every possible one, for finding a word
that must not occur.
"""

import functools
import re
from collections.abc import Sequence

from maskwise.language.lexicons import read_pairs, read_words, word_set

NUMBERS = read_words("numbers")
"""Words for the numbers from 0, up to ten."""

ORDINALS = ("first", "second", "third", "fourth", "fifth")

IRREGULAR_PLURALS = read_pairs("irregular_plurals")
IRREGULAR_SINGULARS = {plural: noun for noun, plural in IRREGULAR_PLURALS.items()}
UNCHANGED_PLURALS = frozenset(read_words("unchanged_plurals"))
PLURAL_ONLY_NOUNS = frozenset(read_words("plural_only_nouns"))

NO_PLURALS = word_set("always canvas does gas has lens perhaps was yes")
"""Words in -s that are no plurals, besides those in -ss, -us and -is."""

SIBILANTS = ("s", "x", "z", "ch", "sh")
"""Endings after which a plural and a verb take -es."""

VOWELS = "aeiou"

PLURAL_ENDINGS = (
    (re.compile(r"men$"), "man"),  # also in compounds: policemen
    (re.compile(r"(.[^aeiou])ies$"), r"\1y"),
    (re.compile(r"(.[sxzo]|[cs]h)es$"), r"\1"),
    (re.compile(r"(.[^s])s$"), r"\1"),
)
"""Endings of plurals, and what their singulars have instead."""

DOUBLED_CONSONANT = re.compile(r"([^aeiouy])\1$")
SHORT_SYLLABLE = re.compile(r"(?:^|[^aeiou])[aeiouy][^aeiouwxy]$")
"""Words of one short syllable double their last letter before -ing and -ed: "rating" comes from rate, not rat."""

DOUBLING_VERBS = word_set("forget infer omit")
"""Longer verbs that double their last letter too, because the stress is on the last syllable."""

AGENTS = {"skier": "ski", "skiers": "ski"}
"""Nouns for those who do something, where the rule for -er is too strict to give the verb."""

MIN_AGENT_STEM = 5
"""Letters before -er of a noun for who does something: "skateboarder", but not "paper"."""

VOWEL_LETTER_CONSONANT_SOUND = re.compile(r"uni|use|usu|uri|ute|uku|eu|one|once")
"""Beginnings of words that are written with a vowel and spoken with a consonant: a unicycle, a euro."""

SILENT_H = re.compile(r"hour|honest|honor|honour|heir")


def to_singular(word: str) -> str:
    """The likeliest singular of a noun in lower case; a word that is no plural stays.

    Verbs in -s lose it too, which does no harm where words are only compared with each other.
    """
    if word in IRREGULAR_SINGULARS:
        return IRREGULAR_SINGULARS[word]
    if word in PLURAL_ONLY_NOUNS or word in NO_PLURALS:
        return word
    # "glass", "bus", "tennis"; of two letters: "is", "as", "us".
    if len(word) < 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    # Not "ses": "vases" and "horses" have an e of their own.
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def to_plural(noun: str) -> str:
    """The plural of a noun, by the last word of its head: "wine glasses", "pieces of furniture".

    A noun that is a plural already stays.
    """
    head, of, complement = noun.partition(" of ")
    before, space, word = head.rpartition(" ")
    if word in IRREGULAR_PLURALS:
        plural = IRREGULAR_PLURALS[word]
    elif word in UNCHANGED_PLURALS or is_plural(word):
        plural = word
    else:
        plural = add_s(word)
    return before + space + plural + of + complement


def is_plural(phrase: str) -> bool:
    """Whether a noun phrase in lower case takes a plural verb: "the cups", "the scissors", "the cup and the dog".

    Of "the chest of drawers" the word before "of" counts. False for an empty phrase.
    """
    if " and " in phrase:
        return True
    head = phrase.partition(" of ")[0]
    word = head.rpartition(" ")[2]
    return word in PLURAL_ONLY_NOUNS or to_singular(word) != word


def with_article(noun: str) -> str:
    """A noun with its indefinite article; a plural noun has none."""
    if is_plural(noun):
        return noun
    if noun[0] in VOWELS:
        begins_with_vowel = VOWEL_LETTER_CONSONANT_SOUND.match(noun) is None
    else:
        begins_with_vowel = SILENT_H.match(noun) is not None
    return f"an {noun}" if begins_with_vowel else f"a {noun}"


def join_words(words: Sequence[str], conjunction: str = "and") -> str:
    """Words with commas and a last conjunction between them; empty for no words."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def capitalize_first(text: str) -> str:
    """A text whose first letter is a capital, as at the start of a sentence; the others stay ("TV" stays "TV")."""
    return text[:1].upper() + text[1:]


def add_s(word: str) -> str:
    """The regular plural of a noun, which is also the third person of a verb."""
    if word.endswith(SIBILANTS):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def verb_forms(verb: str) -> list[str]:
    """A regular verb, and its forms in -s, -ed and -ing: cover, covers, covered, covering."""
    return [verb, add_s(verb), *_suffixed(verb, ("ed", "ing"))]


def _suffixed(verb: str, suffixes: Sequence[str]) -> list[str]:
    """A verb with suffixes that begin with a vowel: "omit" gives "omitted"; "trace" gives "traced"."""
    stem = verb
    if verb.endswith("e") and not verb.endswith("ee"):  # but "seeing"
        stem = verb[:-1]
    elif verb in DOUBLING_VERBS:
        stem = verb + verb[-1]
    return [stem + suffix for suffix in suffixes]


def is_form_among(verb: str, words: frozenset[str]) -> bool:
    """Whether a verb or a form of it is among words: cut, cutting, cutter; slice, slicing."""
    stem = verb.removesuffix("e")
    doubled = stem + stem[-1:]
    forms = (
        verb,
        f"{stem}ing",
        f"{stem}ed",
        f"{stem}er",
        f"{doubled}ing",
        f"{doubled}ed",
    )
    return not words.isdisjoint(forms)


@functools.lru_cache(2**14)  # most words of questions occur again and again
def singular_forms(word: str) -> frozenset[str]:
    """A word in lower case, and every word of which it may be the plural."""
    forms = {ending.sub(singular, word) for ending, singular in PLURAL_ENDINGS}
    forms.add(word)
    forms.add(IRREGULAR_SINGULARS.get(word, word))
    return frozenset(forms)


@functools.lru_cache(2**14)
def base_forms(word: str) -> frozenset[str]:
    """Its singular forms, and the words of which it may be another inflection: "skiing" of ski, "biking" of bike."""
    forms = set(singular_forms(word))
    forms.add(AGENTS.get(word, word))
    for suffix in ("ing", "ed"):
        forms |= _verbs_of(word, suffix)
    for suffix in ("er", "ers"):
        stem = word.removesuffix(suffix)
        if stem != word and len(stem) >= MIN_AGENT_STEM:
            forms.add(stem)
    return frozenset(forms)


def _verbs_of(word: str, suffix: str) -> set[str]:
    """The verbs that may have this form; empty where the word does not end so."""
    stem = word.removesuffix(suffix)
    if stem == word or len(stem) < 2 or not re.search(r"[aeiouy]", stem):
        return set()
    if DOUBLED_CONSONANT.search(stem):
        return {stem, stem[:-1]}  # "filling" of fill, "cutting" of cut
    if SHORT_SYLLABLE.search(stem) and len(stem) < 5:
        return {stem + "e"}
    return {stem, stem + "e"}

"""Where a question says what it asks for.

    "Dogs like to chase things. What object in the picture might a dog fetch?"    asked for: object, not dog

The last sentence with an interrogative or a request counts. After an interrogative the first noun is what is asked for,
unless a verb or a preposition comes before it: "What could I use to cut the bread?" leaves the noun open.
"""

import itertools
import re
from collections.abc import Sequence

from maskwise.language.lexicons import word_set
from maskwise.language.phrases import PhraseMatch
from maskwise.language.tokens import Token, tokenize
from maskwise.models.photo.remarks import Span

SENTENCE_END = re.compile(r"[.?!]+(?:\s+|(?=[A-Z])|$)")
PLACE_OF_ALL = re.compile(
    r",?\s*\b(?:(?:shown|depicted|displayed|present|seen|visible|featured|found) )?(?:in|within|from|of|based on) "
    r"(?:the|this) (?:\w+ )?(?:picture|image|photo|photograph|scene)\b",
    re.IGNORECASE,
)
"""Words that say only that the thing is in the image."""

INTERROGATIVES = word_set(
    "what which who whom where whatever whichever whoever whomever"
)
PERSONAL = word_set("who whom whoever whomever")
REQUESTS = word_set("segment mark identify find show point outline locate highlight")
STOPS = word_set(
    "in on at for to from by with about as that if when can could would should "
    "might may must will do does did has have i you we they he she it one be "
    "being used allows enables "
    "under underneath beneath below above over behind beside near next inside upon"
)
"""Words that end the noun phrase of an interrogative: prepositions, auxiliary verbs, pronouns."""

CLAUSE_STARTS = word_set("what whatever")
DETERMINERS = word_set(
    "the a an this that these those my your his her its our their some another other"
)
"""After "what" a determiner begins a clause; before a noun it begins its phrase."""

BEFORE_FREE_RELATIVE = word_set("including with plus except excluding without than")
"""After a noun and one of these, "what" asks for nothing: "the bus with what is in front of it"."""

MAX_WORDS_BEFORE_NOUN = 6
"""Words between an interrogative and the noun that it asks for: "which of the two big red" is such a case."""

Noun = PhraseMatch[frozenset[str]]
"""A noun among the tokens of a sentence, and the categories that it may mean; empty: any category."""


Interrogative = tuple[int, Noun | None]
"""The place of an interrogative among the tokens, and what it asks for: None where it leaves that open."""


def split_sentences(text: str, left_out: Sequence[Span] = ()) -> list[list[Token]]:
    """The tokens of every sentence, without words such as "in the picture"; one empty list for an empty text.

    Offsets of tokens are those in the whole text. left_out: further parts of the text to pass over.
    """
    tokens = [
        token
        for token in tokenize(text)
        if not any(start <= token.start < stop for start, stop in left_out)
    ]
    sentences = []
    start = 0
    for stop, next_start in _sentence_ends(text):
        remarks = list(PLACE_OF_ALL.finditer(text, start, stop))
        sentence = []
        for token in tokens:
            in_sentence = start <= token.start < stop
            in_remark = any(
                remark.start() <= token.start < remark.end() for remark in remarks
            )
            if in_sentence and not in_remark:
                sentence.append(token)
        if sentence:
            sentences.append(sentence)
        start = next_start
    return sentences or [[]]


def _sentence_ends(text: str) -> list[tuple[int, int]]:
    """Where each sentence ends, and where the next begins."""
    ends = [match.span() for match in SENTENCE_END.finditer(text)]
    return [*ends, (len(text), len(text))]


def asking_sentence(sentences: Sequence[list[Token]]) -> list[Token]:
    """The last sentence with an interrogative, else the last one with a request, else the first."""
    for tokens in reversed(sentences):
        if asks_for_number(tokens) or _has_word(tokens, INTERROGATIVES):
            return tokens
    for tokens in reversed(sentences):
        if _has_word(tokens, REQUESTS):
            return tokens
    return sentences[0]


def asks_for_number(tokens: Sequence[Token]) -> bool:
    """Whether a sentence has "how many", "the number of" or begins with "count"."""
    words = [token.word for token in tokens]
    pairs = list(itertools.pairwise(words))
    return (
        ("how", "many") in pairs or ("number", "of") in pairs or words[:1] == ["count"]
    )


def _has_word(tokens: Sequence[Token], words: frozenset[str]) -> bool:
    return any(token.word in words for token in tokens)


def find_interrogative(
    tokens: Sequence[Token], nouns: Sequence[Noun]
) -> Interrogative | None:
    """The first interrogative of a sentence; one that follows a noun ("people who skate") is a relative pronoun.

    Not so "what", and "which" before a noun: "When eating a cake, which utensils are used?"
    """
    noun_starts = {noun.start for noun in nouns}
    noun_ends = {noun.stop for noun in nouns}
    for place, token in enumerate(tokens):
        if token.word not in INTERROGATIVES:
            continue
        asks = token.word == "what" or (
            token.word == "which" and place + 1 in noun_starts
        )
        if place in noun_ends and not asks:
            continue
        follows_noun = any(noun.stop < place for noun in nouns)
        if follows_noun and tokens[place - 1].word in BEFORE_FREE_RELATIVE:
            continue
        return place, _asked_noun(tokens, nouns, place)
    return None


def _asked_noun(
    tokens: Sequence[Token], nouns: Sequence[Noun], place: int
) -> Noun | None:
    """What the interrogative at this place asks for."""
    if tokens[place].word in PERSONAL:
        return PhraseMatch(place, place + 1, frozenset({"person"}))
    # "what the man is holding"
    is_clause = (
        tokens[place].word in CLAUSE_STARTS
        and place + 1 < len(tokens)
        and tokens[place + 1].word in DETERMINERS
    )
    noun = next((noun for noun in nouns if noun.start > place), None)
    if noun is None or is_clause or noun.start - place > MAX_WORDS_BEFORE_NOUN:
        return None
    words_between = {token.word for token in tokens[place + 1 : noun.start]}
    if words_between & STOPS:
        return None
    # "What is the girl wearing?" does not ask for the girl.
    after_be = bool(words_between & {"is", "are"})
    before_participle = noun.stop < len(tokens) and tokens[noun.stop].word.endswith(
        "ing"
    )
    if after_be and before_participle:
        return None
    return noun

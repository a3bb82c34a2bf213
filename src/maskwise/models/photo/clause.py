"""Where a question says what it asks for.

    "Dogs like to chase things. What object in the picture might a dog fetch?"    asked for: object, not dog

The last sentence with an interrogative or a request counts. After an interrogative the first noun is what is asked for,
unless a verb or a preposition comes before it: "What could I use to cut the bread?" leaves the noun open.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from maskwise.models.photo.words import FoundPhrase, Token, tokenize

SENTENCE_END = re.compile(r"[.?!]+(?:\s+|(?=[A-Z])|$)")
PLACE_OF_ALL = re.compile(
    r",?\s*\b(?:(?:shown|depicted|displayed|present|seen|visible|featured|found) )?(?:in|within|from|of|based on) "
    r"(?:the|this) (?:\w+ )?(?:picture|image|photo|photograph|scene)\b",
    re.IGNORECASE,
)
"""Words that say only that the thing is in the image."""

INTERROGATIVES = {"what", "which", "who", "whom", "where"}
PERSONAL = {"who", "whom"}
REQUESTS = {
    "segment",
    "mark",
    "identify",
    "find",
    "show",
    "point",
    "outline",
    "locate",
    "highlight",
}
STOPS = {
    *(
        "in",
        "on",
        "at",
        "for",
        "to",
        "from",
        "by",
        "with",
        "about",
        "as",
        "that",
        "if",
        "when",
    ),
    *(
        "can",
        "could",
        "would",
        "should",
        "might",
        "may",
        "must",
        "will",
        "do",
        "does",
        "did",
        "has",
        "have",
    ),
    *(
        "i",
        "you",
        "we",
        "they",
        "he",
        "she",
        "it",
        "one",
        "be",
        "being",
        "used",
        "allows",
        "enables",
    ),
}
"""Words that end the noun phrase of an interrogative."""

MAX_BEFORE = 6
"""Words between an interrogative and the noun that it asks for."""

Nouns = Sequence[FoundPhrase[frozenset[str]]]


class Interrogative(NamedTuple):
    """place: of the interrogative among the tokens. noun: what it asks for, None where it leaves that open."""

    place: int
    noun: FoundPhrase[frozenset[str]] | None


def split_sentences(text: str) -> list[list[Token]]:
    """The tokens of every sentence, without remarks such as "in the picture"; one empty list for an empty text."""
    sentences = [
        tokenize(PLACE_OF_ALL.sub("", part)) for part in SENTENCE_END.split(text)
    ]
    return [tokens for tokens in sentences if tokens] or [[]]


def asking_sentence(sentences: Sequence[list[Token]]) -> list[Token]:
    """The last sentence with an interrogative, else the last one with a request, else the first."""
    for words in (INTERROGATIVES, REQUESTS):
        asking = [
            tokens
            for tokens in sentences
            if any(token.word in words for token in tokens)
        ]
        if asking:
            return asking[-1]
    return sentences[0]


def find_interrogative(tokens: Sequence[Token], nouns: Nouns) -> Interrogative | None:
    """The first interrogative of a sentence; one that follows a noun ("people who skate") is a relative pronoun."""
    ends = {noun.stop for noun in nouns}
    for place, token in enumerate(tokens):
        if token.word in INTERROGATIVES and place not in ends:
            return Interrogative(place, _asked_noun(tokens, nouns, place))
    return None


def _asked_noun(
    tokens: Sequence[Token], nouns: Nouns, place: int
) -> FoundPhrase[frozenset[str]] | None:
    if tokens[place].word in PERSONAL:
        return FoundPhrase(place, place + 1, frozenset({"person"}))
    after = next((noun for noun in nouns if noun.start > place), None)
    if after is None or after.start - place > MAX_BEFORE:
        return None
    between = {token.word for token in tokens[place + 1 : after.start]}
    following = [token.word for token in tokens[after.stop : after.stop + 1]]
    # "What is the girl wearing?" does not ask for the girl.
    is_subject = bool(between & {"is", "are"}) and any(
        word.endswith("ing") for word in following
    )
    return None if between & STOPS or is_subject else after

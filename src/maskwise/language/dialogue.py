"""Questions that continue a dialogue: what "it", "its" and "the one" stand for, put into the question.

    resolve_question("And the one behind it?", ["blue mug"])       "the object behind the blue mug?"
    resolve_question("Now its complete shape.", ["blue mug"])      "the complete shape of the blue mug."
    resolve_question("And the red one?", ["blue mug"])             "the red mug?"

Rules of English, for models that read one question at a time. Models that read a conversation get the turns instead.
"""

import re
from collections.abc import Sequence

LEAD_IN = re.compile(
    r"^\s*(?:(?:and|now|okay|ok|then|so|next|also|but|good|thanks|what about|how about)\b[\s,.!]*)+",
    re.IGNORECASE,
)
"""How a question refers to the one before; the words add nothing to what is asked for."""

CONTINUES = re.compile(r"^\s*(?:and|what about|how about)\b", re.IGNORECASE)
"""A question that begins like this asks the same about something else."""

WHOLE = re.compile(
    r"\bthe (whole|entire|complete|full) (?:thing|one|object)\b", re.IGNORECASE
)
OWN = re.compile(
    r"\b(?:its|their) ((?:(?!(?:and|with|that|which|as|if|when|including|without|only|not)\b)[\w-]+ ?){1,4})",
    re.IGNORECASE,
)
"""A possessive and what is owned, up to a comma or a word that begins another phrase."""

PRONOUN = re.compile(
    r"\b(?:it|them|that one|this one|those|that(?=\s*[?.!,]|\s*$))\b(?!')",
    re.IGNORECASE,
)
NAMED_ONE = re.compile(r"\b(the|that|this) ((?:[\w-]+ ){1,2})ones?\b", re.IGNORECASE)
PLAIN_ONE = re.compile(
    r"\b(the|that|this) (?:ones?|things?(?= (?:that|which|behind|in front|on|to)\b))\b",
    re.IGNORECASE,
)
OWN_NOUN = re.compile(
    r"\b(?:the|a|an|every|each|all|some|my|any) (?!(?:one|ones|thing|things|object|objects|part|parts|piece|shape|"
    r"outline|extent|rest|whole|entire|complete|full|hidden|visible|same|other|next|first|last|of|that|which)\b)"
    r"(?![\w-]+ ones?\b)[\w-]+\b(?!(?: [\w-]+)? of (?:it|them)\b)",
    re.IGNORECASE,
)
"""A noun that the question itself names: pronouns after it refer to it, not to an earlier turn."""

COLOR = re.compile(
    r"\b(?:red|orange|yellow|green|blue|purple|pink|brown|black|white|gr[ae]y|golden|silver)\b",
    re.IGNORECASE,
)
"""Basic color terms of English, and two that describe objects as often."""


def resolve_question(question: str, names: Sequence[str]) -> str:
    """The question with its references replaced, fit to be read alone; unchanged if there is nothing to refer to.

    names: what the targets of the turn before are called, without article.
    """
    if not names:
        return question
    named = " and ".join(f"the {name}" for name in names)
    own_noun = OWN_NOUN.search(question)
    end = len(question) if own_noun is None else own_noun.start()
    before = question[:end]
    resolved = _replace(before, names, named)
    if resolved == before:
        return question
    return LEAD_IN.sub("", resolved).strip() + question[end:]


def _replace(text: str, names: Sequence[str], named: str) -> str:
    """The text with all references replaced. named: the names with articles, in a row."""
    resolved = WHOLE.sub(rf"the \1 {' and '.join(names)}", text)
    resolved = NAMED_ONE.sub(
        lambda match: f"{match[1]} {_rename(names[0], match[2].strip())}", resolved
    )
    resolved = PLAIN_ONE.sub(r"\1 object", resolved)
    resolved = OWN.sub(lambda match: f"the {match[1].strip()} of {named}", resolved)
    return PRONOUN.sub(named, resolved)


def _rename(name: str, property: str) -> str:
    """An object like the named one with another property: "plant in the red pot" and blue, "plant in the blue pot"."""
    if COLOR.fullmatch(property) and COLOR.search(name):
        return COLOR.sub(property, name, count=1)
    return f"{property} {name.split(' of the ', maxsplit=1)[0].rsplit(maxsplit=1)[-1]}"


def continues_request(question: str) -> bool:
    """Whether a question asks the same as the one before about something else: "And the red one?"."""
    return CONTINUES.search(question) is not None

"""Requests reduced to what they ask for."""

import re

REQUEST = re.compile(
    r"^(please )?(segment|mark|show|find|outline|where (is|are)|which pixels show)( me)?( all)?( of)?( the| an?)? ",
    re.IGNORECASE,
)
"""How a request begins, up to the noun."""


def to_noun_phrase(question: str) -> str:
    """A question without its request and end mark: "Segment the red cup." becomes "red cup".

    A question of another form stays, without its end mark.
    """
    text = REQUEST.sub("", question.strip())
    return text.strip().rstrip(".?!")

"""Bounds of a request."""

from dataclasses import dataclass

JSON_BYTES = 2**20
"""The largest JSON body of a route that expects no image: a question has kilobytes."""

BODY_SECONDS = 60.0
"""How long a body may take to arrive: 64 MB at about 10 Mbit per second."""

RETRY_SECONDS = 1
"""What `Retry-After` says to a client that came at a busy moment."""


@dataclass(frozen=True)
class RequestLimits:
    """Bounds of a request. waiting: requests with an image accepted at once, of which one is being answered."""

    body_bytes: int = 2**26
    body_seconds: float = BODY_SECONDS
    pixels: int = 50_000_000
    questions: int = 64
    question_characters: int = 2000
    waiting: int = 8

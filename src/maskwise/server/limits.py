"""Bounds of a request."""

from dataclasses import dataclass

JSON_BYTES = 2**20
"""The largest JSON body of a route that expects no image: a question has kilobytes."""

BODY_SECONDS = 60.0
"""How long a body may take to arrive: 64 MB at about 10 Mbit per second."""

BODY_GRACE_SECONDS = 5.0
"""How long a body may arrive more slowly than MIN_BODY_RATE: a connection that was interrupted for a moment goes on."""

MIN_BODY_RATE = 10_000
"""Bytes per second, on average: less than the slowest mobile networks have."""

BODY_MEMORY = 2**28
"""Bytes of large bodies at once: four of the largest, at most two of one client."""

RETRY_SECONDS = 1
"""What `Retry-After` says to a client that came at a busy moment."""


@dataclass(frozen=True)
class RequestLimits:
    """Bounds of a request. waiting: requests with an image in memory at once, of which one is being answered."""

    body_bytes: int = 2**26
    body_seconds: float = BODY_SECONDS
    body_grace_seconds: float = BODY_GRACE_SECONDS
    body_memory: int = BODY_MEMORY
    pixels: int = 50_000_000
    questions: int = 64
    question_characters: int = 2000
    turns: int = 20
    waiting: int = 8

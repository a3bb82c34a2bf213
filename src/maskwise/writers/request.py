"""What is sent to a language model and what comes back."""

import base64
import hashlib
from typing import Any, Literal

import msgspec

CompletionStatus = Literal["ok", "refused", "truncated", "invalid", "failed"]

IMAGE_TYPES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""First bytes of the two formats that every provider accepts, and their media types."""


MAX_TOKENS = 10**9
"""The largest number of tokens that is believed; SQLite would refuse one beyond 64 bits."""


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call: texts, an image (PNG or JPEG bytes) if any, and the JSON schema of the object that must come back.

    prompt_version: part of the key, so that a changed prompt is asked again.
    """

    prompt_version: str
    system: str
    text: str
    schema: dict[str, Any]
    image: bytes | None = None
    max_tokens: int = 2000

    def key(self, model: str) -> str:
        """SHA-256 of the content and the model: equal requests are sent once."""
        return hashlib.sha256(
            msgspec.json.encode([model, self], order="deterministic")
        ).hexdigest()

    @property
    def image_type(self) -> str:
        """The media type of the image."""
        assert self.image is not None
        for signature, media_type in IMAGE_TYPES.items():
            if self.image.startswith(signature):
                return media_type
        raise ValueError("an attached image must be PNG or JPEG")

    @property
    def image_base64(self) -> str:
        """The image as base64 text."""
        assert self.image is not None
        return base64.b64encode(self.image).decode("ascii")


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What came back for a request. output: the JSON object, if the status is "ok"; reason: why there is none."""

    status: CompletionStatus
    output: dict[str, Any] | None = None
    reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


def read_count(value: object) -> int:
    """A number of tokens as a server reports it; 0 for anything else: a negative one would lower the cost."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return max(0, min(value, MAX_TOKENS))


def parse_output(text: str, *, input_tokens: int, output_tokens: int) -> Completion:
    """A completion from the text of a reply, which must be one JSON object."""
    try:
        output = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Completion(
            status="invalid",
            reason=f"the reply is not a JSON object: {error}",
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )
    return Completion(
        status="ok",
        output=output,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )

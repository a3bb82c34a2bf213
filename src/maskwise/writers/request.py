"""What is sent to a language model and what comes back."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args

import msgspec

CompletionStatus = Literal["ok", "refused", "truncated", "invalid", "failed"]

IMAGE_TYPES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""First bytes of the two formats that every provider accepts, and their media types."""

MAX_TOKENS = 10**9
"""The largest number of tokens that is believed; SQLite would refuse one beyond 64 bits."""

MAX_CANDIDATES = 50
"""Braces of a reply at which an object is looked for: each costs one pass over the text."""

MAX_REASON = 300
"""Characters of a reason: it may quote what a server said, and is sent back to repair a reply."""

Effort = Literal["minimal", "low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""How hard a reasoning model thinks, in the words of the providers."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """What a reasoning model may spend before it answers: tokens, which are paid like output, and how hard it tries.

    effort: None for the provider's default.
    """

    tokens: int
    effort: Effort | None = None


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call: texts, an image (PNG or JPEG bytes) if any, and the JSON schema of the object that must come back.

    prompt_version: part of the key, so that a changed prompt is asked again. thinking: of reasoning models; while it
    is not set it is no part of the key, so that ledgers from before it keep their answers.
    """

    prompt_version: str
    system: str
    text: str
    schema: dict[str, Any]
    image: bytes | None = None
    max_tokens: int = 2000
    thinking: Thinking | msgspec.UnsetType = msgspec.UNSET

    @property
    def thinking_tokens(self) -> int:
        """Tokens that the model may spend before it answers."""
        return self.thinking.tokens if self.thinking else 0

    @property
    def effort(self) -> Effort | None:
        """How hard the model tries; None for the provider's default."""
        return self.thinking.effort if self.thinking else None

    @property
    def output_limit(self) -> int:
        """The most tokens that are paid as output."""
        return self.max_tokens + self.thinking_tokens

    @property
    def text_with_schema(self) -> str:
        """The text for a model that cannot be held to a schema."""
        schema = msgspec.json.encode(self.schema, order="deterministic").decode()
        return f"{self.text}\n\nReply with one JSON object that follows this JSON schema, and nothing else:\n{schema}"

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
    """A completion from the text of a reply, which should be one JSON object.

    Thoughts before the object, a fence around it and prose beside it are left out.
    """
    tokens: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    output = _decode_object(text)
    if output is None:
        objects = _find_objects(_remove_thoughts(text))
        # The longest one: prose may quote a small object before the answer.
        output = _decode_object(max(objects, key=len, default=""))
    if output is None:
        start = shorten_reason(text.strip()) or "nothing"
        reason = f"the reply is not a JSON object: {start}"
        return Completion(status="invalid", reason=reason, **tokens)
    return Completion(status="ok", output=output, **tokens)


def check_fields(completion: Completion, schema: dict[str, Any]) -> Completion:
    """The completion; an invalid one if its object lacks a field that the schema requires."""
    if completion.output is None:
        return completion
    missing = [
        name for name in schema.get("required", ()) if name not in completion.output
    ]
    if not missing:
        return completion
    return msgspec.structs.replace(
        completion,
        status="invalid",
        output=None,
        reason=f"the JSON object lacks the fields {', '.join(missing)}",
    )


def shorten_reason(text: str) -> str:
    """A text on one line, cut to MAX_REASON characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]}..."


def _remove_thoughts(text: str) -> str:
    """The text after `</think>`, or before a `<think>` that was never closed."""
    answer = text.rpartition("</think>")[2]
    return answer.partition("<think>")[0]


def _find_objects(text: str) -> Iterator[str]:
    """The JSON objects in a text that are not inside another one."""
    decoder = json.JSONDecoder()
    stop = 0
    braces = [match.start() for match in re.finditer(r"\{", text)]
    for start in braces[:MAX_CANDIDATES]:
        if start < stop:
            continue
        try:
            _, stop = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if _decode_object(text[start:stop]) is not None:
            yield text[start:stop]


def _decode_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None for any other text."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None

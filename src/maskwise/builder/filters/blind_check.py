"""Questions that can be answered without the image: a language model is asked, text only."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from maskwise.builder.draft import Draft, SourceImage
from maskwise.language.category_names import find_category_name
from maskwise.writers.request import Completion, CompletionRequest

PROMPT_VERSION = "blind-check-1"

SYSTEM = (
    "You receive a question about an image that you cannot see. The answer is one or more objects, or parts of "
    "objects, in that image. Name the objects that you expect as the answer, each in one or two words, as many as the "
    "question asks for. Set certain to true only if the question describes these objects so closely that no other "
    "kind of object could be the answer in any image; otherwise set it to false."
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "objects": {"type": "array", "items": {"type": "string"}},
        "certain": {"type": "boolean"},
    },
    "required": ["objects", "certain"],
    "additionalProperties": False,
}
MAX_TOKENS = 200
TYPICAL_TOKENS = 25
"""Output tokens of a request: the limit, and what a reply needs usually."""

AskWriter = Callable[[Sequence[CompletionRequest]], Iterable[Completion]]
"""Sends requests to the writer; one completion per request, in order."""


def blind_request(draft: Draft) -> CompletionRequest:
    """The request that asks for the answer to a question without the image."""
    return CompletionRequest(
        prompt_version=PROMPT_VERSION,
        system=SYSTEM,
        text=f"Question: {draft.question}",
        schema=SCHEMA,
        max_tokens=MAX_TOKENS,
    )


def find_blind_answer(
    draft: Draft, image: SourceImage, completion: Completion
) -> str | None:
    """The objects that the model named without the image, if it was certain and they are all targets; or None."""
    output = completion.output or {}
    objects = output.get("objects")
    if (
        output.get("certain") is not True
        or not isinstance(objects, list)
        or not objects
    ):
        return None
    guesses = " . ".join(str(name) for name in objects)
    names = [image.by_id[id].name for id in draft.region_ids]
    if all(find_category_name(guesses, name) is not None for name in names):
        return f"answered without the image: {', '.join(str(name) for name in objects)}"
    return None

"""A language model for tests: it reads the list of regions in a request and writes plausible samples about them.

Tokens are counted as a tokenizer would, from words and punctuation, and image tokens from the size of the image by the
rules that the providers document, so that an estimate of costs can be checked against it.
"""

import base64
import io
import json
import math
import re
import zlib
from typing import Any

from PIL import Image

from tests.writers.providers import Reply

REGION = re.compile(r"^(\d+): ([^;(]+?)(?: \(part of \d+\))?; (\w+ \w+);", re.MULTILINE)

MOMENTS = (
    "early in the morning",
    "at noon",
    "in the late afternoon",
    "after dark",
    "on a holiday",
    "on a working day",
)
GUESTS = (
    "an old friend",
    "a neighbour",
    "a tourist",
    "a student",
    "a shy visitor",
    "a busy colleague",
    "a cook",
)

QUESTIONS = (
    "If you looked at the {place} of this view for a while, what would you come across sooner or later?",
    "Somebody asks you what attracts attention at the {place} of the scene. What would you tell them about?",
    "What would you have to walk around carefully if you wanted to get to the {place} of this place?",
    "Which thing could a child point at when it is asked about the {place} of the photograph?",
)


def write_reply(given: dict[str, Any]) -> Reply:
    """The reply to a request of either API: samples about the listed regions, or an answer without the image."""
    system, text, image, schema = read_request(given)
    if "that you cannot see" in system:
        output: dict[str, Any] = {
            "objects": ["a tall ladder", "bucket of paint"],
            "certain": False,
        }
    else:
        output = write_samples(text, schema)
    reply = json.dumps(output)
    tokens = (
        count_tokens(system) + count_tokens(text) + count_tokens(json.dumps(schema))
    )
    return {
        "text": reply,
        "input_tokens": tokens + count_image_tokens(image, str(given["model"])) + 20,
        "output_tokens": count_tokens(reply),
    }


def write_samples(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    wanted = re.search(
        r"[Ww]rite (\d+) question-answer pairs|up to (\d+) objects", text
    )
    assert wanted is not None
    count = int(wanted[1]) if wanted[1] else 3 * int(wanted[2])
    fields = schema["properties"]["samples"]["items"]["properties"]
    found = REGION.findall(text)
    samples = []
    for item in range(count):
        turn = zlib.crc32(text.encode()) + item
        place = found[item % len(found)][2]
        several = len(found) > 1 and item % 2 == 0 and "mask_type" not in fields
        chosen = [found[(item + more) % len(found)] for more in range(1 + several)]
        phrases = [
            f"the {name} at the {where} of the image" for _, name, where in chosen
        ]
        lead = f"Imagine {GUESTS[turn % 7]} here {MOMENTS[turn % 6]}."
        sample: dict[str, Any] = {
            "question": f"{lead} {QUESTIONS[item % len(QUESTIONS)].format(place=place)}",
            "answer": f"They would come across {' and '.join(phrases)}.",
            "targets": [
                {"phrase": phrase, "regions": [int(number)]}
                for phrase, (number, _, _) in zip(phrases, chosen)
            ],
        }
        if "mask_type" in fields:
            sample |= {
                "mask_type": "visible",
                "kind": "reasoning" if item % 2 else "referring",
            }
        samples.append(sample)
    caption = {
        "caption": "A view of several things that somebody has arranged, seen from a short distance."
    }
    return (caption if "caption" in schema["properties"] else {}) | {"samples": samples}


def read_request(
    given: dict[str, Any],
) -> tuple[str, str, bytes | None, dict[str, Any]]:
    """System text, text, image and schema of a request of either API."""
    if "system" in given:
        system = given["system"]
        content = given["messages"][0]["content"]
        schema = given["output_config"]["format"]["schema"]
        images = [part["source"]["data"] for part in content if part["type"] == "image"]
    else:
        system, content = (message["content"] for message in given["messages"])
        schema = given["response_format"]["json_schema"]["schema"]
        images = [
            part["image_url"]["url"].partition(",")[2]
            for part in content
            if part["type"] == "image_url"
        ]
    text = "".join(part["text"] for part in content if part["type"] == "text")
    return system, text, base64.b64decode(images[0]) if images else None, schema


def count_tokens(text: str) -> int:
    """Words, long ones in pieces, and punctuation."""
    return sum(math.ceil(len(piece) / 7) for piece in re.findall(r"\w+|[^\w\s]+", text))


def count_image_tokens(image: bytes | None, model: str) -> int:
    if image is None:
        return 0
    with Image.open(io.BytesIO(image)) as opened:
        width, height = opened.size
    if model.startswith("claude"):
        return round(width * height / 750)
    scale = min(1.0, 768 / min(width, height))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)

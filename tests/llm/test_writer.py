"""The builder's writer `openai` with a real model behind an endpoint."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from maskwise.builder.draft import SourceImage
from maskwise.builder.facts import ImageFacts
from maskwise.builder.prompt import make_request
from maskwise.builder.recipe import output_to_drafts
from maskwise.builder.recipes import find_recipe
from maskwise.datasets import load_dataset
from maskwise.writers import CompletionRequest, Ledger, complete
from maskwise.writers.client import WriterError
from maskwise.writers.cost import ModelPrice
from maskwise.writers.openai_client import OpenAIClient

pytestmark = pytest.mark.llm

FREE = ModelPrice(input=0.0, output=0.0)
MAX_TOKENS = 250
"""About ten seconds on one busy core."""


@pytest.fixture
def client(address: str) -> Iterator[OpenAIClient]:
    opened = OpenAIClient(model="smollm2", base_url=address, max_retries=0)
    yield opened
    opened.close()


def test_structured_output_is_that_of_the_schema(
    client: OpenAIClient, tmp_path: Path
) -> None:
    schema = {
        "type": "object",
        "properties": {"object": {"type": "string", "enum": ["clock", "chair"]}},
        "required": ["object"],
        "additionalProperties": False,
    }
    requests = [
        CompletionRequest(
            prompt_version="1",
            system="Name the object that answers the question.",
            text=question,
            schema=schema,
            max_tokens=MAX_TOKENS,
        )
        for question in ("What tells the time?", "What do I sit on?")
    ]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        completions = list(complete(requests, client, ledger, price=FREE))
        again = list(complete(requests, client, ledger, price=FREE))
    assert completions == again
    for item in completions:
        assert item.status == "ok"
        assert item.output is not None
        assert item.output["object"] in ("clock", "chair")
        assert item.input_tokens > 10


def test_the_prompt_of_a_recipe_is_answered(client: OpenAIClient) -> None:
    recipe = find_recipe("r2sm")
    facts = ImageFacts(SourceImage.of(load_dataset("world"), 0))
    request = make_request(facts, recipe)
    assert request is not None
    text = msgspec.structs.replace(request, image=None, max_tokens=MAX_TOKENS)
    completion = client.complete(text)
    assert completion.input_tokens > 200
    if completion.output is None:
        assert completion.status in ("truncated", "invalid")
        assert completion.reason
        return
    drafts, problems = output_to_drafts(completion.output, facts, recipe)
    assert drafts or problems


def test_an_image_that_a_model_cannot_see_is_an_error_that_says_so(
    client: OpenAIClient,
) -> None:
    request = make_request(
        ImageFacts(SourceImage.of(load_dataset("world"), 0)), find_recipe("r2sm")
    )
    assert request is not None
    with pytest.raises(WriterError, match="image"):
        client.complete(request)

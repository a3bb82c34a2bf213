"""The OpenAPI documents say what the routes take and return."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.review.database import ReviewDatabase
from maskwise.review.review import Review
from tests.review.datasets import write_samples
from tests.server.fake import Whole
from tests.server.review_client import serving_review
from tests.server.test_server import call, serving

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def model_document() -> Iterator[dict[str, Any]]:
    with serving(Whole()) as address:
        yield call(address, "GET", "/openapi.json")[1]


@pytest.fixture(scope="module")
def review_document(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("review")
    review = Review(
        write_samples(folder / "data", 4), ReviewDatabase(folder / "review.sqlite")
    )
    review.create()
    with serving_review(review) as address:
        yield call(address, "GET", "/openapi.json")[1]


def routes(document: dict[str, Any]) -> dict[str, Any]:
    """The operations by method and path."""
    found = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found[f"{method.upper()} {path}"] = operation
    return found


def record_of(content: dict[str, Any]) -> str:
    """The name of the record that a body or response is."""
    (media,) = content["content"].values()
    return str(media["schema"]["$ref"].rpartition("/")[2])


def test_every_route_of_the_model_server_is_listed(
    model_document: dict[str, Any],
) -> None:
    assert set(routes(model_document)) == {
        "POST /v1/predict",
        "GET /healthz",
        "GET /v1/session",
        "GET /metrics",
        "GET /v1/models",
        "POST /v1/models/{name}",
        "GET /v1/examples",
        "POST /v1/images",
        "GET /v1/images/{id}",
        "POST /v1/ask",
        "GET /v1/datasets",
        "GET /v1/datasets/{key}/samples",
        "GET /v1/datasets/{key}/samples/{row}",
        "GET /v1/datasets/{key}/images/{row}",
    }


def test_every_route_of_the_review_is_listed_and_documented(
    review_document: dict[str, Any],
) -> None:
    text = (DOCS / "reference" / "review_api.md").read_text(encoding="utf-8")
    for name in routes(review_document):
        method, path = name.split()
        short = path.removeprefix("/review/api")
        assert f"`{method} {short}" in text, name
    assert len(routes(review_document)) == 20


@pytest.mark.parametrize(
    ("route", "body", "response"),
    [
        ("POST /session", "TokenRequest", "Session"),
        ("POST /queue", "QueueRequest", "QueueResult"),
        ("POST /decisions", "NewDecision", "DecisionResult"),
        ("POST /undo", "UndoRequest", "UndoResult"),
        ("POST /repair", "RepairRequest", "RepairedMasks"),
        ("GET /items/{item}", None, "ItemView"),
        ("GET /stats", None, "ReviewStats"),
    ],
)
def test_bodies_and_responses_are_the_records_of_the_review(
    review_document: dict[str, Any], route: str, body: str | None, response: str
) -> None:
    operation = routes(review_document)[route.replace(" /", " /review/api/")]
    assert record_of(operation["responses"]["200"]) == response
    if body is not None:
        assert record_of(operation["requestBody"]) == body
    else:
        assert "requestBody" not in operation


def test_limits_of_fields_and_parameters_are_in_the_document(
    review_document: dict[str, Any],
) -> None:
    schemas = review_document["components"]["schemas"]
    count = schemas["QueueRequest"]["properties"]["count"]
    assert (count["minimum"], count["maximum"]) == (1, 16)
    assert schemas["Mask"]["required"] == ["counts", "size"]
    decision = schemas["NewDecision"]
    assert set(decision["required"]) == {"id", "item", "verdict"}
    assert decision["properties"]["verdict"]["enum"] == [
        "accept",
        "fix",
        "reject",
        "skip",
        "left",
        "right",
        "tie",
        "bad",
        "rated",
    ]
    parameters = routes(review_document)["GET /review/api/history"]["parameters"]
    limit = next(given for given in parameters if given["name"] == "limit")
    assert (limit["schema"]["minimum"], limit["schema"]["maximum"]) == (1, 500)
    assert {given["name"] for given in parameters} == {"limit", "before"}


@pytest.mark.parametrize("name", ["model_document", "review_document"])
def test_errors_have_one_form_and_references_exist(
    name: str, request: pytest.FixtureRequest
) -> None:
    document: dict[str, Any] = request.getfixturevalue(name)
    schemas = document["components"]["schemas"]
    assert schemas["ErrorMessage"]["required"] == ["error"]
    for route, operation in routes(document).items():
        assert operation["description"], route
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert record_of(response) == "ErrorMessage", (route, status)
    words = json.dumps(document).split('"')
    references = [word for word in words if word.startswith("#/components/schemas/")]
    assert {word.rpartition("/")[2] for word in references} <= set(schemas)

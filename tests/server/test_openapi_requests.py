"""Requests that schemathesis makes from the OpenAPI document: none may make a server fail."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from maskwise.review.database import ReviewDatabase
from maskwise.review.project import ProjectOptions
from maskwise.review.review import Review
from maskwise.server.browse import open_browsed
from maskwise.server.limits import RequestLimits
from tests.review.datasets import write_samples
from tests.server.fake import Whole
from tests.server.review_client import serving_review
from tests.server.test_ask import png, upload
from tests.server.test_server import call, serving

schemathesis = pytest.importorskip(
    "schemathesis", reason="needs schemathesis, which the extra webtest brings"
)

EXAMPLES = 25
BUSY = (501, 503)
"""Answers that mean: not installed here, or too much at once."""


def find_failures(
    address: str, token: str, known: dict[str, str] | None = None
) -> list[str]:
    """The requests that were answered with a server error. known: values of fields that have to exist here."""
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    failures: list[str] = []
    headers = {"Authorization": f"Bearer {token}"}
    for operation in schema.get_all_operations():

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Any) -> None:
            _use_known(case, known or {})
            response = case.call(headers=headers, timeout=60)
            if response.status_code >= 500 and response.status_code not in BUSY:
                failures.append(
                    f"{case.method} {case.formatted_path}: {response.status_code} {response.text}"
                )

        given(case=operation.ok().as_strategy())(send)()
    return failures


def _use_known(case: Any, known: dict[str, str]) -> None:
    """Let a request name what exists, so that it gets further than 404."""
    for fields in (case.path_parameters, case.body):
        if isinstance(fields, dict):
            fields.update(
                {name: value for name, value in known.items() if name in fields}
            )


def test_no_request_to_the_model_server_is_answered_with_a_server_error() -> None:
    browsed = open_browsed([Path("world")], [])
    with serving(
        Whole(), limits=RequestLimits(body_seconds=5), browsed=browsed
    ) as address:
        token = call(address, "GET", "/v1/session")[1]["token"]
        image = upload(address, png())
        assert (
            find_failures(address, token, {"key": "world-test", "image": image}) == []
        )
        assert find_failures(address, token) == []
        assert call(address, "GET", "/healthz")[0] == 200


def test_no_request_to_the_review_server_is_answered_with_a_server_error(
    tmp_path: Path,
) -> None:
    review = Review(
        write_samples(tmp_path / "data", 12), ReviewDatabase(tmp_path / "review.sqlite")
    )
    review.create(ProjectOptions())
    token = review.add_reviewer("olga", "owner")
    with serving_review(review) as address:
        assert find_failures(address, token) == []

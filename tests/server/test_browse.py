"""Datasets and runs in the browser's routes."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from maskwise.harness.evaluate import evaluate
from maskwise.server.browse import BrowsedDataset, open_browsed
from maskwise.store import Dataset
from maskwise.world import bundled
from tests.server.fake import Whole
from tests.server.test_pages import get
from tests.server.test_server import call, serving


@pytest.fixture(scope="module")
def browsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BrowsedDataset]:
    folder = tmp_path_factory.mktemp("runs") / "noisy"
    evaluate("oracle", "world", folder, options={"noise": 4}, limit=12)
    return open_browsed([Path("world")], [folder])


@pytest.fixture(scope="module")
def address(browsed: dict[str, BrowsedDataset]) -> Iterator[str]:
    with serving(Whole(), browsed=browsed) as where:
        yield where


def samples(address: str, **query: Any) -> dict[str, Any]:
    text = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
    status, page = call(address, "GET", f"/v1/datasets/world-test/samples?{text}")
    assert status == 200, page
    found: dict[str, Any] = page
    return found


def test_a_run_is_shown_with_its_dataset(address: str) -> None:
    status, found = call(address, "GET", "/v1/datasets")
    assert (status, len(found)) == (200, 1)
    assert found[0]["samples"] == len(Dataset.open(bundled()))
    assert found[0]["runs"][0]["title"] == "oracle (noisy)"
    assert "strict" in found[0]["runs"][0]["protocols"]
    assert found[0]["slices"]["mask_type"] == ["visible", "amodal", "both"]


def test_pages_follow_each_other(address: str) -> None:
    data = Dataset.open(bundled())
    first = samples(address, limit=10)
    second = samples(address, limit=10, offset=10)
    assert first["total"] == len(data)
    assert [
        one["id"] for one in first["samples"] + second["samples"]
    ] == data.samples.id[:20]
    assert samples(address, offset=10**6)["samples"] == []


def test_text_finds_questions_answers_and_ids(address: str) -> None:
    data = Dataset.open(bundled())
    word = data[0].question.split()[-1].strip(".?!").upper()
    assert data[0].id in [
        one["id"] for one in samples(address, text=word, limit=200)["samples"]
    ]
    assert [one["id"] for one in samples(address, text=data[3].id)["samples"]] == [
        data[3].id
    ]
    assert samples(address, text="no-such-word")["total"] == 0


def test_slices_and_scores_filter_and_sort(address: str) -> None:
    amodal = samples(address, slice="mask_type=amodal", limit=200)
    assert {one["mask_type"] for one in amodal["samples"]} == {"amodal"}
    lowest = samples(address, run="noisy", sort="score", limit=200)["samples"]
    values = [
        one["scores"]["noisy"] for one in lowest if one["scores"]["noisy"] is not None
    ]
    assert values == sorted(values)
    assert all(one["scores"]["noisy"] is None for one in lowest[len(values) :])
    highest = samples(address, run="noisy", sort="-score", limit=1)["samples"]
    assert highest[0]["scores"]["noisy"] == max(values)
    scored = samples(address, run="noisy", status="scored", limit=1)
    assert 0 < scored["total"] < samples(address)["total"]


def test_a_sample_has_its_masks_and_the_predictions_of_every_run(address: str) -> None:
    data = Dataset.open(bundled())
    row = samples(address, run="noisy", status="scored", slice="targets=1")["samples"][
        0
    ]["row"]
    _, found = call(address, "GET", f"/v1/datasets/world-test/samples/{row}")
    assert found["sample"]["question"] == data[row].question
    assert (
        found["sample"]["targets"][0]["visible"]["counts"]
        == data[row].targets[0].visible.counts
    )  # type: ignore[union-attr]
    (prediction,) = found["predictions"]
    assert prediction["run"] == "noisy"
    assert prediction["colors"][0] == 0
    assert prediction["prediction"]["regions"][0]["visible"]["size"] == [224, 224]


def test_images_are_sent_whole_and_small(address: str) -> None:
    data = Dataset.open(bundled())
    response, body = get(address, "/v1/datasets/world-test/images/2")
    assert response.headers["Content-Type"] == "image/png"
    assert np.array_equal(
        np.asarray(Image.open(io.BytesIO(body))), np.asarray(data.open_image(2))
    )
    assert (
        get(address, "/v1/datasets/world-test/images/2?thumbnail=true")[0].headers[
            "Content-Type"
        ]
        == "image/jpeg"
    )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nothing/samples", 404),
        ("world-test/samples?run=nothing", 404),
        ("world-test/samples?run=noisy&protocol=nothing", 422),
        ("world-test/samples?slice=nothing=1", 404),
        ("world-test/samples?slice=nothing", 422),
        ("world-test/samples?sort=nothing", 422),
        ("world-test/samples?limit=0", 422),
        ("world-test/samples?limit=100000", 422),
        ("world-test/samples/100000", 404),
        ("world-test/samples/-1", 422),
        ("world-test/images/x", 422),
        ("world-test/images/100000", 404),
        ("..%2f..%2fetc/images/0", 404),
    ],
)
def test_what_does_not_exist_is_reported(address: str, path: str, status: int) -> None:
    got, said = call(address, "GET", f"/v1/datasets/{path}")
    assert (got, list(said)) == (status, ["error"])

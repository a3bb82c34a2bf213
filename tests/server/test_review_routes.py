"""The review over HTTP: sign in, lease, decide, undo, drafts, images, masks, statistics, and what is refused."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from PIL import Image

from maskwise.masks import Mask
from maskwise.review.database import ReviewDatabase
from maskwise.review.project import ProjectOptions
from maskwise.review.refine import Click
from maskwise.review.review import Review
from tests.review.datasets import box, write_samples
from tests.server.review_client import Client, serving_review


class PointMask:
    """A refiner that returns the box right and below of the first click."""

    def refine(
        self, image: Image.Image, mask: Mask | None, points: Sequence[Click]
    ) -> Mask:
        return box(int(points[0].x), int(points[0].y), 3, 3)


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Review:
    folder = tmp_path_factory.mktemp("review")
    review = Review(
        write_samples(folder / "data", 200), ReviewDatabase(folder / "review.sqlite")
    )
    review.create(ProjectOptions(double_share=0.1))
    return review


@pytest.fixture(scope="module")
def address(review: Review) -> Iterator[str]:
    with serving_review(review, PointMask()) as address:
        yield address


@pytest.fixture
def client(address: str, review: Review) -> Client:
    return Client(address, review.add_reviewer(f"r{uuid4().hex[:8]}"))


def accept(item: int, **fields: Any) -> dict[str, Any]:
    return {"id": str(uuid4()), "item": item, "verdict": "accept"} | fields


def test_a_personal_link_becomes_a_cookie_that_scripts_cannot_read(
    address: str, review: Review
) -> None:
    token = review.add_reviewer("cookie")
    client = Client(address)
    status, headers, _ = client.send("POST", "/session", {"token": token})
    assert status == 200
    assert {"HttpOnly", "SameSite=strict"} <= {
        part.strip() for part in headers["set-cookie"].split(";")
    }
    session = client.sign_in(token)
    assert (session["reviewer"], session["role"], session["refine"]) == (
        "cookie",
        "reviewer",
        True,
    )
    assert client.ask("GET", "/session") == session
    assert client.ask("POST", "/queue", {"count": 1})["items"]


def test_changes_need_the_header_of_the_session(address: str, review: Review) -> None:
    client = Client(address)
    client.sign_in(review.add_reviewer("header"))
    for wrong in ("", "0" * 32):
        client.headers["X-CSRF-Token"] = wrong
        assert client.call("POST", "/queue", {"count": 1})[0] == 403
    assert client.call("GET", "/history")[0] == 200


def test_requests_without_a_valid_token_are_refused(address: str) -> None:
    routes = [
        ("GET", "/session"),
        ("GET", "/items/0"),
        ("GET", "/images/0"),
        ("GET", "/stats"),
        ("GET", "/history"),
    ]
    names = ("queue", "decisions", "undo", "leases", "repair", "refine", "reviewers")
    routes += [("POST", f"/{name}") for name in names]
    routes += [
        ("PUT", "/items/0/draft"),
        ("DELETE", "/items/0/draft"),
        ("DELETE", "/session"),
        ("GET", "/events"),
    ]
    for token in (None, "wrong", "x" * 5000):
        client = Client(address, token)
        answers = {
            route: client.call(*route, {} if route[0] != "GET" else None)[0]
            for route in routes
        }
        assert set(answers.values()) <= {401, 422, 204}, answers
        assert all(
            answers[route] != 204 or route == ("DELETE", "/session") for route in routes
        )


def test_another_host_and_another_content_type_are_refused(client: Client) -> None:
    assert client.call("POST", "/queue", {"count": 1}, Host="evil.example")[0] == 421
    client.headers["Content-Type"] = "text/plain"
    assert client.call("POST", "/queue", {"count": 1})[0] == 415


def test_decide_undo_and_history(client: Client) -> None:
    item = client.ask("POST", "/queue", {"count": 2})["items"][0]
    edit = {"targets": [{"id": "cup", "visible": box(2, 2, 3, 3)}]}
    fix = accept(item["item"], verdict="fix", edit=edit, next=2, seconds=3.5)
    done = client.ask("POST", "/decisions", fix)
    assert done["decision"]["verdict"] == "fix"
    assert item["item"] not in [one["item"] for one in done["items"]]
    assert len(done["items"]) == 2
    assert client.ask("POST", "/decisions", fix)["replayed"]
    undone = client.ask("POST", "/undo", {"id": str(uuid4())})
    assert (
        undone["item"]["draft"]["edit"]["targets"][0]["visible"]["counts"]
        == box(2, 2, 3, 3).counts
    )
    history = client.ask("GET", "/history?limit=1")
    assert [(one["item"], one["undone"]) for one in history["decisions"]] == [
        (item["item"], True)
    ]
    assert not history["more"]


def test_drafts_come_back_with_the_item(client: Client) -> None:
    number = client.ask("POST", "/queue", {"count": 1})["items"][0]["item"]
    assert client.ask(
        "PUT", f"/items/{number}/draft", {"verdict": "reject", "note": "wait"}
    )["saved"]
    assert client.ask("POST", "/queue", {"count": 1})["items"][0]["draft"] == {
        "verdict": "reject",
        "note": "wait",
    }
    client.ask("DELETE", f"/items/{number}/draft")
    assert client.ask("GET", f"/items/{number}")["draft"] is None


def test_leases_are_renewed_and_released(client: Client) -> None:
    first, second = (
        one["item"] for one in client.ask("POST", "/queue", {"count": 2})["items"]
    )
    found = client.ask("POST", "/leases", {"renew": [first, 199], "release": [second]})
    assert list(found["held"]) == [str(first)]
    assert found["lost"] == [199]


def test_images_and_masks(client: Client) -> None:
    item = client.ask("POST", "/queue", {"count": 1})["items"][0]
    status, headers, data = client.send(
        "GET", item["image"]["url"].removeprefix("/review/api")
    )
    assert (status, headers["content-type"], data[:4]) == (200, "image/png", b"\x89PNG")
    assert headers["x-content-type-options"] == "nosniff"
    assert client.call("GET", "/images/5000")[0] == 404
    repaired = client.ask(
        "POST", "/repair", {"visible": box(0, 0, 4, 4), "amodal": box(0, 0, 2, 4)}
    )
    assert (repaired["changed"], repaired["amodal"]["counts"]) == (
        8,
        box(0, 0, 4, 4).counts,
    )
    body = {"visible": box(0, 0, 4, 4), "amodal": box(0, 0, 2, 4), "keep": "amodal"}
    assert (
        client.ask("POST", "/repair", body)["visible"]["counts"]
        == box(0, 0, 2, 4).counts
    )
    refined = client.ask(
        "POST", "/refine", {"item": item["item"], "points": [{"x": 5.0, "y": 4.0}]}
    )
    assert refined["mask"]["counts"] == box(5, 4, 3, 3).counts


def test_refine_says_what_to_install(review: Review) -> None:
    token = review.add_reviewer("norefiner")
    other = Review(
        review.dataset, ReviewDatabase(Path(str(review.database.url.database)))
    )
    with serving_review(other) as address:
        client = Client(address, token)
        assert not client.ask("GET", "/session")["refine"]
        status, found = client.call(
            "POST", "/refine", {"item": 0, "points": [{"x": 1, "y": 1}]}
        )
    assert status == 501
    assert "mobile_sam_encoder.onnx" in found["error"]


def test_reviewers_see_neither_statistics_nor_other_items(client: Client) -> None:
    assert client.call("GET", "/stats")[0] == 403
    assert client.call("GET", "/events")[0] == 403
    assert client.call("POST", "/reviewers", {"name": "friend"})[0] == 403
    assert client.call("GET", "/items/150")[0] == 403
    assert client.call("GET", "/items/5000")[0] == 404


def test_the_owner_adds_reviewers_and_reads_the_log(
    address: str, review: Review
) -> None:
    owner = Client(address, review.add_reviewer("owner", "owner"))
    added = owner.ask("POST", "/reviewers", {"name": "friend"})
    assert (
        Client(address, added["token"]).ask("GET", "/session")["reviewer"] == "friend"
    )
    assert owner.call("POST", "/reviewers", {"name": "<b>"})[0] == 422
    stats = owner.ask("GET", "/stats")
    assert stats["progress"]["items"] == 200
    first = owner.ask("GET", "/events?limit=1")
    assert (first["events"][0]["kind"], first["more"]) == ("project_created", True)


def fix_cup(mask: dict[str, Any]) -> dict[str, Any]:
    return accept(0, verdict="fix", edit={"targets": [{"id": "cup", "visible": mask}]})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 5000, 422),
        (b"[]", 422),
        ({"id": "x", "item": 0, "verdict": "accept"}, 422),
        (accept(0, verdict="maybe"), 422),
        (accept(0, more=1), 422),
        (accept(0, seconds=-1), 422),
        (
            b'{"id": "00000000-0000-0000-0000-000000000000", "item": 1e300, "verdict": "accept"}',
            422,
        ),
        (accept(5000), 404),
        (accept(-1), 404),
        (fix_cup({"size": [12, 16], "counts": "?"}), 422),
        (fix_cup({"size": [-1, 2], "counts": ""}), 422),
        (accept(0, note="a\u0000b"), 422),
        (b" " * (2**23 + 1), 413),
    ],
)
def test_malformed_decisions_get_a_clear_answer(
    client: Client, body: Any, status: int
) -> None:
    found, answer = client.call("POST", "/decisions", body)
    assert found == status, answer
    assert answer["error"]

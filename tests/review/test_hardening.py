"""Reviews under attack: two servers, repeated and reordered requests, wrong clocks, and what reviewers may not see."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from maskwise.review import queue as queue_module
from maskwise.review import tables
from maskwise.review.database import ReviewDatabase
from maskwise.review.judged_runs import open_judged_runs
from maskwise.review.project import ProjectOptions
from maskwise.review.review import Review
from maskwise.store import Dataset
from tests.review.test_review import state
from tests.server.review_client import Client, serving_review


@contextmanager
def opened(url: str, dataset: Dataset, **options: Any) -> Iterator[Review]:
    with closing(ReviewDatabase(url)) as database:
        review = Review(dataset, database)
        review.create(ProjectOptions(**options))
        yield review


def body(item: int, verdict: str = "accept") -> dict[str, Any]:
    return {"id": str(uuid4()), "item": item, "verdict": verdict, "next": 2}


def check_counts(review: Review, decided: int) -> None:
    """Every item has the decisions that it needs, one per reviewer, and the log gives the same state again."""
    with review.database.read() as connection:
        rows = connection.execute(select(tables.decisions)).all()
        items = connection.execute(select(tables.items)).all()
    counting = [row for row in rows if not row.undone]
    assert len(counting) == decided
    assert Counter(row.item for row in counting) == {
        item.item: item.needed for item in items
    }
    assert len({(row.item, row.reviewer) for row in counting}) == len(counting)
    before = state(review)
    review.rebuild()
    assert state(review) == before


def test_two_servers_on_one_database_hand_out_nothing_twice(
    database_url: str, cups: Dataset
) -> None:
    """Six reviewers, each asking both servers in turn, as behind a load balancer."""
    with opened(database_url, cups, double_share=0.5) as review:
        names = [f"r{number}" for number in range(6)]
        tokens = [review.add_reviewer(name) for name in names]
        errors: list[object] = []
        decided = Counter[str]()

        def work(name: str, clients: list[Client]) -> None:
            chance = Random(name)
            while True:
                status, said = chance.choice(clients).call(
                    "POST", "/queue", {"count": 2}
                )
                if status != 200:
                    errors.append((status, said))
                    return
                if not said["items"]:
                    if not said["progress"]["open"]:
                        return
                    time.sleep(0.02)
                    continue
                decision = body(said["items"][0]["item"])
                # The reply to the first request is lost, so that it is sent again, to either server.
                replies = [
                    chance.choice(clients).call("POST", "/decisions", decision)
                    for _ in range(2)
                ]
                for status, said in replies:
                    if status != 200:
                        errors.append((status, said))
                decided[name] += 1

        other = Review(cups, ReviewDatabase(database_url))
        with serving_review(review) as one, serving_review(other) as two:
            threads = [
                threading.Thread(
                    target=work, args=(name, [Client(one, token), Client(two, token)])
                )
                for name, token in zip(names, tokens, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(300)
        assert not errors
        check_counts(review, decided.total())


def test_an_outbox_may_arrive_repeated_and_in_any_order(
    database_url: str, cups: Dataset
) -> None:
    """Decisions that a page kept while it was offline, three times each, from several tabs at once."""
    with opened(database_url, cups) as review:
        token = review.add_reviewer("ada")
        reviewer = review.find_reviewer(token)
        assert reviewer is not None
        held = [item.item for item in review.queue(reviewer, 12)]
        outbox = [body(item) | {"next": 0} for item in held] * 3
        Random(1).shuffle(outbox)
        replies: list[tuple[int, Any]] = []
        with serving_review(review) as address:

            def send(decisions: list[dict[str, Any]]) -> None:
                client = Client(address, token)
                for decision in decisions:
                    replies.append(client.call("POST", "/decisions", decision))

            threads = [
                threading.Thread(target=send, args=(outbox[start::4],))
                for start in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(300)
            assert [status for status, _ in replies] == [200] * 36
            assert sum(said["replayed"] for _, said in replies) == 24
            # The decisions once more, under another name and with another content.
            bob = Client(address, review.add_reviewer("bob"))
            assert bob.call("POST", "/decisions", outbox[0])[0] == 409
            changed = outbox[0] | {"verdict": "reject", "reason": "bad-mask"}
            assert Client(address, token).call("POST", "/decisions", changed)[0] == 409
            # An undo that arrives before its decision was known, and a decision that arrives after its undo.
            undo = {"id": str(uuid4()), "decision": str(uuid4())}
            assert Client(address, token).call("POST", "/undo", undo)[0] == 409
            undo = {"id": str(uuid4()), "decision": outbox[0]["id"]}
            for replayed in (False, True):
                status, said = Client(address, token).call("POST", "/undo", undo)
                assert (status, said["replayed"]) == (200, replayed)
            status, said = Client(address, token).call("POST", "/decisions", outbox[0])
            assert (status, said["replayed"]) == (200, True)
            assert said["decision"]["undone"], (
                "a repeated request does not decide again"
            )
            again = body(outbox[0]["item"]) | {"next": 0}
            assert Client(address, token).call("POST", "/decisions", again)[0] == 200
        check_counts(review, 12)


@pytest.mark.parametrize("skew", [3600.0, -3600.0])
def test_a_server_with_a_wrong_clock_doubles_nothing(
    database_url: str, cups: Dataset, skew: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is ahead takes leases away early: the late decision is refused, not stored beside the other."""
    with opened(database_url, cups) as review:
        ada, bob = (
            review.find_reviewer(review.add_reviewer(name)) for name in ("ada", "bob")
        )
        assert ada is not None
        assert bob is not None
        held = {item.item for item in review.queue(ada, 6)}
        clock = type("Clock", (), {"time": staticmethod(lambda: time.time() + skew)})
        monkeypatch.setattr(queue_module, "time", clock)
        taken = {item.item for item in review.queue(bob, 12)}
        assert bool(taken & held) == (skew > 0)
        with serving_review(review) as address:
            clients = {
                name: Client(address, review.add_reviewer(name))
                for name in ("ada", "bob")
            }
            statuses = Counter[int]()
            for name, items in (("bob", taken), ("ada", held)):
                for item in sorted(items):
                    status, _ = clients[name].call("POST", "/decisions", body(item))
                    statuses[status] += 1
        assert set(statuses) <= {200, 409}
        assert statuses[200] == 12
        check_counts(review, 12)


def test_reviewers_reach_nothing_of_each_other(
    database_url: str, cups: Dataset
) -> None:
    with opened(database_url, cups) as review, serving_review(review) as address:
        tokens = {
            name: review.add_reviewer(name, role)  # type: ignore[arg-type]
            for name, role in (("ada", "reviewer"), ("bob", "reviewer"))
        }
        ada, bob = (Client(address, tokens[name]) for name in ("ada", "bob"))
        (item,) = ada.ask("POST", "/queue", {"count": 1})["items"]
        number = item["item"]
        ada.ask("PUT", f"/items/{number}/draft", {"note": "mine"})
        addition = {
            "id": str(uuid4()),
            "item": number,
            "question": "Is there a table?",
            "mask_type": "visible",
            "targets": [{"id": "table"}],
        }
        added = ada.ask("POST", "/additions", addition)
        refused = [
            bob.call("GET", f"/items/{number}"),
            bob.call("PUT", f"/items/{number}/draft", {"note": "not mine"}),
            bob.call("POST", "/decisions", body(number)),
            bob.call("DELETE", f"/additions/{added['item']}"),
            bob.call("POST", "/additions", addition),
            bob.call("POST", "/undo", {"id": str(uuid4())}),
            bob.call("GET", "/stats"),
            bob.call("GET", "/results"),
            bob.call("GET", "/events"),
            bob.call("POST", "/reviewers", {"name": "eve", "role": "owner"}),
        ]
        assert {status for status, _ in refused} <= {403, 404, 409}, refused
        bob.call("DELETE", f"/items/{number}/draft")
        bob.call("POST", "/leases", {"release": [number]})
        assert "lost" in bob.ask("POST", "/leases", {"renew": [number]})
        assert ada.ask("GET", f"/items/{number}")["draft"]["note"] == "mine"
        ada.ask("POST", "/decisions", body(number))
        (decision,) = ada.ask("GET", "/history")["decisions"]
        undo = {"id": str(uuid4()), "decision": decision["id"]}
        assert bob.call("POST", "/undo", undo)[0] == 409
        assert bob.ask("GET", "/history")["decisions"] == []


def test_tokens_are_in_no_log_and_no_response(
    tmp_path: Path, cup_runs: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    """Also of a review that compares predictions; its pages send no address on to other sites."""
    runs = open_judged_runs(cup_runs[:2], "compare")
    database = ReviewDatabase(tmp_path / "judged.sqlite")
    review = Review(runs.dataset, database, runs=runs)
    review.create()
    tokens = {name: review.add_reviewer(name) for name in ("ada", "bob")}
    caplog.set_level(logging.DEBUG)
    with serving_review(review) as address:
        seen = b""
        client = Client(address, tokens["ada"])
        (item,) = client.ask("POST", "/queue", {"count": 1})["items"]
        for method, path, content in (
            ("GET", "/session", None),
            ("GET", f"/items/{item['item']}", None),
            ("GET", "/history", None),
            ("POST", "/decisions", {"id": 5}),
            ("POST", "/decisions", body(item["item"], "left")),
            ("GET", f"/nowhere?token={tokens['bob']}", None),
            ("POST", "/session", {"token": tokens["bob"], "more": 1}),
        ):
            _, headers, said = client.send(method, path, content)
            assert headers["referrer-policy"] == "no-referrer"
            seen += said
        for token in tokens.values():
            assert token.encode() not in seen
            assert token not in caplog.text
    stored = (tmp_path / "judged.sqlite").read_bytes()
    for token in tokens.values():
        assert token.encode() not in stored, "only a hash of it is stored"
    for run in runs.runs:
        assert run.model_name.encode() not in seen

"""Simulated reviewers who work on a real server, and a server that is killed and started again."""

import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from maskwise.server.review_routes import PREFIX

COMMAND = [
    sys.executable,
    "-c",
    "from maskwise.cli.main import main; main()",
    "review",
    "start",
]


class ReviewServer:
    """`maskwise review` in a process of its own, on a fixed port. reviewed: a dataset, or --runs and run folders."""

    def __init__(
        self, reviewed: Sequence[object], database: str, reviewers: list[str]
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        options = [
            "--db",
            database,
            "--port",
            str(self.port),
            "--json",
            "--double-share",
            "0.2",
        ]
        self.command = [
            *COMMAND,
            *map(str, reviewed),
            *options,
            "--reviewers",
            ",".join(reviewers),
        ]
        self.links: dict[str, str] = {}

    def start(self) -> None:
        """Start, and wait until it listens."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.links |= json.loads(self.process.stdout.readline())["links"]

    def kill(self) -> None:
        """End the process as a crash would (SIGKILL)."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    @contextlib.contextmanager
    def running(self) -> Iterator["ReviewServer"]:
        self.start()
        try:
            yield self
        finally:
            self.kill()


class Simulation:
    """Reviewers in threads. `acknowledged` holds every decision that the server confirmed, by id."""

    def __init__(self, server: ReviewServer, *, stop_after: int) -> None:
        self.server = server
        self.stop_after = stop_after
        self.acknowledged: dict[str, tuple[str, int, str]] = {}
        self.undone: set[str] = set()
        self.errors: list[str] = []
        self.ended = threading.Event()

    def run(self, kills: int) -> None:
        """Let all reviewers work until nothing is left, and kill the server `kills` times meanwhile."""
        threads = [
            threading.Thread(
                target=self._work, args=(name, link.partition("#token=")[2], number)
            )
            for number, (name, link) in enumerate(self.server.links.items())
            if name != "owner"
        ]
        for thread in threads:
            thread.start()
        for number in range(1, kills + 1):
            self._wait_for(number * self.stop_after // (kills + 1), threads)
            self.server.kill()
            self.server.start()
        for thread in threads:
            thread.join()

    def _wait_for(self, count: int, threads: list[threading.Thread]) -> None:
        while len(self.acknowledged) < count and any(
            thread.is_alive() for thread in threads
        ):
            time.sleep(0.01)

    def _work(self, name: str, token: str, seed: int) -> None:
        connection = _Connection(self.server.port, token)
        try:
            self._review(name, connection, random.Random(seed))
        except Exception as error:  # The test shows what went wrong in a thread.
            self.errors.append(f"{name}: {error!r}")
        finally:
            connection.connection.close()

    def _review(
        self, name: str, connection: "_Connection", chance: random.Random
    ) -> None:
        items = connection.next_items()
        while items := items or connection.next_items():
            decision = _decide(items[0], chance)
            status, found = connection.send("/decisions", decision)
            if status == 200:
                verdict = decision["verdict"]
                self.acknowledged[decision["id"]] = (name, decision["item"], verdict)
                items = found["items"]
                if chance.random() < 0.02:
                    self._undo(connection, chance)
                    items = connection.next_items()
            elif status == 409:
                items = connection.next_items()
            else:
                raise AssertionError(f"{status}: {found}")

    def _undo(self, connection: "_Connection", chance: random.Random) -> None:
        status, found = connection.send("/undo", {"id": _uuid(chance)})
        assert status == 200, found
        self.undone.add(found["undone"])


def _decide(item: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A decision about an item; two reviewers of the same item usually decide the same."""
    if item["candidates"]:
        verdict = chance.choice(["left", "right", "tie", "bad"])
        judgment = {"verdict": verdict, "criteria": ["target"], "seconds": 5.0}
        return {"id": _uuid(chance), "item": item["item"], "next": 2} | judgment
    kind = (
        (item["item"] * 7919) % 100 if chance.random() < 0.95 else chance.randrange(100)
    )
    decision: dict[str, Any] = {
        "id": _uuid(chance),
        "item": item["item"],
        "next": 2,
        "verdict": "accept",
    }
    if kind < 10:
        decision |= {
            "verdict": "fix",
            "edit": {"question": f"Which one? {item['item']}"},
        }
    elif kind < 20:
        decision |= {"verdict": "reject", "reason": "ambiguous"}
    return decision


def _uuid(chance: random.Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


class _Connection:
    """One reviewer's connection. A request is repeated, as it is, until it is answered."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        }

    def next_items(self) -> Any:
        """Items to decide. Another request may lock the last ones for a moment; then the queue is asked again."""
        while True:
            found = self.ask("/queue", {"count": 2})
            if found["items"] or not found["progress"]["open"]:
                return found["items"]
            time.sleep(0.1)

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        status, found = self.send(path, body)
        assert status == 200, found
        return found

    def send(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        data = json.dumps(body)
        for attempt in itertools.count():
            assert attempt < 3000, "the server does not answer"
            try:
                status, content = self._try(path, data)
            except (OSError, http.client.HTTPException):
                self.connection.close()
                time.sleep(0.05)
                continue
            if status != 503:
                return status, json.loads(content)
            time.sleep(0.05)
        raise AssertionError

    def _try(self, path: str, data: str) -> tuple[int, bytes]:
        self.connection.request("POST", PREFIX + path, data, self.headers)
        response = self.connection.getresponse()
        return response.status, response.read()

"""A SQLite record of every request sent to a language model: written before it is sent, completed when it is answered.

Table `calls`: one row per request key. `state` is "sent" or "answered"; `batch` names the batch it went with. Table
`batches`: one row per batch. `id` is empty between the decision to submit and the provider's reply, so that a run that
was killed in between looks for the batch at the provider before it submits again.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from maskwise.writers.request import Completion, CompletionRequest

TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, state TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    prompt_version TEXT NOT NULL, batch TEXT, completion TEXT, status TEXT,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0, sent REAL NOT NULL, answered REAL
);
CREATE TABLE IF NOT EXISTS batches (
    label TEXT PRIMARY KEY, id TEXT, provider TEXT NOT NULL, model TEXT NOT NULL, created REAL NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0
);
"""


class BatchRecord(NamedTuple):
    """A batch that was decided on. id: None if the provider's reply was never recorded."""

    label: str
    id: str | None
    created: float


class LedgerTotals(NamedTuple):
    """What all answered requests used. statuses: number of requests by the status of their completion."""

    statuses: dict[str, int]
    input_tokens: int
    output_tokens: int
    cost: float


class Ledger:
    """The record of one build. Use it from one thread, as a context manager; every change is on disk on return."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(TABLES)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    def completion(self, key: str) -> Completion | None:
        """What was answered to a request; None if nothing was."""
        row = self._database.execute(
            "SELECT completion FROM calls WHERE key = ? AND state = 'answered'", (key,)
        ).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Completion)

    def record_sent(
        self,
        requests: Mapping[str, CompletionRequest],
        *,
        provider: str,
        model: str,
        batch: str | None = None,
    ) -> None:
        """Record that requests are about to be sent, one by one or with the batch of a label."""
        now = time.time()
        with self._transaction():
            if batch is not None:
                self._database.execute(
                    "INSERT INTO batches (label, provider, model, created) VALUES (?, ?, ?, ?)",
                    (batch, provider, model, now),
                )
            self._database.executemany(
                "INSERT OR REPLACE INTO calls (key, state, provider, model, prompt_version, batch, sent) "
                "VALUES (?, 'sent', ?, ?, ?, ?, ?)",
                [
                    (key, provider, model, request.prompt_version, batch, now)
                    for key, request in requests.items()
                ],
            )

    def record_batch(self, label: str, id: str) -> None:
        """Record the id that the provider gave a batch."""
        self._database.execute("UPDATE batches SET id = ? WHERE label = ?", (id, label))

    def record_answered(
        self, completions: Iterable[tuple[str, Completion, float]]
    ) -> None:
        """Record completions by key, each with its cost."""
        now = time.time()
        with self._transaction():
            self._database.executemany(
                "UPDATE calls SET state = 'answered', completion = ?, status = ?, input_tokens = ?, "
                "output_tokens = ?, cost = ?, answered = ? WHERE key = ?",
                [
                    (
                        msgspec.json.encode(completion).decode(),
                        completion.status,
                        completion.input_tokens,
                        completion.output_tokens,
                        cost,
                        now,
                        key,
                    )
                    for key, completion, cost in completions
                ],
            )

    def finish_batch(self, label: str) -> None:
        """Close a batch; its requests without an answer are forgotten, so that they are sent again."""
        with self._transaction():
            self._database.execute(
                "UPDATE batches SET finished = 1 WHERE label = ?", (label,)
            )
            self._database.execute(
                "DELETE FROM calls WHERE batch = ? AND state = 'sent'", (label,)
            )

    def open_batches(self, provider: str, model: str) -> list[BatchRecord]:
        """Batches of a model that were not collected yet, oldest first."""
        rows = self._database.execute(
            "SELECT label, id, created FROM batches WHERE finished = 0 AND provider = ? AND model = ? ORDER BY created",
            (provider, model),
        )
        return [BatchRecord(*row) for row in rows]

    def batch_keys(self, label: str) -> frozenset[str]:
        """The keys of the requests of a batch."""
        rows = self._database.execute("SELECT key FROM calls WHERE batch = ?", (label,))
        return frozenset(key for (key,) in rows)

    @property
    def cost(self) -> float:
        """What all answered requests cost, in US dollars."""
        (total,) = self._database.execute(
            "SELECT COALESCE(SUM(cost), 0) FROM calls"
        ).fetchone()
        return float(total)

    @property
    def totals(self) -> LedgerTotals:
        """The sums over all answered requests, of all runs."""
        rows = self._database.execute(
            "SELECT status, COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM calls "
            "WHERE state = 'answered' GROUP BY status ORDER BY status"
        ).fetchall()
        sums = [sum(row[column] for row in rows) for column in (2, 3, 4)]
        return LedgerTotals(
            {row[0]: row[1] for row in rows}, sums[0], sums[1], float(sums[2])
        )

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._database)


class _Transaction:
    """All statements of a block or none."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.execute("COMMIT" if error is None else "ROLLBACK")

"""A SQLite record of every request sent to a language model: written before it is sent, completed when it is answered.

Table `calls`: one row per request key. `state` is "sent" or "answered"; `batch` names the batch it went with. Table
`batches`: one row per batch. `id` is empty between the decision to submit and the provider's reply, so that a run that
was killed in between looks for the batch at the provider before it submits again.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from maskwise.errors import StoreError
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


class Ledger:
    """The record of one build. Use it from one thread, as a context manager; every change is on disk on return."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None)
            try:
                # Nothing is written to a damaged file.
                damage = self._database.execute("PRAGMA integrity_check(1)").fetchone()
                if damage[0] != "ok":
                    raise sqlite3.DatabaseError(damage[0])
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self._database.executescript(TABLES)
            except BaseException:
                self._database.close()
                raise

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
        query = "SELECT completion FROM calls WHERE key = ? AND state = 'answered'"
        with self._errors():
            row = self._database.execute(query, (key,)).fetchone()
        if row is None:
            return None
        try:
            return msgspec.json.decode(row[0], type=Completion)
        except (msgspec.DecodeError, UnicodeError, TypeError) as error:
            raise StoreError(
                f"{self.path}: the answer to request {key[:16]} is damaged: {error}; "
                "delete its row in the table `calls` to send it again"
            ) from None

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
        with self._errors(), self._transaction():
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
        with self._errors():
            self._database.execute(
                "UPDATE batches SET id = ? WHERE label = ?", (id, label)
            )

    def record_answered(
        self, completions: Iterable[tuple[str, Completion, float]]
    ) -> None:
        """Record completions by key, each with its cost."""
        now = time.time()
        with self._errors(), self._transaction():
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
        with self._errors(), self._transaction():
            self._database.execute(
                "UPDATE batches SET finished = 1 WHERE label = ?", (label,)
            )
            self._database.execute(
                "DELETE FROM calls WHERE batch = ? AND state = 'sent'", (label,)
            )

    def open_batches(self, provider: str, model: str) -> list[BatchRecord]:
        """Batches of a model that were not collected yet, oldest first."""
        with self._errors():
            rows = self._database.execute(
                "SELECT label, id, created FROM batches "
                "WHERE finished = 0 AND provider = ? AND model = ? ORDER BY created",
                (provider, model),
            ).fetchall()
        return [BatchRecord(*row) for row in rows]

    def batch_keys(self, label: str) -> frozenset[str]:
        """The keys of the requests of a batch."""
        query = "SELECT key FROM calls WHERE batch = ?"
        with self._errors():
            rows = self._database.execute(query, (label,)).fetchall()
        return frozenset(key for (key,) in rows)

    @property
    def cost(self) -> float:
        """What all answered requests cost, in US dollars."""
        query = "SELECT COALESCE(SUM(cost), 0) FROM calls"
        with self._errors():
            (total,) = self._database.execute(query).fetchone()
        return float(total)

    @property
    def totals(self) -> tuple[dict[str, int], int, int, float]:
        """What all answered requests of all runs used: their number by the status of their completion, input tokens,
        output tokens, and cost.
        """
        query = (
            "SELECT status, COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM calls "
            "WHERE state = 'answered' GROUP BY status ORDER BY status"
        )
        with self._errors():
            rows = self._database.execute(query).fetchall()
        statuses = {}
        input_tokens = 0
        output_tokens = 0
        cost = 0.0
        for status, count, status_input, status_output, status_cost in rows:
            statuses[status] = count
            input_tokens += status_input
            output_tokens += status_output
            cost += status_cost
        return statuses, input_tokens, output_tokens, cost

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._database)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of SQLite and of the disk, with the name of the file and what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            # Locked by another build, a full disk, a folder that cannot be written.
            raise StoreError(
                f"{self.path}: {error}; answers recorded before are kept, and repeating the command continues"
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Messages of SQLite quote bytes of a damaged file.
            raise StoreError(
                f"{self.path} is damaged: {error}; restore a copy, or move it away to send all requests again"
            ) from error
        except OSError as error:
            raise StoreError(f"{self.path}: {error}") from error


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
        if error is None:
            try:
                self._database.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        # SQLite has already rolled back after some errors, such as a full disk.
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

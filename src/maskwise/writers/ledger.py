"""A SQLite record of every request sent to a language model: written before it is sent, completed when it is answered.

Table `calls`: one row each time a request was sent. `state` is

    sent       the answer is awaited, or was lost with the process that awaited it
    answered   a reply came, of whatever use
    failed     the provider did not take it; nothing was paid
    lost       no reply came in time, or none that can be read; it may have been paid for

`reserved` is the most that a request may cost, and counts while the state is `sent` or `lost`; `cost` is what an
answer cost. Only answers are taken again by a later run. Table `batches`: one row per batch. `id` is empty between the
decision to submit and the provider's reply, so that a run that was killed in between looks for the batch at the
provider before it submits again.

Several processes may share a ledger: `build` says which of them sent a request. All of them take its answers, and
budgets hold for all of them together.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from maskwise.errors import StoreError
from maskwise.writers.request import Completion, CompletionRequest

CALLS_COLUMNS = """
    key TEXT NOT NULL, state TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    prompt_version TEXT NOT NULL, batch TEXT, completion TEXT, status TEXT,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0, sent REAL NOT NULL, answered REAL,
    reserved REAL NOT NULL DEFAULT 0, build TEXT NOT NULL DEFAULT '', id INTEGER PRIMARY KEY
"""
TABLES = f"""
CREATE TABLE IF NOT EXISTS calls ({CALLS_COLUMNS});
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
CREATE TABLE IF NOT EXISTS batches (
    label TEXT PRIMARY KEY, id TEXT, provider TEXT NOT NULL, model TEXT NOT NULL, created REAL NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0
);
"""
OLD_COLUMNS = (
    "key, state, provider, model, prompt_version, batch, completion, status, "
    "input_tokens, output_tokens, cost, sent, answered"
)
"""Of the first ledgers, which had one row per request and reserved nothing."""

SPENT = "COALESCE(SUM(cost), 0)"
RESERVED = (
    "COALESCE(SUM(CASE WHEN state IN ('sent', 'lost') THEN reserved ELSE 0 END), 0)"
)
"""Sums over the table `calls`, in US dollars."""

BUSY_SECONDS = 30.0
"""How long a change waits for another process that shares the ledger; a change takes milliseconds."""


class BatchRecord(NamedTuple):
    """A batch that was decided on. id: None if the provider's reply was never recorded."""

    label: str
    id: str | None
    created: float


class Ledger:
    """The record of one build or of several. A context manager; every change is on disk on return.

    Threads may share it. build: which of several builds this is; totals are of this one.
    """

    def __init__(self, path: str | os.PathLike[str], *, build: str = "") -> None:
        self.path = Path(path)
        self.build = build
        self._lock = threading.RLock()
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                path,
                isolation_level=None,
                check_same_thread=False,
                timeout=BUSY_SECONDS,
            )
            try:
                # Nothing is written to a damaged file.
                damage = self._database.execute("PRAGMA integrity_check(1)").fetchone()
                if damage[0] != "ok":
                    raise sqlite3.DatabaseError(damage[0])
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self._create_tables()
            except BaseException:
                self._database.close()
                raise

    def _create_tables(self) -> None:
        """Create the tables, or bring those of an older ledger to the present columns."""
        with self._transaction():
            columns = self._database.execute("PRAGMA table_info(calls)").fetchall()
            is_old = bool(columns) and "reserved" not in {row[1] for row in columns}
            if is_old:
                self._database.execute("ALTER TABLE calls RENAME TO old_calls")
            for statement in filter(str.strip, TABLES.split(";")):
                self._database.execute(statement)
            if is_old:
                self._database.execute(
                    f"INSERT INTO calls ({OLD_COLUMNS}) SELECT {OLD_COLUMNS} FROM old_calls"
                )
                self._database.execute("DROP TABLE old_calls")

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
        """What was answered last to a request; None if nothing was."""
        query = (
            "SELECT completion FROM calls WHERE key = ? AND state = 'answered' "
            "ORDER BY id DESC LIMIT 1"
        )
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
        reserved: Mapping[str, float] | None = None,
        budget: float | None = None,
    ) -> bool:
        """Record that requests are about to be sent, one by one or with the batch of a label.

        reserved: the most that each may cost. budget: False is returned, and nothing recorded, if all that was spent
        and reserved would exceed it. No other process can spend in between.
        """
        now = time.time()
        amounts = reserved or {}
        with self._errors(), self._transaction():
            total = sum(amounts.values())
            if budget is not None and sum(self.spending) + total > budget:
                return False
            if batch is not None:
                self._database.execute(
                    "INSERT INTO batches (label, provider, model, created) VALUES (?, ?, ?, ?)",
                    (batch, provider, model, now),
                )
            self._database.executemany(
                "INSERT INTO calls (key, state, provider, model, prompt_version, batch, sent, reserved, build) "
                "VALUES (?, 'sent', ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        key,
                        provider,
                        model,
                        request.prompt_version,
                        batch,
                        now,
                        amounts.get(key, 0.0),
                        self.build,
                    )
                    for key, request in requests.items()
                ],
            )
        return True

    def record_batch(self, label: str, id: str) -> None:
        """Record the id that the provider gave a batch."""
        with self._errors():
            self._database.execute(
                "UPDATE batches SET id = ? WHERE label = ?", (id, label)
            )

    def record_answered(
        self, completions: Iterable[tuple[str, Completion, float]]
    ) -> None:
        """Record the replies to requests that were sent, by key, each with its cost."""
        with self._errors(), self._transaction():
            for key, completion, cost in completions:
                self._end(key, "answered", completion, cost)

    def record_failed(self, key: str, completion: Completion, *, paid: bool) -> None:
        """Record that a request brought no reply. paid: it may have been paid for, so its reservation stays."""
        with self._errors(), self._transaction():
            self._end(key, "lost" if paid else "failed", completion, 0.0)

    def _end(self, key: str, state: str, completion: Completion, cost: float) -> None:
        """Change the newest row of a request that awaits its answer."""
        self._database.execute(
            "UPDATE calls SET state = ?, completion = ?, status = ?, input_tokens = ?, "
            "output_tokens = ?, cost = ?, answered = ? "
            "WHERE id = (SELECT MAX(id) FROM calls WHERE key = ? AND state = 'sent')",
            (
                state,
                msgspec.json.encode(completion).decode(),
                completion.status,
                completion.input_tokens,
                completion.output_tokens,
                cost,
                time.time(),
                key,
            ),
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
    def spending(self) -> tuple[float, float]:
        """What the answers to all builds cost, and the most that requests without a recorded answer cost."""
        query = f"SELECT {SPENT}, {RESERVED} FROM calls"
        with self._errors():
            spent, reserved = self._database.execute(query).fetchone()
        return float(spent), float(reserved)

    @property
    def cost(self) -> float:
        """What the answers to this build cost, in US dollars."""
        query = f"SELECT {SPENT} FROM calls WHERE build = ?"
        with self._errors():
            (spent,) = self._database.execute(query, (self.build,)).fetchone()
        return float(spent)

    @property
    def unanswered(self) -> tuple[int, float]:
        """Requests of this build that have no recorded answer, although they may have been paid for: how many, and the
        most that they cost.
        """
        query = (
            f"SELECT COUNT(*), {RESERVED} FROM calls "
            "WHERE state IN ('sent', 'lost') AND build = ?"
        )
        with self._errors():
            row = self._database.execute(query, (self.build,)).fetchone()
        return int(row[0]), float(row[1])

    @property
    def totals(self) -> tuple[dict[str, int], int, int, float]:
        """What all runs of this build used: requests by the status of their completion, input tokens, output tokens,
        and cost.
        """
        query = (
            "SELECT status, COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM calls "
            "WHERE status IS NOT NULL AND build = ? GROUP BY status ORDER BY status"
        )
        with self._errors():
            rows = self._database.execute(query, (self.build,)).fetchall()
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
        """One thread at a time; errors of SQLite and of the disk with the name of the file and what to do."""
        try:
            with self._lock:
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
        except MemoryError as error:
            # A damaged size in the file; an intact ledger needs kilobytes.
            raise StoreError(
                f"{self.path} is damaged: SQLite asks for too much memory; restore a copy, or move it away to send all "
                "requests again"
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

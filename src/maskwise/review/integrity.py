"""Is the database of a review intact, and what to do where it is not.

`find_damage` only reads: pages of an SQLite file, every event of the audit log, and whether the tables that follow from
the log have as many rows as it says. `rebuild_review` makes the state again from the log. Where the file itself or an
event is damaged, it writes what can be read to a new file and keeps the damaged one beside it.
"""

import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from maskwise.errors import MaskwiseError
from maskwise.review import tables
from maskwise.review.audit_log import (
    BATCH,
    Event,
    apply_event,
    check_event,
    read_events,
    rebuild_state,
)
from maskwise.review.database import DamagedReviewError, ReviewDatabase

MAX_PROBLEMS = 5
"""Lines of a message; a damaged page often has hundreds of consequences."""

NEEDED_KINDS = ("project_created", "items_added")
"""Events without which there is nothing to decide about."""


UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)
"""What reading a damaged file raises: messages of SQLite quote its bytes, and it takes any size for true."""


def check_integrity(database: ReviewDatabase, dataset: str) -> None:
    """DamagedReviewError where the database is damaged; nothing is written. dataset: its name, for the message."""
    if database.is_missing():
        return
    problems = find_damage(database)
    if not problems:
        return
    listed = "; ".join(problems[:MAX_PROBLEMS])
    more = len(problems) - MAX_PROBLEMS
    others = f"; and {more} more problems" if more > 0 else ""
    hint = f"maskwise review rebuild {dataset} --db {database.name}"
    raise DamagedReviewError(
        f"{database.name} is damaged: {listed}{others}. Nothing was changed. "
        f"Stop other servers of this review, then rebuild it from its audit log: {hint}"
    )


def find_damage(database: ReviewDatabase) -> list[str]:
    """What is damaged, one line each; empty where the database is intact or has no tables yet."""
    problems: list[str] = []
    if database.is_sqlite:
        path = Path(database.url.database or "")
        if not path.stat().st_size:
            return []
        problems = _damaged_pages(path)
        if problems:
            return problems
        with contextlib.closing(_open_read_only(path)) as connection:
            names = {row[0] for row in connection.execute(_TABLE_NAMES)}
        if not names & set(tables.metadata.tables):
            return []
    try:
        return _damaged_records(database)
    except DamagedReviewError as error:
        return [str(error)]


def _damaged_records(database: ReviewDatabase) -> list[str]:
    """Events that are invalid, and tables that do not follow from the log."""
    problems: list[str] = []
    kinds: Counter[str] = Counter()
    with database.read() as connection:
        if not database.is_sqlite and not _has_tables(connection):
            return []
        for event in read_events(connection):
            kinds[event.kind] += 1
            try:
                check_event(event)
            except DamagedReviewError as error:
                problems.append(str(error))
        problems += _wrong_counts(connection, kinds)
    return problems


def rebuild_review(database: ReviewDatabase) -> tuple[int, list[str]]:
    """Make the state again from the audit log; returns the number of events, and what was left out.

    DamagedReviewError where that is not possible: the beginning of the log is lost, or it is on PostgreSQL.
    """
    path = Path(database.url.database or "")
    pages = _damaged_pages(path) if database.is_sqlite else []
    if not pages:
        invalid = _invalid_events(database)
        if not invalid:
            return database.write(rebuild_state), []
        if not database.is_sqlite:
            raise DamagedReviewError(
                f"{database.name}: {invalid[0]}; the log cannot be changed, so restore a backup"
            )
    database.close()
    return _rebuild_file(path)


# -- inside


_TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def _open_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _damaged_pages(path: Path) -> list[str]:
    """What SQLite's own check finds."""
    try:
        with contextlib.closing(_open_read_only(path)) as connection:
            rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    except sqlite3.OperationalError as error:
        raise MaskwiseError(f"{path} cannot be read: {error}") from None
    except UNREADABLE as error:
        return [str(error) or "SQLite asks for too much memory"]
    lines = [line for row in rows for line in str(row[0]).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def _has_tables(connection: Connection) -> bool:
    return connection.dialect.has_table(connection, tables.events.name)


def _wrong_counts(connection: Connection, kinds: Counter[str]) -> list[str]:
    expected = {
        tables.project: kinds["project_created"],
        tables.decisions: kinds["decided"],
    }
    problems = []
    for table, events in expected.items():
        rows = connection.scalar(select(func.count()).select_from(table)) or 0
        if rows != events:
            problems.append(
                f"table {table.name} has {rows} rows, and the audit log {events} events for it"
            )
    return problems


def _invalid_events(database: ReviewDatabase) -> list[str]:
    problems = []
    with database.read() as connection:
        for event in read_events(connection):
            try:
                check_event(event)
            except DamagedReviewError as error:
                problems.append(str(error))
    return problems


def _rebuild_file(path: Path) -> tuple[int, list[str]]:
    """Write what can be read of an SQLite file to a new one, which takes its place."""
    new_path = path.with_name(f"{path.name}.rebuilding")
    _remove(new_path)
    left_out: list[str] = []
    database = ReviewDatabase(new_path)
    try:
        database.create_tables()
        with contextlib.closing(_open_read_only(path)) as damaged:
            kinds = database.write(
                lambda connection: _copy_events(damaged, connection, left_out)
            )
            for kind in NEEDED_KINDS:
                if not kinds[kind]:
                    raise DamagedReviewError(
                        f"{path} cannot be rebuilt: no event {kind!r} can be read; restore a backup"
                    )
            # Drafts are no decisions: what is damaged is left out.
            with contextlib.suppress(*UNREADABLE, SQLAlchemyError):
                drafts = damaged.execute("SELECT item, reviewer, at, body FROM drafts")
                names = [column[0] for column in drafts.description]
                rows = [dict(zip(names, row)) for row in drafts]
                if rows:
                    database.write(lambda connection: _insert_drafts(connection, rows))
    except BaseException:
        database.close()
        _remove(new_path)
        raise
    database.close()
    kept_path = _free_name(path)
    for suffix in ("-wal", "-shm", ""):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{kept_path}{suffix}")
    os.rename(new_path, path)
    left_out.append(f"the damaged file is kept as {kept_path}")
    return kinds.total(), left_out


def _copy_events(
    damaged: sqlite3.Connection, connection: Connection, left_out: list[str]
) -> Counter[str]:
    """Copy and apply all events that can be read and applied; returns how many of each kind."""
    kinds: Counter[str] = Counter()
    left_out.clear()
    for seq, event in _salvage(damaged):
        if event is None:
            left_out.append(f"event {seq} cannot be read")
            continue
        try:
            check_event(event)
            with connection.begin_nested():
                connection.execute(insert(tables.events).values(**event._asdict()))
                apply_event(connection, event)
        except DamagedReviewError as error:
            left_out.append(str(error))
        except (SQLAlchemyError, KeyError, TypeError, AssertionError):
            left_out.append(f"event {seq} ({event.kind}) cannot be applied")
        else:
            kinds[event.kind] += 1
    return kinds


def _insert_drafts(connection: Connection, rows: list[dict[str, Any]]) -> None:
    connection.execute(insert(tables.drafts), rows)


def _salvage(damaged: sqlite3.Connection) -> Iterator[tuple[int, Event | None]]:
    """The events of a damaged file with their numbers, in order; None for one that cannot be read."""
    columns = ", ".join(Event._fields)
    query = f"SELECT {columns} FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
    last = _last_number(damaged)
    for first in range(1, last + 1, BATCH):
        stop = min(first + BATCH - 1, last)
        try:
            rows = damaged.execute(query, (first, stop)).fetchall()
        except UNREADABLE:
            # One by one: a damaged page takes only its own events with it.
            for seq in range(first, stop + 1):
                try:
                    rows = damaged.execute(query, (seq, seq)).fetchall()
                except UNREADABLE:
                    yield seq, None
                    continue
                for row in rows:
                    yield row[0], Event(*row)
            continue
        for row in rows:
            yield row[0], Event(*row)


def _last_number(damaged: sqlite3.Connection) -> int:
    """The number of the last event, from the table or from SQLite's counter."""
    queries = (
        "SELECT max(seq) FROM events",
        "SELECT seq FROM sqlite_sequence WHERE name = 'events'",
    )
    numbers = [0]
    for query in queries:
        with contextlib.suppress(*UNREADABLE):
            row = damaged.execute(query).fetchone()
            if row is not None and isinstance(row[0], int):
                numbers.append(row[0])
    return max(numbers)


def _free_name(path: Path) -> Path:
    """NAME.damaged, or with a number where an earlier one is kept."""
    name = path.with_name(f"{path.name}.damaged")
    number = 2
    while name.exists():
        name = path.with_name(f"{path.name}.damaged{number}")
        number += 1
    return name


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)

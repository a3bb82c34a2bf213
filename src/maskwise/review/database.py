"""Open the database of a review: SQLite by default, PostgreSQL by URL.

What was written is on the disk when `write` returns: SQLite runs with a write-ahead log and `synchronous=FULL`. It
takes the write lock at the beginning (BEGIN IMMEDIATE), so that no transaction fails half-way because another one
wrote. On PostgreSQL rows are locked where they are read for a change.

The write-ahead log (FILE-wal) is copied into the SQLite file at every CHECKPOINT_PAGES and by `close`.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from sqlalchemy import URL, Connection, create_engine, event, inspect, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    IntegrityError,
    InternalError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from maskwise.errors import MaskwiseError, MissingDependencyError, StoreError
from maskwise.review.tables import metadata

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process that writes to the same SQLite file."""

CHECKPOINT_PAGES = 100
"""Length of SQLite's write-ahead log, in pages of 4 KiB, at which a commit copies it into the file."""

CHECKPOINT_MS = 2000
"""How long `close` waits for other processes that read the SQLite file."""

CONNECTIONS = 16
"""Requests that use the database at once: enough for fifty reviewers, few for a shared PostgreSQL server."""

MAX_FILE_NAME = 150
"""Characters of the names of runs in a file name; file systems allow 255."""

_CHECKPOINTS = f"wal_autocheckpoint={CHECKPOINT_PAGES}"
SQLITE = "sqlite"
POSTGRES = "postgresql"

T = TypeVar("T")


class ReviewDatabase:
    """A database with the tables of a review. Threads may share it; so may processes. damage: what is damaged."""

    def __init__(self, url: str | Path) -> None:
        self.url = _parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == SQLITE
        self.damage: str | None = None
        self._writer = threading.Lock()
        self._joining = threading.Lock()
        self._waiting: list[_Job[Any]] = []
        try:
            self.engine = create_engine(
                self.url, poolclass=QueuePool, **_engine_options(self.is_sqlite)
            )
        except ModuleNotFoundError:
            raise MissingDependencyError(
                "a review on PostgreSQL", "psycopg", extra="postgres"
            ) from None
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)

    @property
    def name(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    def is_missing(self) -> bool:
        """Whether this is an SQLite file that does not exist yet; opening would create it."""
        return self.is_sqlite and not Path(self.url.database or "").exists()

    @contextlib.contextmanager
    def remove_on_error(self) -> Iterator[None]:
        """Remove the SQLite file if the block creates it and then fails."""
        # A review that existed before the block must never be removed.
        missing = self.is_missing()
        try:
            yield
        except BaseException:
            self.close()
            for suffix in ("", "-wal", "-shm") if missing else ():
                Path(f"{self.url.database}{suffix}").unlink(missing_ok=True)
            raise

    def create_tables(self) -> None:
        """Create the tables that are missing, and columns that an earlier version did not have."""
        with self._errors(), self.engine.begin() as connection:
            if not self.is_sqlite:
                # Two servers that start together must not both create them.
                # The number is any that no other program is likely to lock.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7305801)")
            metadata.create_all(connection)
            _add_missing_columns(connection)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run a function in a transaction; committed, and on the disk, when this returns.

        SQLite has one writer and waits for the disk at each commit. So what several threads want to write at the same
        time is committed together, each function in a savepoint of its own.
        """
        if self.damage is not None:
            raise DamagedReviewError(self.damage)
        job = _Job(work)
        if not self.is_sqlite:
            with self._errors(), self.engine.begin() as connection:
                job.run(connection)
            return job.result()
        with self._joining:
            self._waiting.append(job)
        # Whoever gets the lock first writes the jobs of all who wait for it.
        with self._writer:
            if not job.finished:
                self._write_waiting()
        return job.result()

    def _write_waiting(self) -> None:
        # A job joins either these or the next ones.
        with self._joining:
            jobs = self._waiting
            self._waiting = []
        try:
            with self._errors(), self.engine.begin() as connection:
                for job in jobs:
                    job.run_in_savepoint(connection)
        except BaseException as error:
            for job in jobs:
                job.error = error
        finally:
            for job in jobs:
                job.finished = True

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads, from one state of the database where the database can (SQLite)."""
        with (
            self._errors(),
            self.engine.connect().execution_options(only_reads=True) as connection,
        ):
            yield connection

    def close(self) -> None:
        """Close all connections. An SQLite file then holds everything by itself."""
        if self.is_sqlite and self.engine.pool.checkedin():  # type: ignore[attr-defined]
            self._checkpoint()
        self.engine.dispose()

    def _checkpoint(self) -> None:
        """Copy the write-ahead log into the file, also where another process has the file open."""
        # If another process reads for longer, or the disk is full, the log stays and SQLite reads it as before.
        with (
            contextlib.closing(self.engine.raw_connection()) as connection,
            contextlib.suppress(sqlite3.Error),
        ):
            for setting in (
                f"busy_timeout={CHECKPOINT_MS}",
                "wal_checkpoint(TRUNCATE)",
            ):
                connection.cursor().execute(f"PRAGMA {setting}")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of the connection as DatabaseUnavailableError; broken constraints stay what they are.

        DamagedReviewError where SQLite finds a damaged page; from then on nothing is written.
        """
        try:
            yield
        except (OperationalError, InternalError, PoolTimeoutError) as error:
            raise DatabaseUnavailableError(
                f"{self.name}: {getattr(error, 'orig', error)}"
            ) from error
        except DatabaseError as error:
            if type(error) is not DatabaseError:
                raise
            raise self._damaged(error.orig) from error
        except UnicodeDecodeError as error:
            # Texts of a damaged page, or a message of SQLite about it.
            raise self._damaged(error) from error

    def _damaged(self, problem: object) -> "DamagedReviewError":
        self.damage = f"{self.name} is damaged: {problem}; end the server and run maskwise review rebuild"
        return DamagedReviewError(self.damage)


class _Job(Generic[T]):
    """A function to run in a transaction, and what it returned or raised."""

    def __init__(self, work: Callable[[Connection], T]) -> None:
        self._work = work
        self._value = list[T]()
        self.error: BaseException | None = None
        self.finished = False

    def run(self, connection: Connection) -> None:
        self._value.append(self._work(connection))

    def run_in_savepoint(self, connection: Connection) -> None:
        """Run on SQLite; what the function raises undoes its changes alone."""
        execute = connection.connection.driver_connection.execute  # type: ignore[union-attr]
        execute("SAVEPOINT job")
        try:
            self.run(connection)
        except (MaskwiseError, IntegrityError) as error:
            execute("ROLLBACK TO job")
            self.error = error
        finally:
            execute("RELEASE job")

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return self._value[0]


class DamagedReviewError(StoreError):
    """A database or audit log that is damaged; nothing is written to it any more."""


class DatabaseUnavailableError(StoreError):
    """A database that cannot be reached or is busy: the same request may succeed later."""


def default_database(dataset: Path) -> Path:
    """The SQLite file of a review: beside the dataset folder."""
    folder = dataset.absolute()
    return folder.with_name(f"{folder.name}.review.sqlite")


def judgment_database(runs: Sequence[Path]) -> Path:
    """The SQLite file of a review of predictions: beside the first run, named after all."""
    folders = [run.absolute() for run in runs]
    names = "_".join(folder.name for folder in folders)[:MAX_FILE_NAME]
    return folders[0].with_name(f"{names}.judgments.sqlite")


def _add_missing_columns(connection: Connection) -> None:
    """Columns that came later may be empty, so that the rows of an older review stay valid."""
    known = inspect(connection)
    for table in metadata.sorted_tables:
        names = {column["name"] for column in known.get_columns(table.name)}
        for column in table.columns:
            if column.name not in names:
                kind = column.type.compile(connection.dialect)
                preparer = connection.dialect.identifier_preparer
                name = preparer.quote(column.name)
                connection.exec_driver_sql(
                    f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}"
                )


def _parse_url(url: str | Path) -> URL:
    if isinstance(url, Path) or "://" not in url:
        return URL.create(SQLITE, database=str(url))
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError(
            f"expected the URL of a database, found {url.partition(':')[0]}:..."
        ) from None
    backend = parsed.get_backend_name()
    if backend not in (SQLITE, POSTGRES, "postgres"):
        raise StoreError(
            f"expected a URL sqlite:///FILE or postgresql://..., found {backend}://"
        )
    return parsed if backend == SQLITE else parsed.set(drivername=f"{POSTGRES}+psycopg")


def _engine_options(is_sqlite: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "pool_size": CONNECTIONS,
        "max_overflow": 0,
        "pool_timeout": BUSY_SECONDS,
    }
    if is_sqlite:
        return options | {
            "connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}
        }
    return options | {"pool_pre_ping": True}


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # Transactions begin where `_begin_sqlite` says.
    cursor = connection.cursor()
    for setting in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        _CHECKPOINTS,
    ):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("only_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

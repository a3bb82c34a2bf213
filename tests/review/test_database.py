"""Transactions of a review: what is written together, what is undone alone, and which databases are accepted."""

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select

from maskwise.errors import StoreError
from maskwise.review import tables
from maskwise.review.database import ReviewDatabase, default_database


@pytest.fixture
def database(tmp_path: Path) -> ReviewDatabase:
    database = ReviewDatabase(tmp_path / "review.sqlite")
    database.create_tables()
    return database


def add_reviewer(connection: Connection, name: str) -> str:
    values = {"name": name, "role": "reviewer", "token_hash": name}
    connection.execute(insert(tables.reviewers).values(**values))
    return name


def count_reviewers(database: ReviewDatabase) -> int:
    with database.read() as connection:
        query = select(func.count()).select_from(tables.reviewers)
        return connection.execute(query).scalar_one()


def test_a_database_beside_the_dataset_by_default(tmp_path: Path) -> None:
    assert default_database(tmp_path / "val") == tmp_path / "val.review.sqlite"


@pytest.mark.parametrize("url", ["mysql://x/y", "http://x", "://"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(StoreError, match="expected"):
        ReviewDatabase(url)


def test_the_password_is_not_shown() -> None:
    database = ReviewDatabase("postgresql://ada:s3cret@localhost:1/review")
    assert "s3cret" not in database.name
    assert "ada" in database.name


def test_what_one_job_raises_does_not_undo_the_jobs_beside_it(
    database: ReviewDatabase,
) -> None:
    """Many threads write at once, so that several share a commit; every third fails after it has written."""
    errors: list[str] = []
    written: list[str] = []

    def write(number: int) -> None:
        def work(connection: Connection) -> str:
            name = add_reviewer(connection, f"r{number}")
            if number % 3 == 0:
                raise StoreError(f"no {number}")
            return name

        try:
            written.append(database.write(work))
        except StoreError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(errors) == sorted(f"no {number}" for number in range(0, 30, 3))
    assert len(written) == 20
    assert count_reviewers(database) == 20


def test_an_unexpected_error_reaches_the_caller(database: ReviewDatabase) -> None:
    def fail(connection: Connection) -> None:
        add_reviewer(connection, "ada")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(fail)
    assert count_reviewers(database) == 0
    database.write(lambda connection: add_reviewer(connection, "bob"))
    assert count_reviewers(database) == 1


def test_a_file_that_a_failed_start_created_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    database = ReviewDatabase(path)

    def begin_and_fail() -> Any:
        with database.remove_on_error():
            database.create_tables()
            assert path.exists()
            raise StoreError("the port is taken")

    with pytest.raises(StoreError, match="port"):
        begin_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_existed_is_kept(database: ReviewDatabase, tmp_path: Path) -> None:
    database.write(lambda connection: add_reviewer(connection, "ada"))
    with pytest.raises(StoreError), database.remove_on_error():
        raise StoreError("the port is taken")
    assert count_reviewers(ReviewDatabase(tmp_path / "review.sqlite")) == 1


def test_after_closing_the_file_holds_everything(
    database: ReviewDatabase, tmp_path: Path
) -> None:
    database.write(lambda connection: add_reviewer(connection, "ada"))
    database.close()
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes((tmp_path / "review.sqlite").read_bytes())
    assert count_reviewers(ReviewDatabase(copy)) == 1

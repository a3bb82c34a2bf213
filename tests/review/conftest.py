"""Databases and reviews for the tests: every test of storage runs on SQLite and on PostgreSQL."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from maskwise.review.database import ReviewDatabase
from maskwise.review.project import ProjectOptions
from maskwise.review.review import Review
from maskwise.store import Dataset
from tests.review.datasets import write_samples
from tests.review.judging import write_runs
from tests.review.postgres import postgres_server

StartReview = Callable[..., Review]


@pytest.fixture(scope="session")
def cups(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Twelve samples; the sixth and the eighth are flagged."""
    return write_samples(tmp_path_factory.mktemp("cups") / "data", 12, flagged=(5, 7))


@pytest.fixture(scope="session")
def cup_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs `good`, `fair` and `poor` on 24 questions about 12 images."""
    folder = tmp_path_factory.mktemp("runs")
    dataset = write_samples(folder / "data", 24, per_image=2)
    return write_runs(folder, dataset)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'review.sqlite'}"
    return new_database(request.getfixturevalue("postgres"))


def new_database(server: str) -> str:
    """The URL of an empty database on a server."""
    name = f"review{next(_numbers)}"
    engine = create_engine(
        server.replace("postgresql:", "postgresql+psycopg:"),
        isolation_level="AUTOCOMMIT",
    )
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.rpartition("/")[0] + "/" + name


@pytest.fixture
def start(database_url: str, cups: Dataset) -> Iterator[StartReview]:
    """A function that opens the review of the cups."""
    opened: list[Review] = []

    def open_review(*, lease_seconds: float = 900.0, **options: object) -> Review:
        review = Review(cups, ReviewDatabase(database_url), lease_seconds=lease_seconds)
        review.create(ProjectOptions(**options))  # type: ignore[arg-type]
        opened.append(review)
        return review

    yield open_review
    for review in opened:
        review.database.close()

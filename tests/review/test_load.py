"""Fifty reviewers, thousands of decisions, a server that is killed again and again: nothing lost, nothing doubled."""

import contextlib
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from maskwise.review import tables
from maskwise.review.database import ReviewDatabase
from maskwise.review.judged_runs import open_judged_runs
from maskwise.review.review import Review
from tests.review.datasets import write_samples
from tests.review.judging import write_runs
from tests.review.simulation import ReviewServer, Simulation
from tests.review.test_review import state

REVIEWERS = [f"r{number}" for number in range(50)]


def simulate(
    folder: Path, database_url: str, *, samples: int, decisions: int, kills: int
) -> None:
    data = write_samples(folder / "data", samples)
    server = ReviewServer([folder / "data"], database_url, REVIEWERS)
    simulation = work(server, decisions, kills)
    with contextlib.closing(ReviewDatabase(database_url)) as database:
        check_log(Review(data, database), simulation)


def simulate_judgments(
    folder: Path, database_url: str, *, samples: int, decisions: int, kills: int
) -> None:
    """Two runs, compared."""
    data = write_samples(folder / "data", samples)
    paths = write_runs(folder, data, {"good": 0, "poor": 3})
    server = ReviewServer(["--runs", *paths], database_url, REVIEWERS)
    simulation = work(server, decisions, kills)
    runs = open_judged_runs(paths, "compare")
    with contextlib.closing(ReviewDatabase(database_url)) as database:
        review = Review(runs.dataset, database, runs=runs)
        check_log(review, simulation)
        counted = len(simulation.acknowledged) - len(simulation.undone)
        assert review.results().judgments == counted


def work(server: ReviewServer, decisions: int, kills: int) -> Simulation:
    with server.running():
        simulation = Simulation(server, stop_after=decisions)
        started = time.monotonic()
        simulation.run(kills)
        seconds = time.monotonic() - started
    print(
        f"{len(simulation.acknowledged)} decisions in {seconds:.0f} s: {len(simulation.acknowledged) / seconds:.0f}/s"
    )
    assert not simulation.errors
    return simulation


def check_log(review: Review, simulation: Simulation) -> None:
    check_nothing_lost_or_doubled(review, simulation)
    before = state(review)
    review.rebuild()
    assert state(review) == before


def check_nothing_lost_or_doubled(review: Review, simulation: Simulation) -> None:
    with review.database.read() as connection:
        decided = connection.execute(
            select(
                tables.events.c.uuid, tables.events.c.actor, tables.events.c.item
            ).where(tables.events.c.kind == "decided")
        ).all()
        rows = connection.execute(select(tables.decisions)).all()
        items = connection.execute(select(tables.items)).all()
    stored = {row.uuid: (row.actor, row.item) for row in decided}
    confirmed = {
        id: (name, item) for id, (name, item, _) in simulation.acknowledged.items()
    }
    assert stored == confirmed
    assert {row.id: row.verdict for row in rows} == {
        id: found[2] for id, found in simulation.acknowledged.items()
    }
    assert {row.id for row in rows if row.undone} == simulation.undone
    counting = [row for row in rows if not row.undone]
    per_item = Counter(row.item for row in counting)
    assert per_item == {item.item: item.needed for item in items}
    assert len({(row.item, row.reviewer) for row in counting}) == len(counting)
    assert not [item.item for item in items if item.status == "open"]


def test_a_killed_server_loses_and_doubles_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'review.sqlite'}"
    simulate(tmp_path, url, samples=160, decisions=192, kills=1)


def test_a_killed_server_loses_and_doubles_no_judgment(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'review.sqlite'}"
    simulate_judgments(tmp_path, url, samples=60, decisions=72, kills=1)


@pytest.mark.load
def test_fifty_people_judge_predictions_through_three_kills(
    tmp_path: Path, database_url: str
) -> None:
    simulate_judgments(tmp_path, database_url, samples=1_700, decisions=2_000, kills=3)


@pytest.mark.load
def test_fifty_reviewers_and_three_kills(tmp_path: Path, database_url: str) -> None:
    simulate(tmp_path, database_url, samples=1_700, decisions=2_000, kills=3)


@pytest.mark.full
def test_fifty_reviewers_and_ten_kills(tmp_path: Path, database_url: str) -> None:
    simulate(tmp_path, database_url, samples=17_000, decisions=20_000, kills=10)

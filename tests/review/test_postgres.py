"""A review on PostgreSQL: leasing does not read the whole queue. The server of the tests ends with the tests."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, text

from maskwise.review.database import ReviewDatabase
from maskwise.review.queue import Reviewer, lease_items
from maskwise.review.review import Review
from tests.review.conftest import new_database
from tests.review.datasets import write_samples

SAMPLES = 3000
TUPLES_READ = text(
    "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'slots'"
)
OPEN_SERVER = """
import time
from tests.review.postgres import postgres_server
with postgres_server() as url:
    print(url, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("rebuilt", [False, True])
def test_leasing_reads_few_rows_of_a_new_queue(
    tmp_path: Path, postgres: str, rebuilt: bool
) -> None:
    dataset = write_samples(tmp_path / "data", SAMPLES)

    def count_rows(connection: Connection) -> int:
        # PostgreSQL may still count what this connection read in the transaction before.
        before = int(connection.execute(TUPLES_READ).scalar_one())
        assert (
            len(lease_items(connection, Reviewer("ada", "reviewer"), 3, seconds=60))
            == 3
        )
        return int(connection.execute(TUPLES_READ).scalar_one()) - before

    with closing(ReviewDatabase(new_database(postgres))) as database:
        review = Review(dataset, database)
        review.create()
        if rebuilt:
            review.rebuild()
        assert database.write(count_rows) < SAMPLES / 10


def test_the_server_of_the_tests_ends_with_a_killed_test(postgres: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OPEN_SERVER], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        with psycopg.connect(url) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        folder = Path(row[0])
        assert folder.is_dir()
        process.kill()
    for _ in range(300):
        if not folder.parent.exists():
            break
        time.sleep(0.1)
    assert not folder.parent.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)

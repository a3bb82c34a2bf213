"""A damaged review is named before anything is written, and rebuilt from its audit log."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app as command_line
from maskwise.review.database import DamagedReviewError, ReviewDatabase
from maskwise.review.integrity import find_damage
from maskwise.review.records import NewDecision
from maskwise.review.review import Review
from maskwise.store import Dataset
from tests.review.datasets import write_samples
from tests.server.review_client import Client, serving_review

PAGE = 4096


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of 200 samples, and its review with 60 decisions and a draft."""
    folder = tmp_path_factory.mktemp("reviewed")
    dataset = write_samples(folder / "data", 200)
    review = Review(dataset, ReviewDatabase(folder / "data.review.sqlite"))
    review.create()
    reviewer = review.find_reviewer(review.add_reviewer("ada"))
    assert reviewer is not None
    for item in range(60):
        review.queue(reviewer, 1)
        verdict = "accept" if item % 3 else "reject"
        review.decide(reviewer, decision(item, verdict=verdict))
    review.database.close()
    return folder


def decision(item: int, verdict: str = "accept", id: UUID | None = None) -> NewDecision:
    reason = "bad-mask" if verdict == "reject" else None
    note = "x" * 300
    return NewDecision(
        id=id or uuid4(),
        item=item,
        verdict=verdict,  # type: ignore[arg-type]
        reason=reason,
        note=note,
    )


@pytest.fixture
def folder(reviewed: Path, tmp_path: Path) -> Path:
    """A copy of the reviewed folder, to be damaged."""
    shutil.copytree(reviewed, tmp_path / "copy")
    return tmp_path / "copy"


def open_review(folder: Path) -> Review:
    dataset = Dataset.open(folder / "data")
    return Review(dataset, ReviewDatabase(folder / "data.review.sqlite"))


def change(folder: Path, statement: str, *values: Any) -> None:
    """Change the database behind the program's back."""
    connection = sqlite3.connect(folder / "data.review.sqlite")
    connection.execute("DROP TRIGGER events_no_update")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def damage_page(folder: Path, table: str) -> None:
    """Overwrite a leaf page of a table."""
    path = folder / "data.review.sqlite"
    connection = sqlite3.connect(path)
    query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'"
    try:
        pages = [row[0] for row in connection.execute(query, (table,))]
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no table dbstat")
    finally:
        connection.close()
    page = pages[len(pages) // 2]
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)


def start(folder: Path) -> str:
    """What `maskwise review start` says to a damaged database."""
    result = CliRunner().invoke(
        command_line, ["review", "start", str(folder / "data"), "--port", "0"]
    )
    assert isinstance(result.exception, DamagedReviewError), result.exception
    return str(result.exception)


def rebuild(folder: Path) -> str:
    result = CliRunner().invoke(
        command_line, ["review", "rebuild", str(folder / "data")]
    )
    assert result.exit_code == 0, result.exception
    return result.output


def test_an_intact_review_has_no_damage(folder: Path) -> None:
    review = open_review(folder)
    assert find_damage(review.database) == []
    assert review.rebuild() == (63, [])
    review.database.close()


@pytest.mark.parametrize("payload", ["[]", "5", "{", "null", '{"slot": "a"}'])
def test_a_damaged_event_is_named_and_left_out(folder: Path, payload: str) -> None:
    change(folder, "UPDATE events SET payload = ? WHERE seq = 20", payload)
    before = (folder / "data.review.sqlite").read_bytes()
    message = start(folder)
    assert "event 20 ('decided') of the audit log is damaged" in message
    assert "Nothing was changed" in message
    assert "maskwise review rebuild" in message
    assert (folder / "data.review.sqlite").read_bytes() == before
    said = rebuild(folder)
    assert "rebuilt from 62 events" in said
    assert "event 20" in said
    assert (folder / "data.review.sqlite.damaged").read_bytes() == before
    review = open_review(folder)
    assert find_damage(review.database) == []
    (ada,) = [one for one in review.stats().reviewers if one.name == "ada"]
    assert ada.decisions == 59
    review.database.close()


@pytest.mark.parametrize("table", ["decisions", "slots", "items", "events"])
def test_a_damaged_page_is_named_and_the_log_rebuilt(folder: Path, table: str) -> None:
    damage_page(folder, table)
    before = (folder / "data.review.sqlite").read_bytes()
    assert "is damaged: " in start(folder)
    assert (folder / "data.review.sqlite").read_bytes() == before
    said = rebuild(folder)
    assert "the damaged file is kept as" in said
    review = open_review(folder)
    assert find_damage(review.database) == []
    (ada,) = [one for one in review.stats().reviewers if one.name == "ada"]
    lost = said.count("cannot be read")
    assert ada.decisions == 60 - lost
    assert (lost > 0) == (table == "events")
    review.database.close()


def test_a_file_that_is_no_database_is_named_and_kept(folder: Path) -> None:
    path = folder / "data.review.sqlite"
    path.write_bytes(b"no database" * 1000)
    assert "file is not a database" in start(folder)
    result = CliRunner().invoke(
        command_line, ["review", "rebuild", str(folder / "data")]
    )
    assert "restore a backup" in str(result.exception)
    assert path.read_bytes() == b"no database" * 1000
    assert sorted(file.name for file in folder.iterdir()) == [
        "data",
        "data.review.sqlite",
    ]


def test_damaged_drafts_do_not_prevent_a_rebuild(folder: Path) -> None:
    connection = sqlite3.connect(folder / "data.review.sqlite")
    connection.execute("DROP TABLE drafts")
    connection.execute("CREATE TABLE drafts (item, reviewer, at, body)")
    connection.execute("INSERT INTO drafts VALUES (NULL, NULL, NULL, NULL)")
    connection.commit()
    connection.close()
    change(folder, "UPDATE events SET payload = '[]' WHERE seq = 20")
    assert "rebuilt from 62 events" in rebuild(folder)


def test_missing_rows_are_noticed(folder: Path) -> None:
    change(folder, "DELETE FROM decisions WHERE item < 3")
    message = "table decisions has 57 rows, and the audit log 60 events for it"
    assert message in start(folder)
    assert rebuild(folder).endswith("rebuilt from 63 events\n")
    review = open_review(folder)
    assert find_damage(review.database) == []
    review.database.close()


def test_a_server_whose_database_is_damaged_says_so_and_writes_nothing(
    folder: Path,
) -> None:
    review = open_review(folder)
    token = review.add_reviewer("ada")
    review.database.close()
    damage_page(folder, "decisions")
    before = (folder / "data.review.sqlite").read_bytes()
    with serving_review(review) as address:
        client = Client(address, token)
        status, said = client.call("GET", "/history?limit=500")
        assert (status, "damaged" in said["error"]) == (500, True), said
        body = {"id": str(uuid4()), "item": 70, "verdict": "accept"}
        status, said = client.call("POST", "/decisions", body)
        assert (status, "nothing is stored" in said["error"]) == (500, True), said
    assert (folder / "data.review.sqlite").read_bytes() == before


def test_a_repeated_decision_whose_event_is_damaged_is_an_error(folder: Path) -> None:
    review = open_review(folder)
    token = review.add_reviewer("ada")
    id = review.events(20, 1)[0].uuid
    review.database.close()
    change(folder, "UPDATE events SET payload = '[]' WHERE seq = 21")
    with serving_review(review) as address:
        body = {"id": id, "item": 18, "verdict": "accept"}
        status, said = Client(address, token).call("POST", "/decisions", body)
    assert (status, "damaged" in said["error"]) == (500, True), said

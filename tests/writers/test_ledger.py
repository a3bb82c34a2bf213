"""The ledger keeps what was sent and answered across runs, and forgets nothing paid for."""

import contextlib
import sqlite3
from pathlib import Path

import msgspec
import pytest

from maskwise.writers import Completion, CompletionRequest, Ledger
from maskwise.writers.request import parse_output

REQUEST = CompletionRequest(prompt_version="1", system="", text="hello", schema={})
ANSWER = Completion(
    status="ok", output={"text": "hi"}, input_tokens=10, output_tokens=3
)
REFUSAL = Completion(status="refused", reason="no", input_tokens=4)


def test_an_answer_is_there_after_the_ledger_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "build.sqlite"
    with Ledger(path) as ledger:
        ledger.record_sent({"a": REQUEST}, provider="p", model="m")
        assert ledger.completion("a") is None
        ledger.record_answered([("a", ANSWER, 0.25)])
    with Ledger(path) as ledger:
        assert ledger.completion("a") == ANSWER
        assert ledger.completion("b") is None
        assert ledger.cost == 0.25


def test_totals_count_answers_by_status(tmp_path: Path) -> None:
    with Ledger(tmp_path / "build.sqlite") as ledger:
        assert ledger.totals == ({}, 0, 0, 0.0)
        requests = dict.fromkeys("abc", REQUEST)
        ledger.record_sent(requests, provider="p", model="m")
        ledger.record_answered([("a", ANSWER, 0.5), ("b", REFUSAL, 0.125)])
        totals = ledger.totals
    assert totals == ({"ok": 1, "refused": 1}, 14, 3, 0.625)


def test_a_finished_batch_forgets_what_expired(tmp_path: Path) -> None:
    with Ledger(tmp_path / "build.sqlite") as ledger:
        requests = dict.fromkeys("ab", REQUEST)
        ledger.record_sent(requests, provider="p", model="m", batch="label")
        [batch] = ledger.open_batches("p", "m")
        assert (batch.label, batch.id) == ("label", None)
        assert ledger.open_batches("p", "another") == []
        ledger.record_batch("label", "id-1")
        assert ledger.open_batches("p", "m")[0].id == "id-1"
        ledger.record_answered([("a", ANSWER, 0.5)])
        ledger.finish_batch("label")
        assert ledger.open_batches("p", "m") == []
        assert ledger.batch_keys("label") == {"a"}
        assert ledger.completion("a") == ANSWER


def test_a_failed_change_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    def completions() -> object:
        yield "a", ANSWER, 0.5
        raise RuntimeError("the client broke")

    with Ledger(tmp_path / "build.sqlite") as ledger:
        ledger.record_sent({"a": REQUEST}, provider="p", model="m")
        with pytest.raises(RuntimeError):
            ledger.record_answered(completions())  # type: ignore[arg-type]
        assert ledger.completion("a") is None
        ledger.record_answered([("a", ANSWER, 0.5)])
        assert ledger.completion("a") == ANSWER


def test_equal_requests_have_one_key() -> None:
    again = CompletionRequest(prompt_version="1", system="", text="hello", schema={})
    later = CompletionRequest(prompt_version="2", system="", text="hello", schema={})
    assert REQUEST.key("m") == again.key("m")
    assert len({REQUEST.key("m"), REQUEST.key("n"), later.key("m")}) == 3


@pytest.mark.parametrize("text", ["[1]", "{", '"text"', ""])
def test_a_reply_that_is_no_object_is_invalid_and_still_costs(text: str) -> None:
    completion = parse_output(text, input_tokens=7, output_tokens=2)
    assert (completion.status, completion.output) == ("invalid", None)
    assert "not a JSON object" in str(completion.reason)
    assert (completion.input_tokens, completion.output_tokens) == (7, 2)


def test_only_png_and_jpeg_images_are_sent() -> None:
    png = CompletionRequest(
        prompt_version="1", system="", text="", schema={}, image=b"\x89PNG..."
    )
    assert png.image_type == "image/png"
    gif = CompletionRequest(
        prompt_version="1", system="", text="", schema={}, image=b"GIF89a"
    )
    with pytest.raises(ValueError, match="must be PNG or JPEG"):
        _ = gif.image_type


def test_a_ledger_of_an_older_version_keeps_its_answers(tmp_path: Path) -> None:
    """The first ledgers had one row per request and no reservations."""
    path = tmp_path / "build.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE calls (key TEXT PRIMARY KEY, state TEXT NOT NULL, provider TEXT NOT NULL, "
            "model TEXT NOT NULL, prompt_version TEXT NOT NULL, batch TEXT, completion TEXT, status TEXT, "
            "input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, "
            "cost REAL NOT NULL DEFAULT 0, sent REAL NOT NULL, answered REAL)"
        )
        answer = msgspec.json.encode(ANSWER).decode()
        row = (
            "a",
            "answered",
            "p",
            "m",
            "1",
            None,
            answer,
            "ok",
            10,
            3,
            0.25,
            1.0,
            2.0,
        )
        database.execute(f"INSERT INTO calls VALUES ({', '.join('?' * 13)})", row)
        database.commit()
    for _ in range(2):
        with Ledger(path) as ledger:
            assert ledger.completion("a") == ANSWER
            assert ledger.totals == ({"ok": 1}, 10, 3, 0.25)
            assert ledger.spending == (0.25, 0.0)


def test_an_answer_that_is_asked_for_again_keeps_the_cost_of_the_first(
    tmp_path: Path,
) -> None:
    with Ledger(tmp_path / "build.sqlite") as ledger:
        for completion in (REFUSAL, ANSWER):
            ledger.record_sent({"a": REQUEST}, provider="p", model="m")
            ledger.record_answered([("a", completion, 0.5)])
        assert ledger.completion("a") == ANSWER
        assert ledger.cost == 1.0


def test_reservations_count_until_the_answer_is_known(tmp_path: Path) -> None:
    def reserve(ledger: Ledger, key: str) -> bool:
        return ledger.record_sent(
            {key: REQUEST},
            provider="p",
            model="m",
            reserved={key: 0.4},
            budget=1.0,
        )

    path = tmp_path / "build.sqlite"
    with Ledger(path) as ledger:
        assert reserve(ledger, "a")
        assert reserve(ledger, "b")
        assert not reserve(ledger, "c"), "three times 0.4 is more than the budget"
        ledger.record_answered([("a", ANSWER, 0.1)])
    with Ledger(path) as again:
        assert again.spending == (0.1, 0.4)
        assert again.unanswered == (1, 0.4)
        assert reserve(again, "c")
        again.record_failed("c", REFUSAL, paid=False)
        again.record_failed("b", REFUSAL, paid=True)
        assert again.spending == (0.1, 0.4)
        assert again.completion("b") is None, "only answers are taken again"

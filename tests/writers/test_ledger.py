"""The ledger keeps what was sent and answered across runs, and forgets nothing paid for."""

from pathlib import Path

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

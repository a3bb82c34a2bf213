"""The page for judging predictions in a real browser: two beside each other, and one with a scale."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.review.judgments import Judgment
from maskwise.review.review import Review
from tests.review.datasets import write_samples
from tests.review.judging import open_judgments, shown_runs, write_runs
from tests.server.browser import PHONE, open_browser, open_page, wait_until
from tests.server.review_client import serving_review

pytestmark = pytest.mark.browser

OpenJudgments = Callable[..., Review]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs on six questions."""
    folder = tmp_path_factory.mktemp("judged")
    data = write_samples(folder / "data", 6)
    return write_runs(folder, data, {"zebra": 0, "yak": 3})


@pytest.fixture
def begin(runs: list[Path], tmp_path: Path) -> OpenJudgments:
    def open_review(mode: Any = "compare") -> Review:
        return open_judgments(runs, tmp_path / f"{mode}.sqlite", mode)

    return open_review


def enter(page: Any, address: str, token: str) -> None:
    page.goto(f"{address}/review#token={token}")
    page.wait_for_url("**/review/judge")
    wait_until(page, lambda: bool(shown(page)))


def shown(page: Any) -> str:
    item: str | None = page.get_attribute("#candidates", "data-item")
    return item or ""


def press(page: Any, *keys: str) -> None:
    """Press keys, and wait for the next item."""
    before = shown(page)
    for key in keys:
        page.keyboard.press(key)
    wait_until(page, lambda: shown(page) not in ("", before))


def wait_saved(page: Any) -> None:
    wait_until(page, lambda: page.inner_text("#status") == "All saved")


def judgments(review: Review) -> list[Judgment]:
    return review.judgments()


def test_predictions_are_compared_by_keyboard_and_their_runs_stay_hidden(
    browser: Any, begin: OpenJudgments
) -> None:
    review = begin()
    token = review.add_reviewer("ada")
    replies: list[str] = []

    def keep(response: Any) -> None:
        if "/review/api/" in response.url and "/images/" not in response.url:
            replies.append(response.text())

    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        page.on("response", keep)
        assert page.locator("#candidates canvas").count() == 2
        assert "What can I drink from?" in page.inner_text(".question-text")
        assert "It is the <b>cup</b>" in page.inner_text(".words >> nth=1")
        press(page, "1")
        press(page, "ArrowRight")
        press(page, "e", "t")
        press(page, "b")
        press(page, "s")
        wait_saved(page)
        assert page.inner_text("#progress").startswith("4 decided")
        # The browser keeps the items that the page holds.
        kept = page.evaluate("() => JSON.stringify(Object.entries(localStorage))")
        text = page.content()
        made = judgments(review)
    assert [judgment.verdict for judgment in made] == ["left", "right", "tie", "bad"]
    assert made[2].criteria == ["boundary"]
    assert all(judgment.seconds for judgment in made)
    assert len(replies) >= 5
    assert "candidates" in kept
    for name in ("zebra", "yak", "judged0"):
        assert name not in "".join([text, kept, *replies])


def test_an_undone_comparison_comes_back_with_its_reasons(
    browser: Any, begin: OpenJudgments
) -> None:
    review = begin()
    token = review.add_reviewer("ada")
    with (
        serving_review(review) as address,
        open_page(browser, PHONE, has_touch=True) as page,
    ):
        enter(page, address, token)
        first = shown(page)
        page.tap("#criteria input[value=correct]")
        page.fill("#note", "the words are right")
        page.tap("#left")
        wait_until(page, lambda: shown(page) not in ("", first))
        wait_saved(page)
        assert judgments(review)[0].note == "the words are right"
        page.tap("#undo")
        wait_until(page, lambda: shown(page) == first)
        assert page.input_value("#note") == "the words are right"
        assert page.is_checked("#criteria input[value=correct]")
        assert judgments(review) == []
        page.tap("#right")
        wait_until(page, lambda: shown(page) != first)
        wait_saved(page)
        assert judgments(review)[0].verdict == "right"


def test_a_prediction_is_rated_by_digits_and_survives_a_reload(
    browser: Any, begin: OpenJudgments
) -> None:
    review = begin("rate")
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        assert page.locator("#candidates canvas").count() == 1
        page.keyboard.press("Enter")
        assert "Nothing is rated yet" in page.inner_text("#message")
        for key in ("5", "n", "2", "ArrowDown", "4"):
            page.keyboard.press(key)
        wait_saved(page)
        page.evaluate("() => localStorage.clear()")
        page.reload()
        wait_until(page, lambda: bool(shown(page)))
        pressed = page.locator(".steps [aria-pressed=true]")
        assert pressed.all_inner_texts() == ["5\nright", "2\npoor", "4\ngood"]
        item = int(shown(page))
        press(page, "Enter")
        wait_saved(page)
        (judgment,) = judgments(review)
        left, _ = shown_runs(review, item)
    assert judgment.ratings == {"target": 5, "boundary": 2, "correct": 4}
    assert (judgment.left, judgment.right) == (left, None)


def test_the_owner_sees_the_runs_by_name_and_judges_nothing(
    browser: Any, begin: OpenJudgments
) -> None:
    review = begin()
    tokens = {
        "ada": review.add_reviewer("ada"),
        "olga": review.add_reviewer("olga", "owner"),
    }
    with serving_review(review) as address:
        with open_page(browser) as page:
            enter(page, address, tokens["ada"])
            press(page, "1")
            press(page, "1")
            wait_saved(page)
        with open_page(browser) as page:
            page.goto(f"{address}/review#token={tokens['olga']}")
            page.wait_for_selector("table")
            text = page.inner_text("main")
            assert "zebra over yak" in text
            assert "Which metric agrees with people?" in text
            page.goto(f"{address}/review")
            page.wait_for_selector(".done")
            assert "Open the overview" in page.inner_text(".done")


def test_all_is_done_when_the_last_judgment_is_saved(
    browser: Any, begin: OpenJudgments
) -> None:
    review = begin()
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        for _ in range(5):
            press(page, "1")
        page.keyboard.press("1")
        wait_until(page, lambda: "All done" in page.inner_text("#sample"))
        wait_saved(page)
        assert page.locator("#decide button:enabled").count() == 1
        assert len(judgments(review)) == 6

"""The browse page in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.harness.evaluate import evaluate
from maskwise.server.browse import open_browsed
from tests.server.browser import open_browser, open_page, wait_until
from tests.server.fake import Whole
from tests.server.test_server import serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("runs") / "noisy"
    evaluate("oracle", "world", folder, options={"noise": 4}, limit=12)
    with serving(Whole(), browsed=open_browsed([Path("world")], [folder])) as where:
        yield where


def test_samples_are_filtered_sorted_and_enlarged_beside_predictions(
    browser: Any, address: str
) -> None:
    with open_page(browser) as page:
        page.goto(f"{address}/browse")
        page.wait_for_selector("#samples .card")
        assert page.inner_text("#shown") == "1–24 of 240 samples"
        page.select_option("#sort", "-score")
        wait_until(
            page, lambda: page.locator(".score").first.inner_text().startswith("gIoU")
        )
        page.fill("#text", "guitar")
        wait_until(page, lambda: "of 240" not in page.inner_text("#shown"))
        questions = page.locator(".card h3").all_inner_texts()
        assert questions
        page.click("#samples li:first-child .card")
        page.wait_for_selector("dialog[open] .side")
        assert page.locator("dialog .side").count() == 2
        assert page.inner_text("dialog h2") == questions[0]
        page.keyboard.press("j")
        wait_until(page, lambda: page.inner_text("dialog h2") != questions[0])
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0


def test_pages_of_samples_follow_each_other(browser: Any, address: str) -> None:
    with open_page(browser) as page:
        page.goto(f"{address}/browse")
        page.wait_for_selector("#samples .card")
        first = page.locator(".card h3").first.inner_text()
        page.click("#next")
        wait_until(page, lambda: page.inner_text("#shown").startswith("25–48"))
        assert page.locator(".card h3").first.inner_text() != first


def test_without_datasets_the_page_says_how_to_open_one(browser: Any) -> None:
    with serving(Whole()) as address, open_page(browser) as page:
        page.goto(f"{address}/browse")
        page.wait_for_selector("#nothing:not([hidden])")
        assert "maskwise serve world" in page.inner_text("#nothing")

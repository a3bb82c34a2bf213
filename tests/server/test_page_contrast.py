"""Readability of all pages: contrast of text, and names of controls for screen readers, in light and dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.harness.evaluate import evaluate
from maskwise.review.database import ReviewDatabase
from maskwise.review.project import ProjectOptions
from maskwise.review.review import Review
from maskwise.server.browse import open_browsed
from maskwise.store import Dataset
from maskwise.world import bundled
from tests.review.datasets import write_samples
from tests.review.judging import open_judgments, write_runs
from tests.server.browser import DESKTOP, PHONE, open_browser, open_page, wait_until
from tests.server.fake import Whole
from tests.server.review_client import serving_review
from tests.server.test_server import serving

pytestmark = pytest.mark.browser

FIND_FAINT_TEXT = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const blend = (colors) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const [r, g, b] = rgb.map((v) => linear(v / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const faint = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
        if (element.closest(":disabled, .quiet, option, figcaption") || element.querySelector("option")) continue;
        const behind = [];
        for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
        const ground = blend(["#fff", ...behind]);
        const text = blend(["#fff", ...behind, getComputedStyle(element).color]);
        const [high, low] = [light(ground), light(text)].sort((a, b) => b - a);
        const ratio = (high + 0.05) / (low + 0.05);
        const large = parseFloat(getComputedStyle(element).fontSize) >= 24;
        const name = `${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}`;
        if (ratio < (large ? 3 : 4.5)) faint.push(`${name}: ${ratio}`);
    }
    return faint;
}"""
FIND_UNNAMED = """() => [...document.querySelectorAll("button, input, select, textarea, canvas")].filter((one) => {
    const label = one.labels?.length ? one.labels[0].textContent : "";
    const name = one.getAttribute("aria-label") || one.textContent.trim() || label.trim();
    return !one.getAttribute("aria-hidden") && !name;
}).map((one) => `${one.tagName} ${one.id} ${one.className}`)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("runs") / "noisy"
    evaluate("oracle", "world", folder, options={"noise": 4}, limit=4)
    browsed = open_browsed([Path("world")], [folder])
    with serving(Whole(), browsed=browsed, examples=Dataset.open(bundled())) as where:
        yield where


def check(page: Any) -> None:
    assert page.evaluate(FIND_FAINT_TEXT) == []
    assert page.evaluate(FIND_UNNAMED) == []


def check_phone(page: Any) -> None:
    """Nothing is wider than a phone."""
    page.set_viewport_size(PHONE)
    width = page.evaluate("() => document.documentElement.scrollWidth")
    page.set_viewport_size(DESKTOP)
    assert width <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_ask_and_browse_pages_are_readable(
    browser: Any, address: str, scheme: str
) -> None:
    with open_page(browser, color_scheme=scheme) as page:
        page.goto(address)
        page.wait_for_selector("#examples button")
        check(page)
        check_phone(page)
        page.click("#examples button")
        page.fill("#question", "What is it?")
        page.press("#question", "Enter")
        page.wait_for_selector(".entry.active")
        check(page)
        check_phone(page)
        page.goto(f"{address}/browse")
        page.wait_for_selector(".card")
        check(page)
        check_phone(page)
        page.click(".card")
        page.wait_for_selector("dialog[open] .side")
        check(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_review_and_owner_pages_are_readable(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    review = Review(Dataset.open(bundled()), ReviewDatabase(tmp_path / "review.sqlite"))
    review.create(ProjectOptions())
    token = review.add_reviewer("ada")
    owner = review.add_reviewer("olga", "owner")
    with (
        serving_review(review) as address,
        open_page(browser, color_scheme=scheme) as page,
    ):
        page.goto(f"{address}/review#token={token}")
        wait_until(page, lambda: bool(page.get_attribute("#canvas", "data-item")))
        check(page)
        check_phone(page)
        page.keyboard.press("t")
        page.keyboard.press("b")
        check(page)
        page.keyboard.press("r")
        page.wait_for_selector("dialog[open]")
        check(page)
        page.keyboard.press("1")
        wait_until(page, lambda: page.inner_text("#status") == "All saved")
        page.goto(f"{address}/review/owner#token={owner}")
        page.wait_for_selector("table")
        check(page)
        check_phone(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("mode", ["compare", "rate"])
def test_the_pages_for_judging_are_readable(
    browser: Any, tmp_path: Path, scheme: str, mode: Any
) -> None:
    runs = write_runs(
        tmp_path, write_samples(tmp_path / "data", 2), {"zebra": 0, "yak": 3}
    )
    review = open_judgments(runs, tmp_path / "review.sqlite", mode)
    token = review.add_reviewer("ada")
    owner = review.add_reviewer("olga", "owner")
    with (
        serving_review(review) as address,
        open_page(browser, color_scheme=scheme) as page,
    ):
        page.goto(f"{address}/review#token={token}")
        page.wait_for_selector("#candidates[data-item]:not([data-item=''])")
        check(page)
        check_phone(page)
        keys = ("e", "1") if mode == "compare" else ("5", "Enter")
        for key in keys:
            page.keyboard.press(key)
            check(page)
        wait_until(page, lambda: page.inner_text("#status") == "All saved")
        page.goto(f"{address}/review/owner#token={owner}")
        page.wait_for_selector("table")
        check(page)
        check_phone(page)

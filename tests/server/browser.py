"""A real browser for the tests of the pages: Chromium, driven by Playwright."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """A browser; skips the test, saying why, where there is none."""
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        pytest.skip(
            "needs chromium, which is not installed here: make test-web installs it"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: make test-web installs it"
    )
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=program, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def open_page(
    browser: Any, size: dict[str, int] = DESKTOP, **options: Any
) -> Iterator[Any]:
    """A page in a profile of its own. Errors of its scripts, and what the policy blocks, fail the test."""
    problems: list[str] = []

    def note(message: Any) -> None:
        expected = "Failed to load resource" in message.text
        if message.type == "error" and not expected:
            problems.append(message.text)

    context = browser.new_context(viewport=size, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", note)
    page.on("pageerror", lambda error: problems.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert problems == []


def wait_until(page: Any, condition: Callable[[], bool]) -> None:
    """Wait for a condition. Playwright's own wait evaluates strings, which the policy of the pages forbids."""
    for _ in range(600):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError("waited 60 seconds in vain")

"""The review page in a real browser, on the real routes and a SQLite database."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from PIL import Image

from maskwise.masks import Mask
from maskwise.review.database import ReviewDatabase
from maskwise.review.export import export_review
from maskwise.review.project import ProjectOptions
from maskwise.review.refine import Click
from maskwise.review.review import Review
from maskwise.store import Dataset, DatasetWriter
from maskwise.world import bundled
from tests.server.browser import DESKTOP, PHONE, open_browser, open_page, wait_until
from tests.server.review_client import serving_review

pytestmark = pytest.mark.browser

OpenReview = Callable[..., Review]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def open_review(tmp_path: Path) -> OpenReview:
    """Opens the review of the bundled benchmark, as often as wanted, on one database."""

    def open_again(data: Dataset | None = None, double_share: float = 0.0) -> Review:
        review = Review(
            data or Dataset.open(bundled()), ReviewDatabase(tmp_path / "review.sqlite")
        )
        review.create(ProjectOptions(double_share=double_share))
        return review

    return open_again


def enter(page: Any, address: str, token: str) -> None:
    page.goto(f"{address}/review#token={token}")
    wait_until(page, lambda: bool(page.get_attribute("#canvas", "data-item")))


def shown(page: Any) -> str:
    found: str | None = page.get_attribute("#canvas", "data-item")
    return found or ""


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def decide(page: Any, *keys: str) -> None:
    """Press keys that decide, and wait for the next sample."""
    before = shown(page)
    press(page, *keys)
    wait_until(page, lambda: shown(page) not in ("", before))


def tap(page: Any, *buttons: str) -> None:
    """Tap buttons that decide, and wait for the next sample."""
    before = shown(page)
    for button in buttons:
        page.tap(button)
    wait_until(page, lambda: shown(page) not in ("", before))


def wait_saved(page: Any) -> None:
    wait_until(page, lambda: page.inner_text("#status") == "All saved")


def verdicts(review: Review, name: str) -> list[tuple[int, str]]:
    """Item and verdict of the decisions of a reviewer, oldest first, without undone ones."""
    token = review.add_reviewer(
        name
    )  # a new token: the old one does not matter any more
    reviewer = review.find_reviewer(token)
    assert reviewer is not None
    rows = review.history(reviewer, before=None, limit=500)
    return [(row.item, row.verdict) for row in reversed(rows) if not row.undone]


def test_ten_samples_are_reviewed_by_keyboard_alone(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        assert "token" not in page.url
        seen = [shown(page)]
        for keys in ("a", "a", "r4", "a", "s", "a", "rd", "a", "a"):
            decide(page, *keys)
            seen.append(shown(page))
        press(page, "q")
        page.keyboard.type("Which one is it, exactly?")
        press(page, "Enter", "t")
        decide(page, "f")
        wait_saved(page)
        assert page.inner_text("#progress").startswith("9 decided")
        durations = page.evaluate(
            "() => performance.getEntriesByName('next-sample').map((one) => one.duration)"
        )
        assert len(set(seen)) == 10
        assert len(durations) >= 10
        found = verdicts(review, "ada")
    expected = [
        "accept",
        "accept",
        "reject",
        "accept",
        "skip",
        "accept",
        "reject",
        "accept",
        "accept",
        "fix",
    ]
    assert [verdict for _, verdict in found] == expected
    assert [str(item) for item, _ in found] == seen


def test_a_slow_server_is_waited_for_and_no_decision_is_counted_twice(
    browser: Any, open_review: OpenReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    decide_at_once = Review.decide
    answering = threading.Event()

    def decide_later(self: Review, *arguments: Any) -> Any:
        answering.wait(60)
        return decide_at_once(self, *arguments)

    monkeypatch.setattr(Review, "decide", decide_later)
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        press(page, "a", "a", "a", "s", "r", "d")
        wait_until(page, lambda: "are being saved" in page.inner_text("#sample"))
        assert page.inner_text("#progress").startswith("4 decided")
        assert page.is_hidden("#message")  # the key of the reason does nothing else
        answering.set()
        wait_until(page, lambda: shown(page) == "5")
        wait_saved(page)
        assert page.inner_text("#progress").startswith("4 decided")
        press(page, "u")
        wait_until(page, lambda: shown(page) == "4")
        assert page.inner_text("#progress").startswith("3 decided")
        assert len(verdicts(review, "ada")) == 4


def test_an_edited_mask_is_in_the_export(
    browser: Any, open_review: OpenReview, tmp_path: Path
) -> None:
    review = open_review()
    data = Dataset.open(bundled())
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        item = int(shown(page))
        box = page.locator("#canvas").bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        kind = "amodal" if data[item].mask_type == "amodal" else "visible"
        press(page, "b", "]", "]")
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + 60, middle[1] + 20, steps=5)
        page.mouse.up()
        page.wait_for_selector("#fix.ready")
        wait_saved(page)
        press(page, "d")
        decide(page, "f")
        wait_saved(page)
        exported = export_review(review, tmp_path / "exported").out
    before = data[item].targets[0]
    (sample,) = [
        sample for sample in Dataset.open(exported) if sample.id == data[item].id
    ]
    painted = sample.targets[0].mask(kind)
    assert painted is not None
    assert painted != before.mask(kind)
    assert painted.to_dense()[112, 112]
    assert sample.targets[0].visible is not None
    assert sample.targets[0].amodal is not None
    assert sample.targets[0].visible.inside(sample.targets[0].amodal)


def test_two_reviewers_in_parallel_never_get_the_same_sample(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    tokens = [review.add_reviewer(name) for name in ("ada", "bob")]
    with (
        serving_review(review) as address,
        open_page(browser) as ada,
        open_page(browser, PHONE, has_touch=True) as bob,
    ):
        for page, token in zip((ada, bob), tokens):
            enter(page, address, token)
        for _ in range(5):
            decide(ada, "a")
            tap(bob, "#accept")
        tap(bob, "#reject", "dialog [data-reason=bad-mask]")
        for page in (ada, bob):
            wait_saved(page)
        first = verdicts(review, "ada")
        second = verdicts(review, "bob")
    assert (len(first), len(second)) == (5, 6)
    assert second[-1][1] == "reject"
    assert not {item for item, _ in first} & {item for item, _ in second}


def test_decisions_made_offline_survive_a_reload_and_arrive_once(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with open_page(browser) as page:
        with serving_review(review) as address:
            port = int(address.rpartition(":")[2])
            enter(page, address, token)
            page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
            page.reload()  # the worker of the page is in charge from here on
            wait_until(page, lambda: bool(shown(page)))
            decide(page, "a")
            wait_saved(page)
        decide(page, "a")
        decide(page, "r", "1")
        wait_until(page, lambda: "2 decisions kept here" in page.inner_text("#status"))
        page.reload()
        wait_until(page, lambda: bool(shown(page)))
        decide(page, "a")
        review = open_review()
        with serving_review(review, port=port):
            wait_saved(page)
            found = verdicts(review, "ada")
    assert [verdict for _, verdict in found] == ["accept", "accept", "reject", "accept"]
    assert len({item for item, _ in found}) == 4


def test_undo_goes_back_as_far_as_wanted(browser: Any, open_review: OpenReview) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        seen = [shown(page)]
        for _ in range(3):
            decide(page, "a")
            seen.append(shown(page))
        wait_saved(page)
        for item in reversed(seen[:3]):
            press(page, "u")
            wait_until(page, lambda: shown(page) == item)  # noqa: B023
        wait_saved(page)
        assert verdicts(review, "ada") == []


def test_edits_survive_a_reload_and_can_be_taken_back(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        question = page.inner_text(".question-text")
        item = shown(page)
        press(page, "q", "Control+a")
        page.keyboard.type("Something <b>else</b>?")
        press(page, "Enter")
        wait_saved(page)
        page.evaluate("() => localStorage.clear()")
        page.reload()
        wait_until(page, lambda: shown(page) == item)
        assert page.inner_text(".question-text") == "Something <b>else</b>?"
        press(page, "a")
        assert "F saves the fix" in page.inner_text("#message")
        press(page, "Control+z")
        assert page.inner_text(".question-text") == question
        decide(page, "a")


def test_visible_outside_amodal_is_shown_and_repaired_with_one_key(
    browser: Any, open_review: OpenReview, tmp_path: Path
) -> None:
    data = write_broken(tmp_path / "broken")
    review = open_review(data)
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        assert "px of" in page.inner_text(".problem")
        press(page, "d")
        assert page.locator(".problem").count() == 0
        decide(page, "f")
        wait_saved(page)
        assert verdicts(review, "ada")[0][1] == "fix"


def write_broken(path: Path) -> Dataset:
    """Two samples; the visible mask of each target has pixels outside its amodal mask."""
    data = Dataset.open(bundled())
    with DatasetWriter(path, name="broken") as writer:
        for info, samples in list(data.groups())[:2]:
            target = samples[0].targets[0]
            assert target.visible is not None
            dense = target.visible.to_dense().copy()
            dense[:9, :9] = True
            broken = structs.replace(target, visible=Mask.from_dense(dense))
            writer.add_image(
                info,
                (broken,),
                data=data.images.table["data"][data.images.row[info.id]].as_py(),
            )
            writer.add_sample(
                structs.replace(samples[0], targets=(broken,), answer=None)
            )
    return Dataset.open(path)


class SquareRefiner:
    """Adds a square around each positive click and removes one around each other."""

    def refine(
        self, image: Image.Image, mask: Mask | None, points: Sequence[Click]
    ) -> Mask:
        dense = (
            np.zeros((image.height, image.width), np.bool_)
            if mask is None
            else mask.to_dense().copy()
        )
        for point in points:
            x, y = int(point.x), int(point.y)
            rows = slice(max(0, y - 5), y + 6)
            columns = slice(max(0, x - 5), x + 6)
            dense[rows, columns] = point.positive
        return Mask.from_dense(dense)


def test_a_click_refines_the_mask_where_a_model_is_installed(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with (
        serving_review(review, refiner=SquareRefiner()) as address,
        open_page(browser) as page,
    ):
        enter(page, address, token)
        press(page, "c")
        box = page.locator("#canvas").bounding_box()
        with page.expect_response("**/refine") as response:
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        mask = Mask.from_rle(response.value.json()["mask"])
        assert mask.to_dense()[112, 112]
        page.wait_for_selector("#fix.ready")


def test_click_to_refine_is_disabled_where_no_model_is_installed(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        assert page.is_disabled("#tools [data-tool=refine]")
        assert "promptable model" in page.get_attribute(
            "#tools [data-tool=refine]", "title"
        )


def test_masks_are_painted_by_keyboard_alone(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    data = Dataset.open(bundled())
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        item = int(shown(page))
        press(
            page,
            "p",
            "ArrowRight",
            " ",
            *["Shift+ArrowRight"] * 3,
            " ",
            *["Shift+ArrowDown"] * 3,
            " ",
            "Enter",
        )
        page.wait_for_selector("#fix.ready")
        wait_saved(page)
        reviewer = review.find_reviewer(token)
        assert reviewer is not None
        draft = review.item(reviewer, item).draft
    assert draft is not None
    assert draft.edit is not None
    assert draft.edit.targets is not None
    kind = "amodal" if data[item].mask_type == "amodal" else "visible"
    painted = getattr(draft.edit.targets[0], kind)
    before = data[item].targets[0].mask(kind)
    assert before is not None
    triangle = painted - before
    assert triangle.area > 300
    assert painted.to_dense()[120, 140]


def test_the_help_lists_the_keys_and_screen_readers_hear_the_question(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review()
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        press(page, "?")
        text = page.inner_text("dialog.help")
        assert "Accept" in text
        assert "Larger brush" in text
        press(page, "Escape")
        assert "Question:" in page.inner_text("#announcer")


def test_a_question_is_added_checked_by_another_and_exported(
    browser: Any, open_review: OpenReview, tmp_path: Path
) -> None:
    review = open_review()
    data = Dataset.open(bundled())
    token = review.add_reviewer("ada")
    with serving_review(review) as address, open_page(browser) as page:
        enter(page, address, token)
        item = shown(page)
        question = page.inner_text(".question-text")
        press(page, "n")
        page.keyboard.type("Which <b>thing</b> is hidden?")
        press(page, "Enter", "a")
        assert "F saves it" in page.inner_text("#message")
        page.reload()  # what was begun is kept
        wait_until(page, lambda: shown(page) == item)
        press(page, "n", "Enter")
        page.select_option(".add select", index=1)
        page.click("text=New region")
        page.keyboard.type("something")
        press(page, "Enter", "b")
        box = page.locator("#canvas").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        press(page, "f")
        wait_until(page, lambda: "Added." in page.inner_text("#message"))
        assert page.inner_text(".question-text") == question
        assert review.stats().progress.added == 1
        press(page, "u")
        wait_until(page, lambda: "taken back" in page.inner_text("#message"))
        assert review.stats().progress.withdrawn == 1
        press(page, "n")
        page.keyboard.type("Is anything else here?")
        press(page, "Enter")
        page.click("#save-addition")
        wait_until(page, lambda: "Added." in page.inner_text("#message"))
        decide(page, "a")
        wait_saved(page)
        exported = export_review(review, tmp_path / "out", unchecked=True).out
        first = review.events(0, 500)
    samples = list(Dataset.open(exported))
    assert [sample.question for sample in samples if "added_by" in sample.tags] == [
        "Is anything else here?"
    ]
    assert samples[0].id == data[int(item)].id
    added = [event for event in first if event.kind == "sample_added"]
    assert b"Which <b>thing</b> is hidden?" in added[0].payload.encode()
    assert '"name":"something"' in added[0].payload


def test_the_owner_sees_progress_and_reasons_and_invites_reviewers(
    browser: Any, open_review: OpenReview
) -> None:
    review = open_review(double_share=0.5)
    tokens = {
        name: review.add_reviewer(name, role)
        for name, role in (("ada", "reviewer"), ("olga", "owner"))
    }  # type: ignore[arg-type]
    with serving_review(review) as address:
        with open_page(browser) as page:
            enter(page, address, tokens["ada"])
            decide(page, "a")
            decide(page, "r", "1")
            wait_saved(page)
        with open_page(browser, DESKTOP) as page:
            page.goto(f"{address}/review#token={tokens['olga']}")
            page.wait_for_selector("table")
            assert page.url == f"{address}/review/owner"
            assert "The masks show another object" in page.inner_text("main")
            assert "…" not in page.inner_text("main")
            page.fill("#invite-name", "cy")
            page.click("form.invite button")
            page.wait_for_selector(".link")
            link = page.inner_text(".link code")
        with open_page(browser) as page:
            page.goto(link)
            wait_until(page, lambda: page.inner_text("#reviewer") == "cy")


def test_without_a_token_the_page_asks_for_the_personal_link(
    browser: Any, open_review: OpenReview
) -> None:
    with serving_review(open_review()) as address, open_page(browser) as page:
        page.goto(f"{address}/review")
        page.wait_for_selector(".done")
        assert "Open your personal link" in page.inner_text(".done")
        assert page.locator("#decide button:enabled").count() == 0

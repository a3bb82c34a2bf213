"""The ask page in a real browser."""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.harness.registry import make_predictor
from maskwise.masks import Mask
from maskwise.schema import Answer, Phrase, PredictedRegion, Prediction
from maskwise.store import Dataset
from maskwise.world import bundled
from tests.server.browser import DESKTOP, PHONE, open_browser, open_page
from tests.server.fake import InThisProcess
from tests.server.test_server import serving

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='changed'\"> 🫖 cup"


class Hostile:
    """Answers with markup; a character outside the basic plane stands before the phrase."""

    name = "hostile"

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        whole = np.zeros((image.height, image.width), np.bool_)
        whole[2:40, 2:40] = True
        region = PredictedRegion(visible=Mask.from_dense(whole), name="<b>cup</b>")
        phrase = Phrase(start=len(HOSTILE) - 3, stop=len(HOSTILE), regions=(0,))
        return [
            Prediction(
                answer=Answer(text=HOSTILE, phrases=(phrase,)), regions=(region,)
            )
        ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    model = InThisProcess(make_predictor("tiny"), 10_000_000)
    with serving(model, examples=Dataset.open(bundled())) as where:
        yield where


def ask(page: Any, question: str) -> None:
    before = page.locator(".entry").count()
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_selector(f".entry:nth-child({before + 1}).active")


def open_example(page: Any, address: str, number: int = 1) -> None:
    page.goto(address)
    page.click(f"#examples li:nth-child({number}) button")
    page.wait_for_selector("#viewer:not([hidden])")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_question_and_a_follow_up_about_a_sample_image(
    browser: Any, address: str, size: dict[str, int]
) -> None:
    with open_page(browser, size) as page:
        open_example(page, address)
        ask(page, "the red apple")
        assert page.locator(".entry.active mark").count() == 1
        assert "Visible ·" in page.inner_text(
            ".entry.active .types [aria-pressed=true]"
        )
        ask(page, "Show the whole green bowl, hidden part included.")
        active = page.inner_text(".entry.active")
        assert "image encoding reused" in active
        assert "% occluded" in active
        assert "Amodal ·" in page.inner_text(".entry.active .types [aria-pressed=true]")
        page.click(".entry.active .types [data-kind=visible]")
        assert not page.is_checked("#layers input[value=amodal]")


def test_a_follow_up_refers_to_earlier_questions_about_the_same_image(
    browser: Any, address: str
) -> None:
    def turns_of(page: Any, question: str) -> tuple[list[str], dict[str, Any]]:
        with page.expect_response("**/v1/ask") as response:
            ask(page, question)
        sent = json.loads(response.value.request.post_data)["turns"]
        return [turn["question"] for turn in sent], response.value.json()["answer"]

    with open_page(browser) as page:
        open_example(page, address)
        earlier, apple = turns_of(page, "the red apple")
        assert earlier == []
        earlier, whole = turns_of(page, "Now its complete shape.")
        assert earlier == ["the red apple"]
        assert whole["prediction"]["mask_type"] == "amodal"
        names = [
            answer["prediction"]["regions"][0]["name"] for answer in (apple, whole)
        ]
        assert names[0] == names[1]
        assert "Amodal ·" in page.inner_text(".entry.active .types [aria-pressed=true]")
        earlier, bowl = turns_of(page, "And the green bowl?")
        assert earlier == ["the red apple", "Now its complete shape."]
        assert "bowl" in bowl["prediction"]["answer"]["text"]
        page.click("#other-image")
        page.click("#examples li:nth-child(2) button")
        page.wait_for_selector("#viewer:not([hidden])")
        earlier, _ = turns_of(page, "the largest thing")
        assert earlier == []


def test_masks_are_drawn_and_can_be_hidden(browser: Any, address: str) -> None:
    def pixels(page: Any) -> bytes:
        page.wait_for_timeout(200)
        found: bytes = page.locator("#canvas").screenshot()
        return found

    with open_page(browser) as page:
        open_example(page, address)
        plain = pixels(page)
        ask(page, "the red apple")
        drawn = pixels(page)
        page.mouse.move(5, 5)
        page.uncheck(".entry.active .masks input")
        assert pixels(page) == plain != drawn


def test_downloads_contain_the_masks_of_the_answer(
    browser: Any, address: str, tmp_path: Path
) -> None:
    with open_page(browser) as page:
        open_example(page, address)
        with page.expect_response("**/v1/ask") as response:
            ask(page, "the red apple")
        region = response.value.json()["answer"]["prediction"]["regions"][0]
        files = {}
        for name in ("PNG", "COCO JSON", "RLE"):
            with page.expect_download() as download:
                page.get_by_role("button", name=name, exact=True).click()
            files[name] = Path(download.value.path()).read_bytes()
    assert json.loads(files["RLE"])["regions"][0]["amodal"] == region["amodal"]
    annotation = json.loads(files["COCO JSON"])["annotations"][0]
    visible = Mask.from_rle(region["visible"])
    amodal = Mask.from_rle(region["amodal"])
    assert Mask.from_rle(annotation["segmentation"]) == amodal
    assert Mask.from_rle(annotation["invisible_mask"]) == amodal - visible
    assert (annotation["area"], tuple(annotation["bbox"])) == (amodal.area, amodal.box)
    assert Image.open(io.BytesIO(files["PNG"])).size == (1120, 1120)


def test_an_uploaded_image_is_asked_about_and_a_broken_one_is_explained(
    browser: Any, address: str, tmp_path: Path
) -> None:
    Image.new("RGB", (300, 200), "white").save(tmp_path / "white.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    with open_page(browser) as page:
        page.goto(address)
        page.set_input_files("#file", tmp_path / "broken.png")
        page.wait_for_selector("#warning:not([hidden])")
        assert "not an image" in page.inner_text("#warning")
        page.set_input_files("#file", tmp_path / "white.png")
        page.wait_for_selector("#viewer:not([hidden])")
        assert page.inner_text("#image-size") == "300 × 200"
        ask(page, "the cup")
        assert "The model warns" in page.inner_text("#warning")


def test_text_of_a_model_is_never_markup(browser: Any) -> None:
    with (
        serving(Hostile(), examples=Dataset.open(bundled())) as address,
        open_page(browser) as page,
    ):
        open_example(page, address)
        ask(page, "<script>document.title='changed'</script>")
        assert page.inner_text(".entry.active .said") == HOSTILE
        assert page.inner_text(".entry.active mark") == "cup"
        assert "<b>cup</b>" in page.inner_text(".entry.active .masks")
        assert page.title() == "Ask · maskwise"
        assert page.locator(".entry img, .entry script").count() == 0


def test_another_model_is_started_when_it_is_chosen(browser: Any) -> None:
    def start(name: str) -> InThisProcess:
        return InThisProcess(Hostile(), 10_000_000)

    model = InThisProcess(make_predictor("tiny"), 10_000_000)
    with (
        serving(
            model, names=("other",), start=start, examples=Dataset.open(bundled())
        ) as address,
        open_page(browser) as page,
    ):
        open_example(page, address)
        with page.expect_response("**/v1/models/other"):
            page.select_option("#model", "other")
        ask(page, "the cup")
        assert page.inner_text(".entry.active mark") == "cup"


def test_a_server_with_a_token_asks_for_it(browser: Any) -> None:
    model = InThisProcess(make_predictor("tiny"), 10_000_000)
    with (
        serving(model, token="s3cret", examples=Dataset.open(bundled())) as address,
        open_page(browser) as page,
    ):
        page.goto(address)
        page.fill("dialog input", "s3cret")
        page.click("dialog button")
        page.wait_for_selector("#examples button")
    with (
        serving(model, token="s3cret", examples=Dataset.open(bundled())) as address,
        open_page(browser) as page,
    ):
        page.goto(f"{address}/#token=s3cret")
        page.wait_for_selector("#examples button")
        assert "s3cret" not in page.url


def test_run_lengths_equal_those_of_maskwise(browser: Any, address: str) -> None:
    rng = np.random.default_rng(3)
    sizes = [(1, 1, 1.0), (7, 5, 0.5), (64, 90, 0.03), (40, 33, 0.9)]
    planes = [rng.random((height, width)) < share for height, width, share in sizes]
    planes += [np.zeros((6, 4), np.bool_), np.ones((600, 1), np.bool_)]
    masks = [Mask.from_dense(plane) for plane in planes]
    with open_page(browser) as page:
        page.goto(address)
        found = page.evaluate(
            """async (masks) => {
                const { decodeRle, encodeRle } = await import("/static/js/rle.js");
                return masks.map((mask) => ({ data: [...decodeRle(mask).data], again: encodeRle(decodeRle(mask)) }));
            }""",
            [{"size": list(mask.size), "counts": mask.counts} for mask in masks],
        )
    for plane, mask, one in zip(planes, masks, found):
        assert one["data"] == plane.ravel().astype(int).tolist()
        assert (tuple(one["again"]["size"]), one["again"]["counts"]) == (
            mask.size,
            mask.counts,
        )


def test_painting_sets_the_pixels_whose_centers_are_inside(
    browser: Any, address: str
) -> None:
    with open_page(browser) as page:
        page.goto(address)
        found = page.evaluate(
            """async () => {
                const { paintStroke, paintPolygon, fillArea } = await import("/static/js/painting.js");
                const { emptyBitmap, area } = await import("/static/js/bitmap.js");
                const square = [{x: 2, y: 2}, {x: 7, y: 2}, {x: 7, y: 6}, {x: 2, y: 6}];
                const [disc, polygon, ring, open] = [0, 0, 0, 0].map(() => emptyBitmap(10, 9));
                paintStroke(disc, [{x: 5, y: 4}], 4, 1);
                paintPolygon(polygon, square, 1);
                paintPolygon(ring, square, 1);
                paintPolygon(ring, [{x: 3, y: 3}, {x: 6, y: 3}, {x: 6, y: 5}, {x: 3, y: 5}], 0);
                const before = area(ring);
                const closed = fillArea(ring, {x: 4, y: 4}, 1);
                const areas = { polygon: area(polygon), before, after: area(ring) };
                return { disc: [...disc.data], ...areas, closed, open: fillArea(open, {x: 1, y: 1}, 1) };
            }"""
        )
    y, x = np.mgrid[:9, :10] + 0.5
    assert (
        found["disc"]
        == (((x - 5) ** 2 + (y - 4) ** 2) <= 4).astype(int).ravel().tolist()
    )
    assert (found["polygon"], found["before"], found["after"]) == (20, 14, 20)
    assert (found["closed"], found["open"]) == (True, False)

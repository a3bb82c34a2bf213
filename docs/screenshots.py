"""Screenshots of the pages and reports with Chromium, on scenes of the world: a part of `make figures-docs`.

Needs the extras web and webtest, and chromium.
"""

import contextlib
import random
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from bench.planted_errors import plant_errors
from maskwise.auditing.audit import audit
from maskwise.auditing.audit_page import audit_to_html
from maskwise.harness.evaluate import evaluate
from maskwise.harness.oracle import Oracle
from maskwise.judging import judge
from maskwise.judging.calibration import calibrate
from maskwise.probes import probe
from maskwise.report.explanation import explain_run
from maskwise.report.explanation_page import explained_run_to_html
from maskwise.report.run_gallery import gallery_to_html
from maskwise.review.database import ReviewDatabase
from maskwise.review.judged_runs import open_judged_runs
from maskwise.review.judgments import JudgmentOptions
from maskwise.review.project import ProjectOptions
from maskwise.review.queue import find_item
from maskwise.review.records import MODES, NewDecision
from maskwise.review.review import Review
from maskwise.runs.judgments import PeopleVerdict
from maskwise.server.app import AsgiApp
from maskwise.server.browse import open_browsed
from maskwise.server.http_server import open_server
from maskwise.server.limits import RequestLimits
from maskwise.server.model_pool import ModelPool
from maskwise.server.model_process import ModelProcess
from maskwise.server.model_worker import ModelWorker
from maskwise.server.review_server import make_review_app
from maskwise.server.serve import make_model_app
from maskwise.store import Dataset
from maskwise.world import bundled, write_scenes

DESKTOP: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
PROBES: ViewportSize = {"width": 1120, "height": 1304}
"""All findings, down to the sentence below them."""
SHOWN_WIDTH = 1100
COLORS = 256
SCENES = 24
SIZE = 480
NOISES = (2.0, 4.0)
"""Boundary noise of the oracles in the gallery, in pixels."""
JUDGED_SHARE = 0.5
MISTAKES = 0.07
REASONS = ("bad-mask", "bad-mask", "ambiguous", "wrong-mask-type", "unclear-amodal")


@dataclass(frozen=True)
class Studio:
    """path: a folder with the dataset `scenes` and space for runs. out: takes the PNGs."""

    browser: Browser
    path: Path
    out: Path

    def open_page(self, size: ViewportSize) -> Page:
        """An empty page of this size."""
        return self.browser.new_context(viewport=size).new_page()

    def save(self, page: Page, name: str) -> None:
        """A screenshot as a small PNG."""
        file = self.out / f"{name}.png"
        page.screenshot(path=file)
        with Image.open(file) as image:
            small = image.convert("RGB")
        if small.width > SHOWN_WIDTH:
            height = round(small.height * SHOWN_WIDTH / small.width)
            small = small.resize((SHOWN_WIDTH, height), Image.Resampling.LANCZOS)
        colors = small.quantize(
            COLORS, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE
        )
        colors.save(file, optimize=True)


@contextlib.contextmanager
def open_studio(out: Path, scenes: int = SCENES) -> Iterator[Studio]:
    """A browser and a few scenes, for as long as the context lasts."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder)
        write_scenes(path / "scenes", scenes, seed=4, split="test", size=SIZE)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        yield Studio(browser, path, out)
        browser.close()


def draw_screenshots(out: Path) -> None:
    """All screenshots, each as a PNG file of this folder."""
    with open_studio(out) as studio:
        shoot_model_pages(studio)
        shoot_review_pages(studio)
        shoot_judging_pages(studio)
        shoot_report_pages(studio)
        shoot_verdicts(studio)


def draw_report(out: Path) -> None:
    """The screenshot of a report alone."""
    with open_studio(out) as studio:
        shoot_report(studio)


def draw_probes(out: Path) -> None:
    """The findings of all probes for the bundled model, as the page of `maskwise probe` shows them; takes minutes."""
    with open_studio(out) as studio:
        folder = studio.path / "probes"
        probe("tiny", "world", folder, progress=False)
        page = studio.open_page(PROBES)
        (file,) = folder.glob("*.html")
        page.goto(file.as_uri())
        page.wait_for_timeout(500)
        studio.save(page, "findings")


def shoot_model_pages(studio: Studio) -> None:
    """The ask page and the browse page."""
    path = studio.path
    for model in ("tiny", "convex-hull"):
        evaluate(model, path / "scenes", path / model)
    limits = RequestLimits()
    worker = ModelWorker(ModelProcess("tiny", {}, max_pixels=limits.pixels))
    pool = ModelPool("tiny", worker)
    app = make_model_app(
        pool,
        worker,
        None,
        limits,
        browsed=open_browsed([], [path / "tiny", path / "convex-hull"]),
        examples=Dataset.open(bundled()),
    )
    data = Dataset.open(path / "scenes")
    data.open_image(0).save(path / "kitchen.png")
    with serving(app) as address:
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            page = studio.open_page(size)
            page.goto(address)
            page.wait_for_selector("#examples button")
            if name == "phone":
                page.wait_for_timeout(1500)
                studio.save(page, "start-phone")
            shoot_answers(
                studio,
                page,
                path / "kitchen.png",
                [data[0].question, data[1].question, data[2].question],
                name,
            )
        shoot_samples(studio, address)
    pool.close()


def shoot_answers(
    studio: Studio, page: Page, image: Path, questions: list[str], name: str
) -> None:
    """Answers to a few questions."""
    page.set_input_files("#file", image)
    page.wait_for_selector("#viewer:not([hidden])")
    for number, question in enumerate(questions, 1):
        page.fill("#question", question)
        page.press("#question", "Enter")
        page.wait_for_selector(f".entry:nth-child({number}).active")
    page.wait_for_timeout(1500)
    studio.save(page, f"ask-{name}")


def shoot_samples(studio: Studio, address: str) -> None:
    """Cards, and one of them enlarged."""
    page = studio.open_page(DESKTOP)
    page.goto(f"{address}/browse")
    page.wait_for_selector(".card")
    page.select_option("#sort", "score")
    page.select_option("label:has-text('mask type') select", "amodal", force=True)
    page.wait_for_timeout(3000)
    studio.save(page, "browse-desktop")
    page.click("#samples li:nth-child(8) .card")
    page.wait_for_selector("dialog[open] .side")
    page.wait_for_timeout(1500)
    studio.save(page, "sample-desktop")


def shoot_review_pages(studio: Studio) -> None:
    """The review page and the owner's page."""
    path = studio.path
    review = Review(
        Dataset.open(path / "scenes"), ReviewDatabase(path / "review.sqlite")
    )
    review.create(ProjectOptions(double_share=0.4))
    tokens = {name: review.add_reviewer(name) for name in ("ada", "bob", "cy")}
    owner = review.add_reviewer("olga", "owner")
    draw = random.Random(1)
    for name, token in tokens.items():
        decide_some(review, token, {"ada": 48, "bob": 39, "cy": 22}[name], draw)
    with serving(make_review_app(review)) as address:
        for name, size, reviewer in (
            ("desktop", DESKTOP, "ada"),
            ("phone", PHONE, "bob"),
        ):
            page = studio.open_page(size)
            page.goto(f"{address}/review#token={tokens[reviewer]}")
            page.wait_for_selector("canvas[data-item]")
            page.wait_for_timeout(1500)
            studio.save(page, f"review-{name}")
            if name == "desktop":
                page.keyboard.press("?")
                page.wait_for_timeout(300)
                studio.save(page, "keys-desktop")
        page = studio.open_page(DESKTOP)
        page.goto(f"{address}/review/owner#token={owner}")
        page.wait_for_selector("table")
        studio.save(page, "owner-desktop")
    review.database.close()


def shoot_judging_pages(studio: Studio) -> None:
    """Two predictions to compare, one to rate, and what simulated people say about two models."""
    path = studio.path
    for mode in MODES[1:]:
        runs = open_judged_runs([path / "tiny", path / "convex-hull"], mode)
        database = ReviewDatabase(path / f"{mode}.sqlite")
        review = Review(runs.dataset, database, runs=runs)
        review.create(judgments=JudgmentOptions(double_share=0.3))
        tokens = {name: review.add_reviewer(name) for name in ("ada", "bob")}
        owner = review.add_reviewer("olga", "owner")
        with serving(make_review_app(review)) as address:
            for name, size, reviewer in (
                ("desktop", DESKTOP, "ada"),
                ("phone", PHONE, "bob"),
            ):
                page = studio.open_page(size)
                page.goto(f"{address}/review#token={tokens[reviewer]}")
                page.wait_for_selector("#candidates[data-item]")
                for key in ("e",) if mode == "compare" else ("5", "4", "2"):
                    page.keyboard.press(key)
                page.wait_for_timeout(1500)
                studio.save(page, f"{mode}-{name}")
            draw = random.Random(2)
            if mode == "compare":
                for token in tokens.values():
                    compare_all(review, token, draw)
                page = studio.open_page(DESKTOP)
                page.goto(f"{address}/review/owner#token={owner}")
                page.wait_for_selector("table")
                studio.save(page, "results-desktop")
        database.close()


def compare_all(review: Review, token: str, draw: random.Random) -> None:
    """Judgments of a person who mostly prefers the higher gIoU."""
    reviewer = review.find_reviewer(token)
    assert reviewer is not None
    assert review.runs is not None
    values = [run.rows("strict").value for run in review.runs.runs]
    while items := review.queue(reviewer, 1):
        with review.database.read() as connection:
            item = find_item(connection, items[0].item)
        better = values[item.left][item.row] > values[item.right][item.row]
        if draw.random() < 0.2:
            better = not better
        verdict = "left" if better else "right"
        fields: dict[str, Any] = {
            "id": UUID(int=draw.getrandbits(128), version=4),
            "item": item.item,
            "verdict": "tie" if draw.random() < 0.1 else verdict,
            "criteria": draw.choices((["boundary"], ["completion"], []))[0],
            "seconds": draw.uniform(4, 14),
        }
        review.decide(reviewer, msgspec.convert(fields, NewDecision))


def shoot_report_pages(studio: Studio) -> None:
    """Why a run loses points, runs side by side, and doubtful labels, of which some were planted."""
    path = studio.path
    scenes = Dataset.open(path / "scenes")
    models: list[Any] = ["tiny", "convex-hull", *(Oracle(noise=n) for n in NOISES)]
    runs = [evaluate(model, scenes, protocols="strict") for model in models]
    plant_errors(scenes, path / "planted", share=0.1)
    planted = Dataset.open(path / "planted")
    pages = {
        "explain": explained_run_to_html(explain_run(runs[0])),
        "gallery": gallery_to_html(runs),
        "audit": audit_to_html(audit(planted, runs=runs[1:]), planted),
    }
    shoot_report(studio)
    for title, text in pages.items():
        file = path / f"{title}.html"
        file.write_text(text, encoding="utf-8")
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            page = studio.open_page(size)
            page.goto(file.as_uri())
            if title == "audit":
                page.evaluate("document.querySelector('#samples').scrollIntoView()")
            page.wait_for_timeout(1000)
            studio.save(page, f"{title}-{name}")


def shoot_report(studio: Studio) -> None:
    """The report of a run."""
    run = studio.path / "tiny"
    if not run.exists():
        evaluate("tiny", studio.path / "scenes", run)
    page = studio.open_page(DESKTOP)
    page.goto((run / "report.html").as_uri())
    page.wait_for_timeout(1000)
    studio.save(page, "report-desktop")


def shoot_verdicts(studio: Studio) -> None:
    """The verdicts on the answers of a run, in its report; two people who err now and then have judged half of them."""
    run = studio.path / "tiny"
    draw = random.Random(1)
    lines = []
    for verdict in judge(run).verdicts:
        if draw.random() < JUDGED_SHARE:
            for reviewer in ("ann", "bob"):
                said = verdict.correct != (draw.random() < MISTAKES)
                line = PeopleVerdict(
                    run=run.name, sample=verdict.sample, reviewer=reviewer, correct=said
                )
                lines.append(msgspec.json.encode(line))
    (run / "verdicts.jsonl").write_bytes(b"\n".join(lines))
    calibrate(run, run / "verdicts.jsonl")
    for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
        page = studio.open_page(size)
        page.goto((run / "report.html").as_uri())
        page.click("section.judged summary")
        page.evaluate("document.querySelector('section.judged').scrollIntoView()")
        page.wait_for_timeout(500)
        studio.save(page, f"judged-{name}")


def decide_some(review: Review, token: str, count: int, draw: random.Random) -> None:
    """Decisions as a reviewer might make them."""
    reviewer = review.find_reviewer(token)
    assert reviewer is not None
    for _ in range(count):
        (item,) = review.queue(reviewer, 1)
        verdict: Any = draw.choices(("accept", "fix", "reject"), (7, 2, 1))[0]
        edit = {"question": f"{item.question} "} if verdict == "fix" else None
        fields: dict[str, Any] = {
            "id": UUID(int=draw.getrandbits(128), version=4),
            "item": item.item,
            "verdict": verdict,
            "reason": draw.choice(REASONS) if verdict == "reject" else None,
            "edit": edit,
            "seconds": draw.uniform(3, 15),
        }
        review.decide(reviewer, msgspec.convert(fields, NewDecision))


@contextlib.contextmanager
def serving(app: AsgiApp) -> Iterator[str]:
    """The address of a server in a thread."""
    server = open_server(app, "127.0.0.1", 0, has_token=False)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.address
    finally:
        server.server.should_exit = True
        thread.join()

"""The page in a real browser: nothing is refused, nothing overflows a phone, filters and layers work."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from maskwise.report.leaderboard import write_site
from maskwise.report.report_page import run_to_html
from maskwise.runs import Run, load_run
from tests.report.pages import Page

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        BROWSER is None, reason="needs chromium, which is not installed"
    ),
]

PROBE = """
const pick = (selector) => { const box = document.querySelector(selector); box.click(); };
const shown = () => [...document.querySelectorAll(".card")].filter((card) => card.offsetParent).length;
document.documentElement.style.width = "390px"; // a window has at least 500, where the same rules hold
// A wide table scrolls within its own box.
const scrolls = (item) => item.parentElement.closest(".scroll");
const items = [...document.querySelectorAll("main *, header *, footer *")].filter((item) => !scrolls(item));
const edges = items.map((item) => item.getBoundingClientRect());
const facts = { fits: Math.max(...edges.map((box) => box.right)) <= 390, all: shown() };
pick("[name=kind][value=worst]");
facts.worst = shown();
pick("[name=layer][value=hidden]");
const seen = (path) => getComputedStyle(path).display !== "none";
facts.hidden = [...document.querySelectorAll(".masks .hidden")].some(seen);
pick("[name=protocol][value=lisa]");
facts.views = [...document.querySelectorAll(".view:not([hidden])")].map((view) => view.dataset.protocol);
pick(".card:not([hidden]) .enlarge");
facts.large = document.querySelectorAll(".card.large").length;
document.body.innerHTML = "";
document.body.dataset.facts = JSON.stringify(facts);
"""


SORTING = """
const order = (column) => {
  document.querySelectorAll(".board thead")[0].rows[0].cells[column].querySelector("button").click();
  return [...document.querySelectorAll(".board tbody")[0].rows].map((row) => row.cells[0].innerText.split("\\n")[0]);
};
const facts = { worst: (order(1), order(1)), best: order(1), names: order(0), back: order(0) };
facts.sorted = [...document.querySelectorAll(".board [aria-sort]")].map((head) => head.innerText.trim());
document.documentElement.style.width = "390px";
const kept = ".scroll *, .store *";
const boxes = [...document.querySelectorAll("main *, header *")].filter((item) => !item.matches(kept));
facts.fits = Math.max(...boxes.map((item) => item.getBoundingClientRect().right)) <= 390;
document.body.innerHTML = "";
document.body.dataset.facts = JSON.stringify(facts);
"""


def browse(
    page: Path, profile: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    quiet = (
        "gpu",
        "quic",
        "background-networking",
        "component-update",
        "sync",
        "dev-shm-usage",
    )
    return subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--no-first-run",
            *(f"--disable-{name}" for name in quiet),
            f"--user-data-dir={profile}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def probe(source: str, script: str) -> str:
    """The page with a script of ours at its end, which its own policy would refuse."""
    before, policy, after = source.partition(
        '<meta http-equiv="Content-Security-Policy"'
    )
    assert policy
    return (
        before
        + "<meta "
        + after.replace("</body>", f"<script>{script}</script></body>")
    )


def test_the_browser_has_nothing_to_say(hostile_run: Run, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(run_to_html(hostile_run), encoding="utf-8")
    done = browse(
        tmp_path / "report.html",
        tmp_path / "profile",
        "--enable-logging=stderr",
        "--dump-dom",
    )
    assert "</html>" in done.stdout
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_on_a_phone(run: Run, tmp_path: Path) -> None:
    source = run_to_html(run)
    (tmp_path / "report.html").write_text(probe(source, PROBE), encoding="utf-8")
    done = browse(
        tmp_path / "report.html",
        tmp_path / "profile",
        "--window-size=390,844",
        "--dump-dom",
    )
    [body] = Page(done.stdout).find("body")
    cards = Page(source).find("article")
    worst = [card for card in cards if card.attributes["data-kind"] == "worst"]
    assert body.attributes["data-facts"] == (
        f'{{"fits":true,"all":{len(cards)},"worst":{len(worst)},"hidden":false,"views":["lisa"],"large":1}}'
    )


def test_tables_of_the_leaderboard_sort(toy: Path, tmp_path: Path) -> None:
    runs = [load_run(toy / name) for name in ("near", "far")]
    write_site(tmp_path, runs, lambda run: "")
    page = tmp_path / "index.html"
    done = browse(page, tmp_path / "profile", "--enable-logging=stderr", "--dump-dom")
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    page.write_text(probe(page.read_text(encoding="utf-8"), SORTING), encoding="utf-8")
    done = browse(page, tmp_path / "profile", "--window-size=390,844", "--dump-dom")
    [body] = Page(done.stdout).find("body")
    near = "near.jsonl"
    far = "far.jsonl"
    assert json.loads(body.attributes["data-facts"]) == {
        "worst": [far, near],
        "best": [near, far],
        "names": [far, near],
        "back": [near, far],
        "sorted": ["Model"],
        "fits": True,
    }

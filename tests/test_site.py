"""The documentation site builds without a warning, loads nothing from elsewhere, and can be searched."""

from pathlib import Path

import pytest

from docs.build import build_site, loaded_from_elsewhere
from docs.conf import DOCS

pytest.importorskip("sphinx")

SCREEN = 30
"""Lines of Markdown that fit on a screen, before the first code block of a page."""

PROSE = {"contributing.md", "decisions", "results/speed.md", "reference/files.md"}
"""Pages and folders that are no instructions, or whose text is elsewhere."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "html"
    assert build_site(folder) == []
    return folder


def test_every_document_is_a_page(site: Path) -> None:
    documents = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    pages = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert documents <= pages


def test_documents_outside_the_folder_are_pages(site: Path) -> None:
    speed = (site / "results" / "speed.html").read_text("utf-8")
    assert "pycocotools" in speed
    contributing = (site / "contributing.html").read_text("utf-8")
    assert "make test" in contributing


def test_options_keep_their_hyphens(site: Path) -> None:
    page = (site / "reference" / "cli" / "evaluate.html").read_text("utf-8")
    assert "Which images --limit draws" in page


def test_the_search_index_has_the_words_of_pages(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert "benchmarks/rules/visionreasoner" in index
    assert "krippendorff" in index


def test_links_to_files_of_the_repository_are_downloads(site: Path) -> None:
    assert list((site / "_downloads").rglob("lisa_adapter.py"))


def test_pages_that_load_from_another_server_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://x.org">x</a><script src="https://x.org/a.js"></script>'
        '<link rel="stylesheet" href="//x.org/a.css"><img src="b.png">'
    )
    (tmp_path / "b.css").write_text('@import "https://x.org/font.css";')
    assert len(loaded_from_elsewhere(tmp_path)) == 3


def test_a_broken_link_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(
        'extensions = ["myst_parser"]\nmyst_heading_anchors = 4\n'
    )
    (docs / "index.md").write_text("# A page\n\n[gone](gone.md) [here](#nowhere)\n")
    monkeypatch.setattr("docs.build.DOCS", docs)
    problems = "\n".join(build_site(tmp_path / "html"))
    assert "gone.md" in problems
    assert "nowhere" in problems


def test_every_page_shows_a_command_or_code_on_its_first_screen() -> None:
    late = []
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if name in PROSE or name.split("/")[0] in PROSE:
            continue
        lines = path.read_text("utf-8").splitlines()
        first = next(
            (row for row, line in enumerate(lines) if line.startswith("```")),
            len(lines),
        )
        if SCREEN < first < len(lines):
            late.append(f"{name}: line {first + 1}")
    assert not late, late

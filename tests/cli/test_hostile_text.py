"""Texts of datasets and models in every output for people: nothing of them is run, loaded, or taken for markup."""

import csv
import io
import itertools
import re
from pathlib import Path

import pytest
import yaml

from maskwise.terminal import safe_markdown
from tests.cli.commands import run
from tests.report.pages import Page
from tests.report.runs import make_dataset, make_predictions

HTML = """</script><script>alert(1)</script><img src=x onerror="alert(2)">'"></style></title><svg/onload=alert(3)>"""
TERMINAL = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e[red]x[/red]"
LATEX = r"\input{/etc/passwd}\write18{id}$x_1^2$ 100% #1 \end{tabular}"
MARKDOWN = "| x | [click](javascript:alert(4)) ![i](http://127.0.0.1:9/x.png) `q`"

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
MARKUP = re.compile(r"(?<!\\)(<(script|img|svg)|\[click\]|!\[i)")
RUNNABLE = re.compile(r"\s*(javascript|data:text|http://127)", re.IGNORECASE)


def hostile(text: str) -> str:
    return f"={text} {HTML}{TERMINAL}{LATEX}{MARKDOWN}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file for people that commands write of a hostile dataset and two runs with hostile texts."""
    folder = tmp_path_factory.mktemp("hostile")
    data = make_dataset(folder / "data", words=hostile)
    runs = [folder / "run a", folder / "run <img src=x onerror=alert(5)> [click](x)"]
    for number, path in enumerate(runs):
        predictions = make_predictions(
            folder / f"{number}.jsonl", data, words=hostile, shift=2 + 5 * number
        )
        run("score", predictions, data, "--out", path)
    run("judge", runs[0])
    out = folder / "out"
    out.mkdir()
    both = ("--runs", runs[0], "--runs", runs[1])
    for suffix in ("html", "md", "json"):
        run("report", runs[0], "--out", out / f"report.{suffix}")
        run("explain", *runs, "--out", out / f"explain.{suffix}")
        run("audit", data, *both, "--out", out / f"audit.{suffix}")
    for suffix in ("html", "md", "csv"):
        run("ladder", *runs, "--out", out / f"ladder.{suffix}")
    for suffix in ("html", "md", "csv", "tex"):
        run("table", *runs, "--out", out / f"table.{suffix}")
    run("gallery", *runs, "--out", out / "gallery.html")
    run("compare", *runs, "--out", out / "compare.html")
    run("leaderboard", *runs, "--out", out / "board")
    run("rescore", *runs, data, "--out", out / "rescore.md")
    run("build", "r2sm", data, "--out", out / "built")
    run("lmms-eval", data, "--out", out / "tasks")
    return out


def list_files(folder: Path, suffix: str) -> list[Path]:
    files = sorted(folder.rglob(f"*.{suffix}"))
    assert files
    return files


def test_pages_hold_no_elements_of_a_text(folder: Path) -> None:
    for path in list_files(folder, "html"):
        text = path.read_text(encoding="utf-8")
        assert not CONTROLS.search(text), path.name
        for element in Page(text).elements:
            names = [name.lower() for name in element.attributes]
            assert not [name for name in names if name.startswith("on")], path.name
            for name in ("href", "src", "action"):
                value = element.attributes.get(name, "")
                assert not RUNNABLE.match(value), (path.name, value)
            assert not (element.tag == "script" and "alert" in element.text), path.name


def test_markdown_has_no_links_images_or_elements_of_a_text(folder: Path) -> None:
    for path in list_files(folder, "md"):
        text = path.read_text(encoding="utf-8")
        found = MARKUP.search(text)
        assert not found, (path.name, text[found.start() - 40 : found.end() + 40])
        assert not CONTROLS.search(text), path.name


def test_tables_for_latex_and_spreadsheets_hold_only_text(folder: Path) -> None:
    latex = (folder / "table.tex").read_text(encoding="utf-8")
    assert not re.search(r"\\(input|write)", latex)
    assert latex.count("\\end{tabular}") == 1
    assert not CONTROLS.search(latex)
    for path in list_files(folder, "csv"):
        rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
        for cell in itertools.chain.from_iterable(rows):
            is_number = re.fullmatch(r"-?[\d.]+", cell)
            assert is_number or not cell.startswith(("=", "+", "-", "@")), cell


def test_tasks_of_other_tools_are_those_that_were_meant(folder: Path) -> None:
    """A name in a comment must not become a line of YAML, which may call Python."""
    text = (folder / "tasks" / "maskwise_data.yaml").read_text(encoding="utf-8")
    assert not CONTROLS.search(text)
    assert [line[:2] for line in text.splitlines()[:3]] == ["# ", "# ", "ta"]
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!function", lambda loader, node: node.value)
    task = yaml.load(text, loader)
    assert task["task"] == "maskwise_data"


def test_markup_is_escaped_on_one_line() -> None:
    assert safe_markdown("a\n\n# b") == r"a \# b"
    assert safe_markdown("[a](b) <c> &lt;") == r"\[a\](b) \<c\> \&lt;"
    assert safe_markdown("gIoU 0.5 (0.4–0.6)") == "gIoU 0.5 (0.4–0.6)"

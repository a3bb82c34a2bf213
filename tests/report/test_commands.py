"""`maskwise report` and `compare` from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import MaskwiseError
from tests.report.pages import Page


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_report_writes_a_page(toy: Path, tmp_path: Path) -> None:
    done = run(
        "report", toy / "far", "--out", tmp_path / "new" / "report.html", "--samples", 2
    )
    assert done.exit_code == 0, done.output
    page = Page((tmp_path / "new" / "report.html").read_text(encoding="utf-8"))
    assert len(page.find("article")) == 8
    assert "far.jsonl" in page.find("p", "lead")[0].text


def test_report_prints_markdown_and_json(toy: Path, tmp_path: Path) -> None:
    assert run("report", toy / "far").stdout.startswith("# toy: far.jsonl")
    assert (
        json.loads(run("report", toy / "far", "--format", "json").stdout)["dataset"]
        == "toy"
    )
    run("report", toy / "far", "--out", tmp_path / "report.md", "--protocol", "lisa")
    assert "## Metrics under lisa" in (tmp_path / "report.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "html"), "--out"),
        (("--out", "report.pdf"), "expected .html, .md or .json"),
        (("--protocol", "ap"), "unknown protocol"),
    ],
)
def test_report_says_what_is_wrong(
    toy: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run("report", toy / "far", *arguments)
    assert isinstance(done.exception, MaskwiseError)
    assert message in str(done.exception)


def test_compare_prints_a_table(toy: Path, tmp_path: Path) -> None:
    done = run("compare", toy / "far", toy / "near", "--out", tmp_path / "compare.html")
    assert done.exit_code == 0, done.output
    assert "B is better by" in done.stdout
    assert "Requested mask type" in done.stdout
    assert Page((tmp_path / "compare.html").read_text(encoding="utf-8")).find("article")


def test_compare_prints_json(toy: Path) -> None:
    done = run("compare", toy / "near", toy / "near", "--json")
    found = json.loads(done.stdout)
    assert found["format"] == "maskwise comparison 3"
    assert (found["metrics"]["giou"]["difference"], found["metrics"]["giou"]["p"]) == (
        0.0,
        1.0,
    )


def test_errors_are_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maskwise.cli.main", "report", str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("maskwise: ")
    assert "Traceback" not in done.stderr
    assert "no run.json" in done.stderr


@pytest.mark.parametrize("command", ["report", "compare"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example: maskwise {command}" in " ".join(
        run(command, "--help").stdout.split()
    )


def test_a_comparison_is_not_written_as_something_else(
    toy: Path, tmp_path: Path
) -> None:
    done = run("compare", toy / "far", toy / "near", "--out", tmp_path / "c.tex")
    assert "expected .html" in str(done.exception)
    assert not (tmp_path / "c.tex").exists()

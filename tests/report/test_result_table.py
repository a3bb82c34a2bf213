"""`maskwise table`: values, what is bold, and which rules stand side by side."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.report.result_table import format_table, make_result_table
from maskwise.runs import Run, load_run
from tests.report.pages import Page
from tests.report.runs import make_run
from tests.report.test_page import check_offline


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def runs(toy: Path) -> list[Run]:
    return [load_run(toy / "far"), load_run(toy / "near")]


def test_the_best_value_is_bold_where_it_is_significant(runs: list[Run]) -> None:
    table = make_result_table(runs)
    ((_, (far, near)),) = table.groups
    assert [cell.bold for cell in near.cells] == [True, True]
    assert not any(cell.bold for cell in far.cells)
    assert any(
        note.startswith("Bold: significantly better") for note in table.footnotes
    )


def test_nothing_is_bold_between_equal_runs(runs: list[Run], toy: Path, tmp_path: Path):
    twin = make_run(
        tmp_path / "twin", toy / "data", toy / "near.jsonl", protocols=["strict"]
    )
    table = make_result_table([*runs, twin])
    assert not any(
        cell.bold for _, rows in table.groups for row in rows for cell in row.cells
    )
    assert any(note.startswith("No value is bold") for note in table.footnotes)


@pytest.mark.parametrize("spread", ["interval", "plusminus", "none"])
def test_every_format_has_every_value(runs: list[Run], spread: Any) -> None:
    table = make_result_table(runs, metrics=["giou", "f1"], spread=spread)
    value = f"{100 * runs[1]['strict']['giou']:.1f}"
    for name in ("latex", "csv", "markdown", "html"):
        text = format_table(table, name)
        assert "near.jsonl" in text
        if name != "csv":
            assert value in text
            assert "F1" in text
            assert "maskwise" in text
    rows = list(csv.DictReader(io.StringIO(format_table(table, "csv"))))
    assert float(rows[1]["gIoU"]) == float(runs[1]["strict"]["giou"])
    assert rows[1]["gIoU best"] == "True"
    latex = format_table(table, "latex")
    assert f"\\textbf{{{value}}}" in latex
    check_offline(format_table(table, "html"))


def test_published_rows_of_other_rules_are_marked(toy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reasonseg"
    shutil.copytree(toy / "near", folder)
    info = json.loads((folder / "run.json").read_text())
    info["dataset"]["name"] = "reasonseg val"
    (folder / "run.json").write_text(json.dumps(info))
    table = make_result_table([load_run(folder)], published="val")
    assert len(table.groups) > 1
    assert "different rules" in table.footnotes[0]
    text = format_table(table, "markdown")
    assert "LISA-7B (published)" in text
    assert "| lisa \\[" in text
    assert "Published, not measured here" in text
    published = [row for _, rows in table.groups for row in rows if row.published]
    assert not any(cell.bold for row in published for cell in row.cells)
    under_lisa = make_result_table([load_run(folder)], protocol="lisa", published="val")
    assert any(
        {row.published for row in rows} == {True, False}
        for _, rows in under_lisa.groups
    )
    with pytest.raises(UnknownNameError, match="published split"):
        make_result_table([load_run(folder)], published="nowhere")


def test_what_is_refused(runs: list[Run], toy: Path) -> None:
    with pytest.raises(UnknownNameError, match="metric of strict"):
        make_result_table(runs, metrics=["iou"])
    with pytest.raises(ProtocolError, match="at least one run"):
        make_result_table([])
    done = run("table", toy / "near", "--out", "table.docx")
    assert "expected .tex, .csv, .md or .html" in str(done.exception)


def test_the_command_prints_or_writes(toy: Path, tmp_path: Path) -> None:
    done = run("table", toy / "far", toy / "near")
    assert done.exit_code == 0, done.output
    assert "| near.jsonl | **" in done.output
    out = tmp_path / "table.tex"
    run("table", toy / "far", toy / "near", "--out", out, "--spread", "plusminus")
    assert "\\begin{tabular}{lcc}" in out.read_text()
    page = tmp_path / "table.html"
    run("table", toy / "far", toy / "near", "--out", page)
    assert Page(page.read_text(encoding="utf-8")).find("table")

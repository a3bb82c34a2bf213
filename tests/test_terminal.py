"""Control characters from datasets and models never reach the terminal."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.progress import Progress
from rich.table import Table
from typer.testing import CliRunner

from maskwise.cli.main import app, main
from maskwise.console import make_console
from maskwise.errors import MaskwiseError
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Prediction, Region, Sample
from maskwise.store import DatasetWriter
from maskwise.terminal import safe_cell, safe_text
from tests.cli.commands import run

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\r\u202e"
CONTROLS = set(map(chr, (*range(9), *range(11, 32), *range(127, 160))))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A dataset with escape sequences in every text."""
    mask = Mask.from_dense(np.ones((4, 6), np.bool_))
    region = Region(id=f"r{EVIL}", name=f"name{EVIL}", visible=mask)
    buffer = io.BytesIO()
    Image.new("RGB", (6, 4)).save(buffer, "PNG")
    folder = tmp_path / "data"
    with DatasetWriter(folder, name=f"set{EVIL}", about={"license": EVIL}) as writer:
        writer.add_image(
            ImageInfo(id=f"i{EVIL}", width=6, height=4), [region], buffer.getvalue()
        )
        tags = {"kind": f"tag{EVIL}"}
        sample = Sample(
            id=f"s{EVIL}",
            image_id=f"i{EVIL}",
            question=f"what{EVIL}",
            targets=(region,),
            tags=tags,
        )
        writer.add_sample(sample)
    return folder


def assert_safe(output: str) -> None:
    assert not CONTROLS & set(output), repr(output)
    assert "\u202e" not in output


@given(st.text())
def test_safe_text_has_no_control_characters_and_is_the_same_json(text: str) -> None:
    assert not CONTROLS & set(safe_text(text))
    line = json.dumps(text, ensure_ascii=False)
    assert json.loads(safe_text(line)) == text


def test_plain_text_is_unchanged() -> None:
    text = "a\tb\nπ 犬 … 🙂 café"
    assert safe_text(text) == text


def test_a_console_keeps_its_own_colors_and_escapes_those_of_the_text() -> None:
    file = io.StringIO()
    console = make_console(
        file=file, force_terminal=True, color_system="standard", width=200
    )
    table = Table()
    table.add_column(f"head{EVIL}")
    table.add_row(f"[red]cell{EVIL}[/]")
    console.print(table)
    console.print(f"text{EVIL}", style="bold")
    output = file.getvalue()
    assert "\x1b[31m" in output
    assert "\x1b[1m" in output
    assert "\x1b[2J" not in output
    assert "\x1b]0;" not in output
    assert "\\u001b[2J" in output


def test_a_progress_bar_still_moves() -> None:
    file = io.StringIO()
    with Progress(
        console=make_console(file=file, force_terminal=True, width=80)
    ) as bar:
        bar.update(bar.add_task("working", total=2), completed=2)
    assert "working" in file.getvalue()
    assert "100%" in file.getvalue()


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("command", ["stats", "validate"])
def test_commands_print_dataset_text_safely(
    dataset: Path, command: str, options: tuple[str, ...]
) -> None:
    assert_safe(run(command, dataset, *options).output)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_questions_are_printed_safely(options: tuple[str, ...]) -> None:
    assert_safe(run("intent", f"the dog{EVIL}", *options).output)


def test_ids_are_printed_safely(dataset: Path, tmp_path: Path) -> None:
    assert_safe(
        run("show", dataset, f"s{EVIL}", "--out", tmp_path / "shown.png").output
    )


class Failing:
    """A model whose errors contain escape sequences."""

    def predict(self, _image: Image.Image, _questions: list[str]) -> list[Prediction]:
        raise RuntimeError(f"failed{EVIL}")


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("model", ["oracle", f"{__name__}:Failing"])
def test_evaluations_are_printed_safely(
    dataset: Path, tmp_path: Path, model: str, options: tuple[str, ...]
) -> None:
    arguments = [
        "eval",
        str(dataset),
        "--model",
        model,
        "--out",
        str(tmp_path / "run"),
        *options,
    ]
    assert_safe(CliRunner().invoke(app, arguments).output)


def test_errors_are_printed_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["maskwise", "stats", str(tmp_path / f"no{EVIL}")])
    with pytest.raises(SystemExit):
        main()
    assert_safe(capsys.readouterr().err)


HOSTILE_MODEL = """
class Hostile:
    name = "=1+1" + EVIL

    def predict(self, image, questions):
        raise RuntimeError("line\\n" + EVIL + "\\ud800")


class Named(Hostile):
    def predict(self, image, questions):
        from maskwise.schema import Prediction

        return [Prediction() for _ in questions]
"""


def test_files_for_people_hold_no_control_characters(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of a dataset and a model in tables, reports, pages and tracebacks."""
    (tmp_path / "hostile_model.py").write_text(f"EVIL = {EVIL!r}{HOSTILE_MODEL}")
    monkeypatch.syspath_prepend(tmp_path)
    run_folder = tmp_path / "run"
    run("eval", dataset, "--model", "hostile_model:Named", "--out", run_folder)
    files = [tmp_path / f"table.{kind}" for kind in ("csv", "tex", "md", "html")]
    for file in files:
        run("table", run_folder, "--out", file)
    for kind in ("csv", "md", "html"):
        run("ladder", run_folder, "--out", tmp_path / f"ladder.{kind}")
        files.append(tmp_path / f"ladder.{kind}")
    for kind in ("md", "html"):
        run("report", run_folder, "--out", tmp_path / f"report.{kind}")
        files.append(tmp_path / f"report.{kind}")
    failing = ["eval", str(dataset), "--model", "hostile_model:Hostile"]
    result = CliRunner().invoke(app, [*failing, "--out", str(tmp_path / "failed")])
    assert isinstance(result.exception, MaskwiseError), result.exception
    files.append(tmp_path / "failed" / "errors.txt")
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not CONTROLS & set(text), file.name
        assert "\u202e" not in text, file.name


def test_cells_are_no_formulas() -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(1)", "\t=1"):
        assert safe_cell(text).startswith("'")
    assert safe_cell("tiny") == "tiny"

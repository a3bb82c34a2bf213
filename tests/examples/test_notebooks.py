"""The notebooks run from the first cell to the last, and show what their stored outputs show."""

from pathlib import Path

import nbformat
import pytest

from docs.notebooks import EXAMPLES, run_notebook

NOTEBOOKS = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))

IMAGES = {
    "quickstart": 2,
    "own_model": 1,
    "own_data": 1,
    "compare_and_explain": 1,
    "build_and_review": 0,
    "finetune": 0,
}
"""How many cells of a notebook show an image."""

SIZE = 300_000
"""Bytes: what a page that shows a notebook loads at once."""


def shown(notebook: nbformat.NotebookNode) -> list[set[str]]:
    """Per cell the kinds of what it shows: forms of data, or the name of a stream."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        {
            kind
            for output in cell.outputs
            for kind in output.get("data", {output.get("name"): ""})
        }
        for cell in cells
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_shows_what_it_shows_here(name: str, tmp_path: Path) -> None:
    if name == "finetune":
        pytest.importorskip("torch")
    path = EXAMPLES / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)
    executed = run_notebook(path, tmp_path)
    assert shown(executed) == shown(stored), f"python -m docs.notebooks {name}"
    images = sum("image/jpeg" in kinds for kinds in shown(executed))
    assert images == IMAGES[name]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_stored_notebooks_are_small_and_name_no_folder_of_a_machine(name: str) -> None:
    text = (EXAMPLES / f"{name}.ipynb").read_text("utf-8")
    assert len(text) < SIZE
    assert "/tmp/" not in text
    assert "\x1b" not in text
    assert any(shown(nbformat.reads(text, as_version=4)))

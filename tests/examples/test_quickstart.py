"""The notebook runs from the first cell to the last, and its cells show what they promise."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert (folder / "report.html").exists()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: nbformat.NotebookNode) -> set[str]:
    return {kind for output in cell.outputs for kind in output.get("data", {})}


def test_datasets_runs_and_comparisons_are_tables(
    executed: list[nbformat.NotebookNode],
) -> None:
    tables = [cell for cell in executed if "text/html" in shown(cell)]
    assert len(tables) == 3


def test_samples_and_predictions_are_images(
    executed: list[nbformat.NotebookNode],
) -> None:
    images = [cell for cell in executed if "image/png" in shown(cell)]
    assert len(images) == 2


def test_the_stored_notebook_has_no_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not [cell for cell in notebook.cells if cell.get("outputs")]

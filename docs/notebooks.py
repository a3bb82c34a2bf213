"""Run the notebooks of examples/ and store their outputs: `make notebooks`."""

import base64
import io
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

EXAMPLES = Path(__file__).parent.parent / "examples"

WIDTH = 760
"""Pixels: about the width of a notebook's column."""

QUALITY = 80
"""Of JPEG: text in an overlay stays readable, and a notebook below 150 kB."""

WIDGET = "application/vnd.jupyter.widget-view+json"
COLOR = re.compile("\x1b\\[[0-9;]*m")

TIMEOUT = 600
"""Seconds for a cell. Each takes seconds; a busy machine needs more."""


def run_notebook(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder, with the commands of this environment."""
    notebook = nbformat.read(path, as_version=4)
    programs = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([programs, os.environ.get("PATH", "")]),
        "COLUMNS": "100",
    }
    client = NotebookClient(
        notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)
    for cell in notebook.cells:
        clean(cell, [f"{folder.resolve()}/", f"{EXAMPLES.parent}/"])
    return notebook


def clean(cell: nbformat.NotebookNode, folders: Sequence[str]) -> None:
    """Take out what differs from run to run: times, warnings, progress, colors, pieces of a stream, folders."""
    cell.metadata.pop("execution", None)
    outputs: list[nbformat.NotebookNode] = []
    for output in cell.get("outputs", []):
        if output.get("name") == "stderr" or WIDGET in output.get("data", {}):
            continue
        shrink_image(output)
        keep_best_form(output)
        if "text" in output and outputs and "text" in outputs[-1]:
            outputs[-1].text += output.text
        else:
            outputs.append(output)
    for output in outputs:
        if "text" in output:
            output.text = COLOR.sub("", output.text)
        data = output.get("data", {})
        for form in data.keys() & {"text/plain", "text/html"}:
            for folder in folders:
                data[form] = data[form].replace(folder, "")
    if cell.cell_type == "code":
        cell.outputs = outputs


def shrink_image(output: nbformat.NotebookNode) -> None:
    """Replace the image of an output, if it has one, by a JPEG of at most WIDTH pixels on its longer side."""
    data = output.get("data", {})
    encoded = data.pop("image/png", None)
    if encoded is None:
        return
    image = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB")
    image.thumbnail((WIDTH, WIDTH))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY)
    data["image/jpeg"] = base64.b64encode(buffer.getvalue()).decode()


def keep_best_form(output: nbformat.NotebookNode) -> None:
    """Without the plain text of what is shown as a table or an image: it has paths of this machine."""
    data = output.get("data", {})
    if "text/html" in data or "image/jpeg" in data:
        data.pop("text/plain", None)


def main() -> None:
    """Run all notebooks, or those that are named."""
    names = sys.argv[1:] or [path.stem for path in sorted(EXAMPLES.glob("*.ipynb"))]
    for name in names:
        path = EXAMPLES / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run_notebook(path, Path(folder)), path)
        print(f"ran {name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

"""`maskwise worker`: the file to copy beside a model in an older Python environment."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.terminal import echo


def worker(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file to write.", show_default="print it"),
    ] = None,
) -> None:
    """Write maskwise_worker.py: one file without dependencies, for Python 3.8 or newer.

    Copied beside a model, it answers the requests of `--model "command: ..."`, so that the model keeps its own
    environment (docs/guides/model_exchange.md).

    Example: maskwise worker --out maskwise_worker.py
    """
    from importlib.resources import files

    from maskwise.store.atomic import atomic_write

    source = files("maskwise.integrations") / "maskwise_worker.py"
    if out is None:
        echo(source.read_text(encoding="utf-8").rstrip("\n"))
        return
    with atomic_write(out) as file:
        file.write(source.read_bytes())
    echo(f"wrote {out}")

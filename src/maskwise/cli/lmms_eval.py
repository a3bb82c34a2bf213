"""`maskwise lmms-eval`: tasks for lmms-eval from dataset folders."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import argument
from maskwise.terminal import echo


def lmms_eval(
    datasets: Annotated[
        list[str] | None,
        argument("[DATASET]...", "Datasets to make tasks of, as for `maskwise eval`."),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The folder to write.",
            show_default="lmms-eval in the data folder",
        ),
    ] = None,
) -> None:
    """Write tasks for lmms-eval, scored by our protocols, and print the folder for its --include_path.

    A task per dataset, and one per benchmark, which says how to get its data (docs/guides/integrations.md).

    Example: maskwise lmms-eval world --out tasks
    """
    from maskwise.datasets import load_dataset
    from maskwise.downloads.local_files import data_folder
    from maskwise.integrations.lmms_eval import write_tasks

    folder = (out or data_folder() / "lmms-eval").absolute()
    # A task has the name of the folder, not the one in the manifest: that is what the user typed.
    opened = {Path(name).name: load_dataset(name) for name in datasets or []}
    tasks = write_tasks(folder, opened)
    for task in tasks:
        echo(f"task {task}", err=True)
    echo(str(folder))

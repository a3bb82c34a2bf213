"""`maskwise gallery`: any number of runs side by side, question by question."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.hints import refuse_repeated_runs
from maskwise.cli.options import SEVERAL, ImagesFolder, argument
from maskwise.cli.output import write_text
from maskwise.errors import MaskwiseError, StoreError

MAX_SAMPLES = 500
"""Questions of a gallery: the page holds about 100 questions of three runs, whatever is asked for."""


def gallery(
    runs: Annotated[list[Path], argument("RUN...", "Runs on one dataset.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="The page to write: .html.")],
    samples: Annotated[
        int, typer.Option(min=1, max=MAX_SAMPLES, help="Questions to show, at most.")
    ] = 60,
    slices: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            metavar="NAME=VALUE",
            help=f"Only questions of this group, such as mask_type=amodal. {SEVERAL}",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Whose scores are shown.", show_default="strict")
    ] = None,
    images: ImagesFolder = None,
) -> None:
    """Write a page with the predictions of all runs side by side, questions with most disagreement first.

    The page can be filtered by slice, by words and by how many runs are right. It stays below 10 MB.

    Example: maskwise gallery runs/a runs/b runs/c --out gallery.html
    """
    from maskwise.report.run_data import RunPaths
    from maskwise.report.run_gallery import gallery_to_html
    from maskwise.runs import load_run

    if out.suffix.lower() not in (".html", ".htm"):
        raise StoreError(f"{out}: a gallery is written as a page; expected .html")
    wanted = {}
    for text in slices or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise MaskwiseError(f"--slice {text}: expected NAME=VALUE")
        wanted[name] = value
    refuse_repeated_runs(runs)
    page = gallery_to_html(
        [load_run(run) for run in runs],
        protocol=protocol,
        samples=samples,
        slices=wanted,
        paths=RunPaths(images=images),
    )
    write_text(page, out)

"""`maskwise leaderboard`: a static site of runs."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import argument
from maskwise.terminal import echo


def leaderboard(
    runs: Annotated[
        list[Path],
        argument("RUN", "Run folders of `maskwise eval` or `maskwise score --out`."),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write the site to.")
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            min=0, max=60, help="Samples of each kind in the galleries of the reports."
        ),
    ] = 12,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; without --out, do nothing else.")
    ] = False,
) -> None:
    """Rank runs by dataset and protocol, and write them as a static site with the report of each.

    Without --out a table is printed. Only runs on the same questions share a table. Published results are shown in
    tables of their own.

    Example: maskwise leaderboard runs/tiny runs/lisa --out site
    """
    from rich.progress import track

    from maskwise.cli.leaderboard_table import print_leaderboard
    from maskwise.console import make_console
    from maskwise.report.leaderboard import (
        PAGE,
        leaderboard_to_json,
        make_leaderboard,
        write_site,
    )
    from maskwise.report.report_page import run_to_html
    from maskwise.runs import load_run

    opened_runs = [load_run(run) for run in runs]
    if out is None:
        board = make_leaderboard(opened_runs)
    else:
        console = make_console(stderr=True)
        board = write_site(
            out,
            opened_runs,
            lambda run: run_to_html(run, samples=samples),
            track=lambda pages: track(
                pages,
                "writing reports",
                console=console,
                transient=True,
                disable=as_json,
            ),
        )
    if as_json:
        echo(leaderboard_to_json(board).decode(), nl=False)
    elif out is None:
        print_leaderboard(board)
    else:
        echo(f"wrote {out / PAGE}", err=True)

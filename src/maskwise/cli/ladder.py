"""`maskwise ladder`: the same predictions under every published rule."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import AsJson, argument
from maskwise.errors import StoreError
from maskwise.terminal import echo, safe_text

Runs = Annotated[
    list[str],
    argument(
        "RUN|PREDICTIONS... DATASET",
        "Run folders or files of predictions, then the dataset, which runs know already.",
    ),
]


def ladder(
    runs: Runs,
    *,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Also write a file: .html, .md, .csv or .json."),
    ] = None,
    threads: Annotated[
        int,
        typer.Option("--threads", min=1, max=256, help="Threads that measure masks."),
    ] = 1,
) -> None:
    """Score the same predictions under every published rule, and say which papers each is comparable with.

    Shows the spread, the questions each rule leaves out, and pairs of runs whose order depends on the rule.

    Example: maskwise ladder runs/photo runs/saliency --out ladder.html
    """
    from maskwise.cli.ladder_table import print_ladder
    from maskwise.cli.output import print_json
    from maskwise.harness.ladder import ladder as make_ladder
    from maskwise.report.ladder_page import ladder_to_html
    from maskwise.report.ladder_text import (
        ladder_to_csv,
        ladder_to_json,
        ladder_to_markdown,
    )
    from maskwise.runs.files import RUN

    last_is_run = (Path(runs[-1]) / RUN).is_file()
    if not last_is_run and len(runs) == 1:
        raise typer.BadParameter(
            f"{runs[0]} is not a run folder: give its dataset too, as in "
            "`maskwise ladder predictions.jsonl reasonseg_val`",
            param_hint="DATASET",
        )
    dataset = None if last_is_run else runs[-1]
    given = runs if last_is_run else runs[:-1]
    result = make_ladder(given, dataset, threads=threads)
    if out is not None:
        writers = {
            ".html": ladder_to_html,
            ".md": ladder_to_markdown,
            ".csv": ladder_to_csv,
            ".json": ladder_to_json,
        }
        suffix = out.suffix.lower()
        if suffix not in writers:
            raise StoreError(
                f"{out}: cannot tell what to write; expected .html, .md, .csv or .json"
            )
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(safe_text(writers[suffix](result)), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{out} cannot be written: {error}") from None
        echo(f"wrote {out}", err=True)
    if as_json:
        print_json(result)
    else:
        print_ladder(result)

"""`maskwise explain`: why a run loses points, or two runs lose different ones."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import AsJson, ImagesFolder, RunFolder, argument
from maskwise.cli.output import format_json, print_json, write_text
from maskwise.errors import StoreError


def explain(
    run: RunFolder,
    other: Annotated[
        Path | None, argument("[RUN2]", "Another run on the same dataset.")
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Also write a file: .html, .md or .json."),
    ] = None,
    as_json: AsJson = False,
    images: ImagesFolder = None,
) -> None:
    """Split the lost points of a run (strict gIoU) into faults that add up to the loss.

    Faults: failed, silent, invented, wrong target, missed target, extra region, wrong mask type, visible boundary,
    missing completion, over-completion. With two runs: what each fault costs the second one more.

    Example: maskwise explain runs/tiny --out explain.html
    """
    from maskwise.cli.explanation_table import print_difference, print_explanation
    from maskwise.report.explanation import (
        check_same_questions,
        difference_of,
        explain_run,
    )
    from maskwise.report.explanation_page import (
        explained_pair_to_html,
        explained_run_to_html,
    )
    from maskwise.report.explanation_text import (
        difference_to_markdown,
        explanation_to_markdown,
    )
    from maskwise.report.run_data import RunPaths
    from maskwise.runs import load_run

    suffix = "" if out is None else out.suffix.lower()
    if suffix not in ("", ".html", ".md", ".json"):
        raise StoreError(
            f"{out}: cannot tell what to write; expected .html, .md or .json"
        )
    runs = [load_run(path) for path in (run, other) if path is not None]
    if len(runs) == 2:
        check_same_questions(*runs)
    paths = RunPaths(images=images)
    explained = [explain_run(item, paths=paths) for item in runs]
    first = explained[0].explanation
    difference = difference_of(*explained) if len(explained) == 2 else None
    if suffix == ".html":
        page = (
            explained_run_to_html(explained[0])
            if difference is None
            else explained_pair_to_html(*explained)
        )
        write_text(page, out)
    elif suffix == ".md":
        text = (
            explanation_to_markdown(first)
            if difference is None
            else difference_to_markdown(difference)
        )
        write_text(text, out)
    elif suffix == ".json":
        write_text(format_json(difference or first), out)
    if as_json:
        print_json(difference or first)
    elif difference is None:
        print_explanation(first)
    else:
        print_difference(difference)

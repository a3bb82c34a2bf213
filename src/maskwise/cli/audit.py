"""`maskwise audit` and `maskwise rescore`: which labels are doubtful, and what correcting them changes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.cli.hints import refuse_repeated_runs
from maskwise.cli.options import SEVERAL, AsJson, DatasetName, Overwrite, argument
from maskwise.cli.output import format_json, print_json, write_text
from maskwise.errors import MaskwiseError, StoreError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.auditing.doubts import Audit
    from maskwise.runs import Run
    from maskwise.store import Dataset

PAGE_SAMPLES = 60
"""Samples on a page: each adds about 60 kB."""


def audit(
    dataset: DatasetName,
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--runs",
            metavar="RUN",
            help=f"A run of a good model on this dataset; two or more see what no rule can. {SEVERAL}",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Also write audit.json for `maskwise review start --first`, or a page (.html) or table (.md).",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=1000, help="Samples to print.")] = 20,
    corrected: Annotated[
        Path | None,
        typer.Option(
            help="Write the dataset as people decided in its review: fixed ones fixed, rejected ones left out, all "
            "others as they are.",
            show_default=False,
        ),
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(
            help="With --corrected: the database of the review, if not beside the dataset.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Rank the samples of a dataset whose truth is doubtful, for people to look at first.

    Checks: visible pixels outside the amodal mask, slivers, empty and tiny masks, questions that repeat or contradict
    each other, mask types against the wording, answers that do not name their targets, and runs that agree against
    the truth or its boundary. Then: maskwise review start DATASET --first audit.json, and --corrected when people are
    done.

    Example: maskwise audit data/val --runs runs/a --runs runs/b --out audit.json
    """
    from maskwise.auditing.audit import audit as audit_data
    from maskwise.datasets import load_dataset
    from maskwise.runs import load_run

    if corrected is not None:
        if runs or out is not None:
            raise MaskwiseError(
                "--corrected writes what people decided; leave out --runs and --out"
            )
        _write_corrected(dataset, corrected, db, overwrite=overwrite, as_json=as_json)
        return
    if db is not None:
        raise MaskwiseError("--db is for --corrected")
    if out is not None and out.suffix.lower() not in (".json", ".html", ".md"):
        raise StoreError(
            f"{out}: cannot tell what to write; expected .json, .html or .md"
        )
    refuse_repeated_runs(runs or ())
    opened_runs = [load_run(run) for run in runs or ()]
    opened = load_dataset(dataset)
    result = audit_data(opened, runs=opened_runs)
    if out is not None:
        write_text(_to_text(result, opened, opened_runs, out, top), out)
    if as_json:
        print_json(result)
    else:
        _print_audit(result, top)


def _to_text(
    result: "Audit", dataset: "Dataset", runs: "list[Run]", out: Path, top: int
) -> str:
    from maskwise.auditing.audit_page import audit_to_html, audit_to_markdown

    suffix = out.suffix.lower()
    if suffix == ".html":
        return audit_to_html(result, dataset, runs, top=max(top, PAGE_SAMPLES))
    if suffix == ".md":
        return audit_to_markdown(result, top=top)
    return format_json(result)


def _print_audit(result: "Audit", top: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from maskwise.auditing.audit_page import describe
    from maskwise.console import make_console

    console = make_console(highlight=False)
    counts = [
        f"{check.samples} {name.replace('_', ' ')}"
        for name, check in result.checks.items()
        if check.samples
    ]
    console.print(
        Text(
            f"{result.dataset}: {len(result.doubtful)} of {result.samples} samples are doubtful"
            + (f" ({', '.join(counts)})" if counts else "")
        )
    )
    if result.coverage:
        console.print(Text(result.coverage))
    if not result.doubtful:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("doubt", justify="right")
    table.add_column("sample")
    table.add_column("why")
    for item in result.doubtful[:top]:
        table.add_row(f"{item.strength:.2f}", Text(item.sample), Text(describe(item)))
    console.print(table)


def _write_corrected(
    dataset: str, out: Path, db: str | None, *, overwrite: bool, as_json: bool
) -> None:
    from maskwise.cli.review import open_begun

    review = open_begun([dataset], db)
    from maskwise.review.export import export_review

    summary = export_review(review, out, keep_undecided=True, overwrite=overwrite)
    if as_json:
        print_json(summary)
        return
    statuses = [
        f"{count} {status}" for status, count in sorted(summary.statuses.items())
    ]
    echo(
        f"{out}: {summary.written} samples of {summary.images} images ({', '.join(statuses)})"
    )
    echo(f"next: maskwise rescore RUN... {out}")


def rescore(
    runs: Annotated[
        list[str],
        argument(
            "RUN... DATASET",
            "Runs on the dataset as it was, then its corrected version.",
        ),
    ],
    *,
    protocol: Annotated[
        str | None, typer.Option(help="The protocol.", show_default="strict")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write a file: .md or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score runs again on a corrected dataset: each before and after, and whether their order changes.

    Nothing is predicted again. The change is measured on the questions that both versions have.

    Example: maskwise rescore runs/a runs/b data/val_corrected
    """
    from rich.table import Table
    from rich.text import Text

    from maskwise.console import make_console
    from maskwise.harness.rescore import rescore as rescore_runs
    from maskwise.harness.rescoring_text import (
        COLUMNS,
        describe_versions,
        rescoring_rows,
    )
    from maskwise.report.ladder_text import markdown_table
    from maskwise.terminal import safe_markdown

    if out is not None and out.suffix.lower() not in (".md", ".json"):
        raise StoreError(f"{out}: cannot tell what to write; expected .md or .json")
    if len(runs) == 1:
        raise typer.BadParameter(
            "give the runs and then the corrected dataset, as in `maskwise rescore runs/a data/val_corrected`",
            param_hint="DATASET",
        )
    *given, dataset = runs
    result = rescore_runs(given, dataset, protocol=protocol)
    rows = rescoring_rows(result)
    if out is not None and out.suffix.lower() == ".json":
        write_text(format_json(result), out)
    elif out is not None:
        sentence = safe_markdown(describe_versions(result))
        lines = [sentence, "", *markdown_table(COLUMNS, rows), ""]
        write_text("\n".join(lines), out)
    if as_json:
        print_json(result)
        return
    console = make_console(highlight=False)
    console.print(Text(describe_versions(result)))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in COLUMNS:
        table.add_column(title, justify="left" if title == COLUMNS[0] else "right")
    for cells in rows:
        table.add_row(*map(Text, cells))
    console.print(table)

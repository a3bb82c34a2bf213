"""An audit as one offline page, and as Markdown: the most doubtful samples, drawn, with why each is doubtful."""

from collections.abc import Sequence

from maskwise.auditing.doubts import CHECKS, Audit, DoubtfulSample
from maskwise.errors import MaskwiseError
from maskwise.report.formatting import shorten
from maskwise.report.gallery import Gallery, GalleryRun, fill_gallery
from maskwise.report.ladder_text import markdown_table
from maskwise.report.render import render
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.runs import Run
from maskwise.store import Dataset
from maskwise.terminal import safe_markdown

MAX_NAME = 80
MAX_RUNS = 3
"""Runs whose predictions are drawn beside the truth: a card has no room for more."""


def check_label(check: str) -> str:
    """A check in words."""
    return check.replace("_", " ")


def audit_to_html(
    audit: Audit, dataset: Dataset, runs: Sequence[Run] = (), *, top: int = 60
) -> str:
    """One offline page below 10 MB with the `top` most doubtful samples."""
    return render(
        "audit.html",
        audit=audit,
        checks=[
            (check_label(name), meaning, audit.checks[name])
            for name, meaning in CHECKS.items()
        ],
        top=min(top, len(audit.doubtful)),
        gallery=_gallery(audit.doubtful[:top], dataset, runs),
    )


def audit_to_markdown(audit: Audit, *, top: int) -> str:
    """The most doubtful samples as a table."""
    rows = [
        (item.sample, f"{item.strength:.2f}", item.question, describe(item))
        for item in audit.doubtful[:top]
    ]
    lines = [
        f"# {safe_markdown(audit.dataset)}: doubtful labels",
        "",
        f"{len(audit.doubtful)} of {audit.samples} samples are doubtful. {audit.coverage}".rstrip(),
        "",
        *markdown_table(("sample", "doubt", "question", "why"), rows),
        "",
    ]
    return "\n".join(lines)


def describe(item: DoubtfulSample) -> str:
    """Why a sample is doubtful, in one line."""
    return "; ".join(doubt.message for doubt in item.doubts)


def _gallery(
    items: Sequence[DoubtfulSample], dataset: Dataset, runs: Sequence[Run]
) -> Gallery:
    """The samples in their order, each under its strongest doubt."""
    row_of = dataset.samples.row
    selected = []
    notes = {}
    for item in items:
        row = row_of[item.sample]
        selected.append((check_label(item.doubts[0].check), row))
        notes[row] = f"Doubt {item.strength:.2f}: {describe(item)}"
    shown = []
    for run in runs[:MAX_RUNS]:
        # The scores of a run on another version of the dataset are in another order.
        if run.ids != dataset.samples.id:
            continue
        try:
            data = load_run_data(run, RunPaths(truth=dataset.path))
        except MaskwiseError:
            continue
        rows = run.rows(run.main_protocol())
        shown.append(GalleryRun(shorten(run.name, MAX_NAME), data, rows))
    return fill_gallery(selected, shown, dataset=dataset, notes=notes, grouped=False)

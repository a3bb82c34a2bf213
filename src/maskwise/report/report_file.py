"""Write the report of a run to a file: a page, Markdown or JSON, as its suffix says."""

from pathlib import Path
from typing import Literal

import msgspec

from maskwise.errors import StoreError
from maskwise.report.report_page import run_to_html
from maskwise.report.report_text import run_to_markdown, run_to_summary
from maskwise.report.run_data import RunData, RunPaths
from maskwise.runs import Run
from maskwise.store.atomic import atomic_write
from maskwise.terminal import safe_text

ReportFormat = Literal["html", "md", "json"]

SUFFIXES: dict[str, ReportFormat] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
}


def write_report(
    run: Run,
    path: str | Path,
    *,
    format: ReportFormat | None = None,
    protocol: str | None = None,
    samples: int = 12,
    paths: RunPaths | None = None,
    data: RunData | None = None,
) -> Path:
    """Write a report and return its path. format: if not the one of the suffix. Otherwise as `format_report`."""
    out = Path(path)
    text = format_report(
        run,
        format or detect_format(out),
        protocol=protocol,
        samples=samples,
        paths=paths,
        data=data,
    )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(out) as file:
            # People look at files in a terminal, too.
            file.write(safe_text(text).encode())
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error}") from None
    return out


def format_report(
    run: Run,
    format: ReportFormat,
    *,
    protocol: str | None = None,
    samples: int = 12,
    paths: RunPaths | None = None,
    data: RunData | None = None,
) -> str:
    """The text of a report. protocol: shown first; samples: of each kind in the gallery of a page.

    paths, data: as for `run_to_html`.
    """
    if format == "html":
        return run_to_html(
            run, protocol=protocol, samples=samples, paths=paths, data=data
        )
    if format == "md":
        return run_to_markdown(run, protocol=protocol)
    return (
        msgspec.json.format(msgspec.json.encode(run_to_summary(run)), indent=2).decode()
        + "\n"
    )


def detect_format(path: Path) -> ReportFormat:
    """The format of a suffix; StoreError lists the known ones."""
    if path.suffix.lower() not in SUFFIXES:
        raise StoreError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}")
    return SUFFIXES[path.suffix.lower()]

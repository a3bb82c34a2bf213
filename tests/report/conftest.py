"""Runs that several tests read; none changes them."""

from pathlib import Path

import pytest

from maskwise.report.report_page import run_to_html
from maskwise.runs import Run, load_run
from tests.report.pages import Page
from tests.report.runs import hostile, make_dataset, make_predictions, make_run


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, predictions `near.jsonl` and `far.jsonl`, and a run of each: `near` and `far`."""
    folder = tmp_path_factory.mktemp("toy")
    data = make_dataset(folder / "data")
    for name, shift in (("near", 0), ("far", 6)):
        make_run(
            folder / name,
            data,
            make_predictions(folder / f"{name}.jsonl", data, shift=shift),
        )
    return folder


@pytest.fixture(scope="session")
def run(toy: Path) -> Run:
    return load_run(toy / "far")


@pytest.fixture(scope="session")
def page(run: Run) -> Page:
    return Page(run_to_html(run))


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("hostile")
    data = make_dataset(folder / "data", words=hostile)
    predictions = make_predictions(
        folder / "<img src=x onerror=alert(3)>.jsonl", data, words=hostile
    )
    return make_run(folder / "run", data, predictions)

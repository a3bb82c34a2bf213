"""A dataset, predictions for it, and the run of scoring them."""

from pathlib import Path

import pytest

from maskwise.runs import Run, load_run
from tests.report.runs import make_dataset, make_predictions, make_run


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    dataset = make_dataset(folder / "data")
    make_run(
        folder / "far",
        dataset,
        make_predictions(folder / "far.jsonl", dataset, shift=6),
    )
    return folder


@pytest.fixture(scope="session")
def run(toy: Path) -> Run:
    return load_run(toy / "far")

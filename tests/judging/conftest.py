"""A dataset and a run that every test of judging may read; tests that write copy the run."""

from pathlib import Path

import pytest

from tests.judging.cases import make_dataset, make_run


@pytest.fixture(scope="session")
def judged_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("judging") / "cups")


@pytest.fixture(scope="session")
def original_run(
    tmp_path_factory: pytest.TempPathFactory, judged_dataset: Path
) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "mine", judged_dataset)


@pytest.fixture
def run_folder(tmp_path: Path, judged_dataset: Path) -> Path:
    return make_run(tmp_path / "mine", judged_dataset)

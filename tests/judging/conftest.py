"""A dataset, a run on it that a test may write into, and a scripted provider."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judging.cases import make_dataset, make_run
from tests.writers.providers import Provider, serve_provider


@pytest.fixture(scope="session")
def judged_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("judging") / "cups")


@pytest.fixture
def run_folder(tmp_path: Path, judged_dataset: Path) -> Path:
    return make_run(tmp_path / "mine", judged_dataset)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serve_provider() as served:
        yield served

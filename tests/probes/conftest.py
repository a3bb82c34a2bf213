"""Scenes that all tests of probes share."""

import pytest

from maskwise.store import Dataset
from maskwise.world import write_scenes


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """14 small scenes with three questions each."""
    folder = tmp_path_factory.mktemp("scenes") / "world"
    write_scenes(folder, 14, seed=5, split="test", size=96, questions=3)
    return Dataset.open(folder)

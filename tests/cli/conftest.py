"""A small dataset, and runs on it, made once for the tests of commands."""

from pathlib import Path

import pytest

from tests.cli.commands import run


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of three procedural scenes with six questions each."""
    folder = tmp_path_factory.mktemp("cli") / "scenes"
    run("world", "--scenes", 3, "--seed", 7, "--out", folder)
    return folder


@pytest.fixture(scope="session")
def oracle_run(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model that knows the ground truth."""
    folder = tmp_path_factory.mktemp("runs") / "oracle"
    run("eval", scenes, "--model", "oracle", "--protocol", "strict", "--out", folder)
    return folder


@pytest.fixture(scope="session")
def whole_image_run(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model that answers every question with the whole image."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    model = ("--model", "whole-image")
    run("eval", scenes, *model, "--protocol", "strict", "--out", folder)
    return folder

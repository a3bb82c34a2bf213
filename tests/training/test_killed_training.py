"""Training runs killed again and again inside their checkpoints end as one that was left alone."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("transformers", reason="the extra `vlm` is not installed")

from tests.training.completion.test_completion_training import write_dataset
from tests.training.killed_training import TRAINERS, train

pytestmark = pytest.mark.posix


MEASURED = {"seconds_per_step", "tokens_per_second", "memory_gb"}
"""Columns of a training curve that differ from run to run."""


def read_results(folder: Path) -> dict[str, Any]:
    """The weights after every stage, the best ones, the exported networks of small models, and the curves."""
    patterns = ("stages/*.safetensors", "checkpoints/*/best/*", "*.onnx")
    files = [path for pattern in patterns for path in folder.glob(pattern)]
    assert files
    results: dict[str, Any] = {
        str(path.relative_to(folder)): path.read_bytes() for path in files
    }
    for path in folder.glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        results[path.name] = [
            {name: value for name, value in row.items() if name not in MEASURED}
            for row in rows
        ]
    return results


def kill_and_compare(name: str, folder: Path, kills: int) -> int:
    """Kill a run at later and later changes of its folder until it ends by itself; returns how often it was killed."""
    if name == "completion":
        write_dataset(folder / "discs")
    log = folder / "log"
    assert train(name, folder / "straight", log) == 0, log.read_text()
    killed = 0
    for kill_at in range(1, 10_000):
        # After `kills` kills the run may end.
        code = train(name, folder / "run", log, kill_at if killed < kills else 0)
        if code == 0:
            break
        assert code == -signal.SIGKILL, log.read_text()
        killed += 1
    assert read_results(folder / "run") == read_results(folder / "straight")
    print(f"{name}: {killed} kills")
    return killed


@pytest.mark.full
@pytest.mark.parametrize("name", TRAINERS)
def test_kills_inside_checkpoints_do_not_change_the_weights(
    name: str, tmp_path: Path
) -> None:
    assert kill_and_compare(name, tmp_path, kills=40) >= 20

"""Real data that lies beside the project, for tests only."""

import os
from pathlib import Path

import pytest

ROOT = Path(
    os.environ.get("MASKWISE_SHARED", Path(__file__).resolve().parents[2] / "shared")
)


def shared(*parts: str) -> Path:
    """A file or folder of the shared data; skips the test, saying why, where it is absent."""
    path = ROOT.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"needs {path}, which is not here (set MASKWISE_SHARED to the folder that holds it)"
        )
    return path

"""The server of a real language model, started once; `make test-llm` makes its environment."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
PROGRAM = FOLDER.parent.parent / ".cache" / "llm" / "bin" / "python"


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of the chat completions."""
    try:
        process = subprocess.Popen(
            [PROGRAM, FOLDER / "serve.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError as error:
        pytest.skip(f"the environment was not made (make test-llm): {error}")
    with process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line:
            pytest.skip("the server did not start: its environment is not complete")
        yield f"{line}/v1"
        assert process.stdin is not None
        process.stdin.close()

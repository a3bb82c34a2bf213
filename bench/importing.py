"""What `import maskwise` costs: time beyond that of a bare interpreter, and whether numpy is loaded."""

import subprocess
import sys
import time

REPEATS = 15
WANTED_SECONDS = 0.1

LIST_HEAVY = "import sys, maskwise; print(*sorted({'numpy', 'pyarrow', 'PIL', 'scipy', 'torch'} & set(sys.modules)))"


def section() -> str:
    """A table in Markdown."""
    bare = _least_seconds("pass")
    ours = _least_seconds("import maskwise")
    loaded = _run(LIST_HEAVY).strip() or "none"
    rows = [
        ("`python -c pass`", f"{bare * 1e3:.0f} ms"),
        ("`python -c 'import maskwise'`", f"{ours * 1e3:.0f} ms"),
        (
            f"**the import itself** (wanted: at most {WANTED_SECONDS * 1e3:.0f} ms)",
            f"**{(ours - bare) * 1e3:.0f} ms**",
        ),
        (
            "of numpy, pyarrow, PIL, scipy and torch, loaded by it (wanted: none)",
            loaded,
        ),
    ]
    lines = [f"| {name} | {value} |" for name, value in rows]
    return (
        "\n".join(
            [
                f"## Importing, least wall time of {REPEATS}",
                "",
                "| | |",
                "|---|--:|",
                *lines,
            ]
        )
        + "\n"
    )


def _least_seconds(code: str) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        before = time.perf_counter()
        _run(code)
        best = min(best, time.perf_counter() - before)
    return best


def _run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout

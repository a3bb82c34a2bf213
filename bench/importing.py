"""What it costs to start: `import maskwise`, and commands that should answer at once."""

import resource
import subprocess
import sys

from bench.sizes import choose

REPEATS = choose(15, 1)

WANTED_IMPORT_SECONDS = 0.1
"""Of processor time, beyond that of a bare interpreter."""

WANTED_COMMAND_SECONDS = {
    "--version": 0.2,
    "--help": 0.4,
    "ls": 0.4,
    "eval --help": 0.4,
}
"""Processor time with that of the interpreter, from which a command seems to answer at once."""

LIST_HEAVY = "import sys, maskwise; print(*sorted({'numpy', 'pyarrow', 'PIL', 'scipy', 'torch'} & set(sys.modules)))"


def sections() -> list[str]:
    """A table in Markdown."""
    return [section()]


def section() -> str:
    """What starting costs."""
    bare_seconds = _least_seconds("-c", "pass")
    import_seconds = _least_seconds("-c", "import maskwise") - bare_seconds
    heavy_modules = _run("-c", LIST_HEAVY).strip() or "none"
    rows = [
        ("`python -c pass`", _milliseconds(bare_seconds), ""),
        (
            "`import maskwise`, beyond that",
            _milliseconds(import_seconds),
            _milliseconds(WANTED_IMPORT_SECONDS),
        ),
        ("of numpy, pyarrow, PIL, scipy and torch it loads", heavy_modules, "none"),
    ]
    for command, wanted_seconds in WANTED_COMMAND_SECONDS.items():
        seconds = _least_seconds("-m", "maskwise", *command.split())
        rows.append(
            (
                f"`maskwise {command}`",
                _milliseconds(seconds),
                _milliseconds(wanted_seconds),
            )
        )
    lines = [f"| {what} | {value} | {wanted} |" for what, value, wanted in rows]
    title = f"## Starting, least processor time (user and system) of {REPEATS}"
    header = ["| | measured | wanted, at most |", "|---|--:|--:|"]
    return "\n".join([title, "", *header, *lines, ""])


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


def _least_seconds(*arguments: str) -> float:
    """Processor time of a Python program, in user and in system mode."""
    least = float("inf")
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        system = after.ru_stime - before.ru_stime
        least = min(least, user + system)
    return least


def _run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    print(section())

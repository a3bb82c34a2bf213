"""A whole `maskwise build` in a process of its own that kills itself at a chosen step."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maskwise.builder import pipeline
from maskwise.cli.main import main
from maskwise.store import DatasetWriter
from maskwise.writers import Ledger

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["anthropic", "openai", "maskwise.language.intent", __name__]
)

WATCHED: tuple[tuple[Any, str], ...] = (
    (Ledger, "record_sent"),
    (Ledger, "record_batch"),
    (Ledger, "record_answered"),
    (Ledger, "finish_batch"),
    (DatasetWriter, "add_image"),
    (DatasetWriter, "__exit__"),
    (pipeline, "write_build_report"),
)
"""Between these, a build only computes."""


def run_build(arguments: list[str], log: Path, kill_at: int = 0) -> int | None:
    """Run the command; it dies before or after step `kill_at`. Returns the exit code; the log holds the steps."""
    variables = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(("ANTHROPIC_", "OPENAI_"))
    }
    process = CONTEXT.Process(target=_run, args=(arguments, log, kill_at, variables))
    process.start()
    process.join()
    return process.exitcode


def _run(
    arguments: list[str], log: Path, kill_at: int, variables: dict[str, str]
) -> None:
    os.environ.update(variables)
    steps = 0
    lock = threading.Lock()

    def step() -> None:
        nonlocal steps
        with lock:
            steps += 1
            if steps == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            step()
            result = function(*args, **kwargs)
            step()
            return result

        return call

    for owner, name in WATCHED:
        setattr(owner, name, watched(getattr(owner, name)))
    sys.argv = ["maskwise", *arguments]
    with open(log, "w") as file:
        sys.stdout = sys.stderr = file
        try:
            main()
        finally:
            file.write(f"\nsteps {steps}\n")

"""A run of a writer in a process of its own that kills itself at a chosen step."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maskwise.writers import (
    CompletionRequest,
    Ledger,
    SendLimits,
    complete,
    open_client,
)
from maskwise.writers.cost import ModelPrice

REQUESTS = 8
IN_FLIGHT = 4

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["anthropic", "openai", __name__])


def run_writer(
    path: Path, name: str, *, batch_size: int, kill_at: int = 0
) -> int | None:
    """Complete eight requests, four at a time; returns the exit code of the process."""
    variables = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(("ANTHROPIC_", "OPENAI_"))
    }
    process = CONTEXT.Process(
        target=_run, args=(path, name, batch_size, kill_at, variables)
    )
    process.start()
    process.join()
    return process.exitcode


def _run(
    path: Path, name: str, batch_size: int, kill_at: int, variables: dict[str, str]
) -> None:
    os.environ.update(variables)
    steps = 0
    lock = threading.Lock()

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        """Before and after every call, one step passes; the process dies at step `kill_at`."""

        def step() -> None:
            nonlocal steps
            with lock:
                steps += 1
                if steps == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        def call(*args: Any, **kwargs: Any) -> Any:
            step()
            result = function(*args, **kwargs)
            step()
            return result

        return call

    for method in ("record_sent", "record_batch", "record_answered", "finish_batch"):
        setattr(Ledger, method, watched(getattr(Ledger, method)))
    client = open_client(name, model="test")
    client.submit = watched(client.submit)  # type: ignore[method-assign]
    requests = [
        CompletionRequest(
            prompt_version="1", system="s", text=str(number), schema={"type": "object"}
        )
        for number in range(REQUESTS)
    ]
    limits = SendLimits(poll_seconds=0.0, batch_size=batch_size, concurrency=IN_FLIGHT)
    with Ledger(path) as ledger:
        done = complete(
            requests,
            client,
            ledger,
            price=ModelPrice(input=1.0, output=1.0),
            limits=limits,
        )
        assert [one.status for one in done] == ["ok"] * REQUESTS

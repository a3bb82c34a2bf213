"""Signals that end a training run: the loop answers them when the step that runs is done."""

import contextlib
import signal
import threading
from collections.abc import Iterator

NAMES = ("SIGTERM", "SIGHUP")
"""What schedulers send before they kill a job. Ctrl-C ends at once: a second of waiting would be felt."""


@contextlib.contextmanager
def noting_signals() -> Iterator[list[int]]:
    """A list that gets the number of each signal that arrives, in place of what the signal does otherwise."""
    arrived: list[int] = []
    handlers = {}
    # Only the main thread may set handlers; workers of Ray train in another one.
    if threading.current_thread() is threading.main_thread():
        for name in NAMES:
            number = getattr(signal, name, None)
            if number is not None:
                handlers[number] = signal.signal(
                    number, lambda received, _frame: arrived.append(received)
                )
    try:
        yield arrived
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

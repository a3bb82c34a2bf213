"""The program `maskwise`, also `python -m maskwise`.

Ctrl-C ends it quietly while it still loads, and a model call that still runs does not disturb its end.
"""

import atexit
import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended: 128 + SIGINT."""


def main() -> None:
    """Load the command line and run it."""
    code = 1  # that of an error which nobody expected

    def end() -> None:
        # Python stops daemon threads as it ends; one in C++ code, as a model call past
        # its time limit, would abort the program.
        if any(thread.daemon for thread in threading.enumerate()):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    # Exit handlers run in reverse order: the first one sees the others done.
    atexit.register(end)
    # A shell that starts the program in the background lets it ignore Ctrl-C; that stays.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _exit)
    from maskwise.cli.main import main as run_command_line  # noqa: PLC0415

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_command_line()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(bool(ending.code))
        raise


def _exit(_signal: int, _frame: FrameType | None) -> None:
    # An exception here would pass through half-loaded modules, which print or replace it.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

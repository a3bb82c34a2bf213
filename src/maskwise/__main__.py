"""The program `maskwise`, also `python -m maskwise`: Ctrl-C ends it quietly while it still loads."""

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended: 128 + SIGINT."""


def main() -> None:
    """Load the command line and run it."""
    # A shell that starts the program in the background lets it ignore Ctrl-C; that stays.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _exit)
    from maskwise.cli.main import main as run_command_line  # noqa: PLC0415

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run_command_line()


def _exit(_signal: int, _frame: FrameType | None) -> None:
    # An exception here would pass through half-loaded modules, which print or replace it.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

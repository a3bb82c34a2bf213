"""Time for tests of children that hang: nothing is waited out, and nothing else runs out of time."""

import time
from pathlib import Path

JUMP = 1e6


class Clock:
    """Runs as always, and jumps ahead whenever the log of a child says that it will not answer in time."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def monotonic(self) -> float:
        said = self.log.read_bytes() if self.log.exists() else b""
        return time.monotonic() + JUMP * said.count(b"not in time")

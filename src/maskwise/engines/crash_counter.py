"""A counter that outlives crashing workers."""

from collections import Counter


class CrashCounter:
    """Counts tasks that were started and not finished.

    It lives in an actor of its own, so it survives the workers.
    """

    def __init__(self) -> None:
        self._started: Counter[str] = Counter()

    def begin(self, task: str) -> int:
        """How often this task was started since it last finished, this time included."""
        self._started[task] += 1
        return self._started[task]

    def end(self, task: str) -> None:
        """The task finished."""
        self._started.pop(task, None)

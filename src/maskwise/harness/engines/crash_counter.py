"""What outlives the workers: how often each thing was begun and not ended."""

from collections import Counter


class CrashCounter:
    """Counts beginnings. Lives in an actor of its own, so that it remembers at what the others died."""

    def __init__(self) -> None:
        self._begun: Counter[str] = Counter()

    def begin(self, what: str) -> int:
        """How often this was begun since it last ended, this time included."""
        self._begun[what] += 1
        return self._begun[what]

    def end(self, what: str) -> None:
        """It went well."""
        self._begun.pop(what, None)

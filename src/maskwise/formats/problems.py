"""What a reader met that does not follow its format: records it skipped, oddities it kept, counted by reason."""

from collections import Counter
from collections.abc import Callable

import msgspec

from maskwise.errors import SourceError

MAX_SHOWN = 120
"""How many characters of a value a problem quotes."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `problems.jsonl`. `kept`: the record is used as it is; otherwise it was skipped."""

    reason: str
    file: str
    record: str
    expected: str
    found: str
    kept: bool = False

    def __str__(self) -> str:
        return f"{self.file}, {self.record}: {self.reason}: expected {self.expected}, found {self.found}"


class Problems:
    """Collects problems: `skipped` and `odd` count them by reason, `sink` gets each one as it comes. Where a record
    would be skipped, `strict` raises SourceError instead.
    """

    def __init__(self, sink: Callable[[Problem], object] | None = None, *, strict: bool = False) -> None:
        self.skipped: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.sink, self.strict = sink, strict

    def skip(self, reason: str, *, file: str, record: str, expected: str, found: object) -> None:
        """A record is left out."""
        problem = Problem(reason=reason, file=file, record=record, expected=expected, found=shown(found))
        if self.strict:
            raise SourceError(f"{problem}. Mend the file, or read without strict to skip such records")
        self.skipped[reason] += 1
        self._report(problem)

    def keep(self, reason: str, *, file: str, record: str, expected: str, found: object) -> None:
        """A record is odd but used as it is."""
        self.odd[reason] += 1
        self._report(
            Problem(reason=reason, file=file, record=record, expected=expected, found=shown(found), kept=True)
        )

    def _report(self, problem: Problem) -> None:
        if self.sink is not None:
            self.sink(problem)


def shown(value: object) -> str:
    """A value as a problem quotes it: one line, not too long."""
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"

"""Diagnostics of a reader: records it skipped and irregular records it kept, counted by reason."""

from collections import Counter
from collections.abc import Callable

import msgspec

from maskwise.errors import FormatError

MAX_SHOWN = 120
"""How many characters of a value a diagnostic quotes."""


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `diagnostics.jsonl`. If `kept`, the record is used unchanged; otherwise it was skipped."""

    reason: str
    file: str
    record: str
    expected: str
    found: str
    kept: bool = False

    def __str__(self) -> str:
        return f"{self.file}, {self.record}: {self.reason}: expected {self.expected}, found {self.found}"


class Diagnostics:
    """Collects diagnostics. `skipped` and `warnings` count them by reason; `sink` receives each one.

    With `strict`, FormatError is raised where a record would be skipped.
    """

    def __init__(
        self,
        sink: Callable[[Diagnostic], object] | None = None,
        *,
        strict: bool = False,
    ) -> None:
        self.skipped: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.sink = sink
        self.strict = strict

    def skip(
        self, reason: str, *, file: str, record: str, expected: str, found: object
    ) -> None:
        """Report a record that is not used."""
        diagnostic = Diagnostic(
            reason=reason,
            file=file,
            record=record,
            expected=expected,
            found=quote(found),
        )
        if self.strict:
            raise FormatError(
                f"{diagnostic}. Fix the file, or read without strict to skip such records"
            )
        self.skipped[reason] += 1
        self._report(diagnostic)

    def warn(
        self, reason: str, *, file: str, record: str, expected: str, found: object
    ) -> None:
        """Report a record that is irregular but used."""
        self.warnings[reason] += 1
        self._report(
            Diagnostic(
                reason=reason,
                file=file,
                record=record,
                expected=expected,
                found=quote(found),
                kept=True,
            )
        )

    def _report(self, diagnostic: Diagnostic) -> None:
        if self.sink is not None:
            self.sink(diagnostic)


def quote(value: object) -> str:
    """A value as a diagnostic quotes it: on one line and at most MAX_SHOWN characters."""
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"

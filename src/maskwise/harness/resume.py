"""Resume a run: what predictions.jsonl already contains, and which lines of it a retry replaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from maskwise.errors import StoreError
from maskwise.harness.plan import Plan
from maskwise.store.atomic import atomic_write


@dataclass(frozen=True)
class Completed:
    """The images in a predictions file that are complete.

    images, samples: how many. failed: how many samples failed. end: length in bytes. first_error: why the first one
    failed.
    """

    images: int = 0
    samples: int = 0
    failed: int = 0
    end: int = 0
    first_error: str | None = None


class _Line(msgspec.Struct):
    """The fields of a prediction that are needed to resume. The rest is only checked to be JSON."""

    sample: str
    error: str | None = None


_DECODER = msgspec.json.Decoder(_Line)


def find_completed(path: Path, plan: Plan, ids: Sequence[str]) -> Completed:
    """How much of a plan a predictions file contains, in complete images; nothing if there is no file.

    Each line has to be for the sample that the plan has at its position: a file that was edited is refused.
    """
    rows = plan.rows.tolist()
    offsets = plan.offsets.tolist()
    completed = Completed()
    failed = 0
    end = 0
    first_error = None
    if not path.exists():
        return completed
    with open(path, "rb") as file:
        for number, text in enumerate(file):
            if not text.endswith(b"\n"):
                break
            line = _decode(text, path, number)
            expected = ids[rows[number]] if number < len(rows) else None
            if line.sample != expected:
                raise StoreError(
                    f"{path}, line {number + 1} is for sample {line.sample!r}; expected "
                    f"{'no more lines' if expected is None else repr(expected)}: the file was changed"
                )
            failed = failed + (line.error is not None)
            end = end + len(text)
            first_error = first_error or line.error
            if number + 1 == offsets[completed.images + 1]:
                completed = Completed(
                    completed.images + 1, number + 1, failed, end, first_error
                )
    return completed


def find_failed(path: Path) -> list[int]:
    """Line numbers, from 0, of the predictions that failed."""
    with open(path, "rb") as file:
        return [
            number
            for number, text in enumerate(file)
            if _decode(text, path, number).error is not None
        ]


def replace_lines(path: Path, retry: Path, numbers: Sequence[int]) -> None:
    """Replace these lines of `path` by the lines of `retry`, all or none; `retry` is removed."""
    failed = set(numbers)
    with open(path, "rb") as old, open(retry, "rb") as new, atomic_write(path) as out:
        for number, text in enumerate(old):
            out.write(next(new) if number in failed else text)
    retry.unlink()


def is_replaced(path: Path, retry: Path) -> bool:
    """Whether `path` already contains all lines of `retry`: a kill may happen between replacing and removing.

    The lines of an unfinished retry may equal the old ones. Then `path` has failed lines that `retry` does not contain.
    """
    with open(path, "rb") as whole, open(retry, "rb") as part:
        wanted = next(part, None)
        for number, text in enumerate(whole):
            if text == wanted:
                wanted = next(part, None)
            elif _decode(text, path, number).error is not None:
                return False
        return wanted is None


def _decode(text: bytes, path: Path, number: int) -> _Line:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(
            f"{path}, line {number + 1}: {error}; remove what follows line {number}"
        ) from None

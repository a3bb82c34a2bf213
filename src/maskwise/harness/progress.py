"""What predictions.jsonl holds already, and how far a run has come."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from maskwise.errors import StoreError
from maskwise.harness.engines import ImagePredictions
from maskwise.harness.plan import Plan
from maskwise.harness.record import PARTIAL


class Line(msgspec.Struct):
    """As much of a prediction as is needed to continue; the rest is only checked to be JSON."""

    sample: str
    error: str | None = None


@dataclass(frozen=True)
class Done:
    """Whole images in a file of predictions: how many, their samples, how many of those failed, where they end."""

    images: int = 0
    samples: int = 0
    failed: int = 0
    end: int = 0


@dataclass
class Progress:
    """How far a run has come. `giou` is that of protocol `union` over what was predicted in this session."""

    total: int
    done: int = 0
    failed: int = 0
    judged: int = 0
    iou_sum: float = 0.0

    @property
    def giou(self) -> float | None:
        """Between 0 and 1; None before the first."""
        return self.iou_sum / self.judged if self.judged else None

    def add(self, answered: ImagePredictions) -> None:
        """Count the answers to one image."""
        self.done += len(answered.predictions)
        self.failed += sum(prediction.error is not None for prediction in answered.predictions)
        for iou in answered.ious:
            if iou is not None:
                self.judged += 1
                self.iou_sum += iou


def find_done(path: Path, plan: Plan, ids: Sequence[str]) -> Done:
    """How much of a plan a file holds, in whole images; nothing where there is no file.

    Every line has to be for the sample the plan has there: a file that was changed by hand is refused, not mixed.
    """
    decode = msgspec.json.Decoder(Line).decode
    rows, offsets = plan.rows.tolist(), plan.offsets.tolist()
    done, failed, end = Done(), 0, 0
    if not path.exists():
        return done
    with open(path, "rb") as file:
        for number, text in enumerate(file):
            if not text.endswith(b"\n"):
                break
            try:
                line = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise StoreError(
                    f"{path}, line {number + 1}: {error}; remove what follows line {number}"
                ) from None
            wanted = ids[rows[number]] if number < len(rows) else None
            if line.sample != wanted:
                raise StoreError(
                    f"{path}, line {number + 1} is for sample {line.sample!r}; expected "
                    f"{'no more lines' if wanted is None else repr(wanted)}: it is not as this run left it"
                )
            failed, end = failed + (line.error is not None), end + len(text)
            if number + 1 == offsets[done.images + 1]:
                done = Done(done.images + 1, number + 1, failed, end)
    return done


def find_failed(path: Path) -> list[int]:
    """Line numbers, from 0, of the predictions that failed."""
    decode = msgspec.json.Decoder(Line).decode
    with open(path, "rb") as file:
        return [number for number, text in enumerate(file) if decode(text).error is not None]


def replace_lines(path: Path, again: Path, numbers: Sequence[int]) -> None:
    """Put the lines of `again` in place of these lines of `path`, whole or not at all; `again` is gone then."""
    failed = set(numbers)
    beside = path.with_name(path.name + PARTIAL)
    with open(path, "rb") as old, open(again, "rb") as new, open(beside, "wb") as out:
        for number, text in enumerate(old):
            out.write(next(new) if number in failed else text)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
    again.unlink()


def is_replaced(path: Path, again: Path) -> bool:
    """Whether all lines of `again` are in `path` already: a kill may come between replacing and removing.

    A retry cut short may have failed as before, so far. Then failed lines of `path` are left that it does not have.
    """
    decode = msgspec.json.Decoder(Line).decode
    with open(path, "rb") as whole, open(again, "rb") as part:
        wanted = next(part, None)
        for text in whole:
            if text == wanted:
                wanted = next(part, None)
            elif decode(text).error is not None:
                return False
        return wanted is None

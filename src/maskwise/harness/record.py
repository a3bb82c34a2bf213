"""run.json from the first moment of an evaluation: what is predicted by what, so that nothing is ever mixed.

A run is `predicting`, then `predicted`, then `scored`. What decides the predictions (dataset, model, draw, teacher
forcing, version) is written before the first of them and compared whenever the run is continued.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from maskwise.errors import StoreError
from maskwise.harness.predictor import ModelInfo
from maskwise.harness.session import Session

RUN, PREDICTIONS = "run.json", "predictions.jsonl"
FORMAT = "maskwise run 2"
PARTIAL = ".partial"
MAX_JSON_BYTES = 2**27

State = Literal["predicting", "predicted", "scored"]


class Formatted(Protocol):
    """A file that says which format it has."""

    @property
    def format(self) -> str:
        """Its name and version."""


T = TypeVar("T", bound=Formatted)


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """Images drawn from a dataset: how many, by which seed."""

    limit: int
    seed: int


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides what is predicted. dataset: SHA-256 of the manifest; draw: None for all images."""

    maskwise: str
    dataset: str
    model: ModelInfo
    teacher_forced: bool = False
    draw: Draw | None = None


class EvaluationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The `evaluation` of run.json. samples, images: how many are asked about; sessions: all starts, oldest first."""

    asked: Asked
    samples: int
    images: int
    sessions: tuple[Session, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """As much of run.json as an evaluation needs to know."""

    format: str
    state: State = "scored"
    evaluation: EvaluationFacts | None = None


def read_record(folder: Path) -> Record | None:
    """The record of a run folder; None where there is none yet."""
    return read_json(folder / RUN, Record, FORMAT) if (folder / RUN).exists() else None


def read_json(path: Path, kind: type[T], format: str) -> T:
    """A JSON file of a run, of bounded size and the format expected."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise StoreError(f"{path} has {path.stat().st_size} bytes, more than a run can")
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, OSError) as error:
        raise StoreError(f"{path} cannot be read: {error}; score the run again") from None
    if found.format != format:
        raise StoreError(f"{path} has format {found.format!r}, expected {format!r}; score the run again")
    return found


def check_asked(folder: Path, asked: Asked) -> EvaluationFacts | None:
    """What was recorded in a folder, if it is what is asked now; None for a new run. Anything else is refused."""
    record = read_record(folder)
    if record is None:
        strangers = [entry.name for entry in folder.iterdir() if not entry.name.endswith(PARTIAL)]
        if strangers:
            raise StoreError(
                f"{folder} holds something that is not a run ({sorted(strangers)[0]}); choose another folder"
            )
        return None
    if record.evaluation is None:
        raise StoreError(f"{folder} holds scores that `maskwise score` made; choose another folder (--out)")
    before, now = (msgspec.json.decode(msgspec.json.encode(one)) for one in (record.evaluation.asked, asked))
    changes = list_changes(before, now)
    if changes:
        raise StoreError(
            f"{folder} was begun otherwise: {'; '.join(changes)}. "
            "Repeat the command as it was, or choose another folder (--out)"
        )
    return record.evaluation


def list_changes(before: Any, now: Any, where: str = "") -> list[str]:
    """What differs between two JSON values, one line each: `model.options.noise was 1, is 2`."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = dict.fromkeys([*before, *now])
        return [
            line
            for key in keys
            for line in list_changes(before.get(key), now.get(key), f"{where}.{key}" if where else key)
        ]
    return [] if before == now else [f"{where} was {_show(before)}, is {_show(now)}"]


def write_record(folder: Path, evaluation: EvaluationFacts, state: State, truth: dict[str, Any]) -> None:
    """Write run.json of a run that is not scored, or not any more."""
    write_json(folder / RUN, {"format": FORMAT, "state": state, "truth": truth, "evaluation": evaluation})


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(path.name + PARTIAL)
    with open(beside, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say plainly that a folder cannot be written, and that what is there is safe."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error}. What it holds is kept; mend that and repeat the command"
        ) from error


def _show(value: Any) -> str:
    if value is None:
        return "not given"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."

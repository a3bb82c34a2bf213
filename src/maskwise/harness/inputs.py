"""The inputs of an evaluation: recorded when it begins, compared when it is resumed, so that nothing is mixed."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import StoreError
from maskwise.runs.files import hash_path, list_foreign_files, read_run_file
from maskwise.runs.schema import EvaluationInfo, EvaluationInputs, TableStamp
from maskwise.store import Dataset

MAX_SHOWN = 80
"""Characters of a changed value that are shown."""


def check_inputs(folder: Path, inputs: EvaluationInputs) -> EvaluationInfo | None:
    """The record of a run folder if its inputs are these, None for a new run; StoreError says what differs."""
    info = read_run_file(folder)
    if info is None:
        foreign = list_foreign_files(folder)
        if foreign:
            raise StoreError(
                f"{folder} contains something that is not a run ({foreign[0]}); choose another folder"
            )
        return None
    if info.evaluation is None:
        raise StoreError(
            f"{folder} contains scores made by `maskwise score`; choose another folder (--out)"
        )
    changes = list_changes(
        msgspec.to_builtins(info.evaluation.inputs), msgspec.to_builtins(inputs)
    )
    if changes:
        raise StoreError(
            f"{folder} was started with other inputs: {'; '.join(changes)}. "
            "Repeat the original command, or choose another folder (--out)"
        )
    return info.evaluation


def list_changes(before: Any, now: Any, where: str = "") -> list[str]:
    """The differences between two JSON values, one line each: `model.options.noise was 1, is 2`."""
    if before == now:
        return []
    if not isinstance(before, dict) or not isinstance(now, dict):
        return [f"{where} was {_show(before)}, is {_show(now)}"]
    lines = []
    # A dict keeps the order: fields of the old value first, then new ones.
    for key in dict.fromkeys([*before, *now]):
        place = f"{where}.{key}" if where else key
        lines += list_changes(before.get(key), now.get(key), place)
    return lines


def hash_view(dataset: Dataset) -> str | None:
    """SHA-256 of the sample ids of a view; None for a whole dataset, which its manifest identifies."""
    if len(dataset) == dataset.manifest.counts.get("samples"):
        return None
    return hashlib.sha256(msgspec.json.encode(dataset.samples.id)).hexdigest()


def stamp_tables(dataset: Dataset) -> dict[str, TableStamp]:
    """Size and modification time of the dataset's tables."""
    stamps = {}
    for name in dataset.manifest.files:
        stat = (dataset.path / name).stat()
        stamps[name] = TableStamp(bytes=stat.st_size, modified=stat.st_mtime_ns)
    return stamps


def check_tables(dataset: Dataset, before: dict[str, TableStamp]) -> None:
    """Refuse to resume if a table was edited since the run used it.

    The manifest's own hash does not notice that. A table with another modification time is hashed: one that was only
    copied or touched is accepted.
    """
    for name, stamp in stamp_tables(dataset).items():
        path = dataset.path / name
        expected = dataset.manifest.files[name].sha256
        is_touched = stamp != before.get(name, stamp)
        if is_touched and hash_path(path) != expected:
            raise StoreError(
                f"{path} was changed after the dataset was written, so its samples cannot be added to this run; "
                "restore it (`maskwise validate` checks the dataset), or choose another folder (--out)"
            )


def _show(value: Any) -> str:
    if value is None:
        return "not given"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."

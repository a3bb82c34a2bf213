"""Writing the run folder: what was scored, what came out, and one row per sample (docs/runs.md describes it)."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from maskwise import __version__
from maskwise.errors import StoreError
from maskwise.harness.predictions import Settings, find_form
from maskwise.harness.score import Result, result_to_json
from maskwise.masks import kernel_name
from maskwise.protocols.metrics import SCORED, STATUSES, Scores
from maskwise.store import Codes, Dataset

RUN, SCORES = "run.json", "scores.json"
MAIN = ("giou", "ciou")
"""The metrics that have their own columns in scores.arrow."""


def write_run(
    folder: str | Path,
    result: Result,
    dataset: Dataset,
    *,
    predictions: str | Path,
    form: str | None = None,
    settings: Settings | None = None,
) -> None:
    """Write a run folder; run.json comes last. A run that is there already is replaced, anything else refused."""
    out, source = Path(folder), Path(predictions)
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file; expected a folder for the run")
    if out.is_dir() and any(out.iterdir()) and not (out / SCORES).exists():
        raise StoreError(f"{out} holds something that is not a run; choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    (out / RUN).unlink(missing_ok=True)
    _write_json(out / SCORES, result_to_json(result))
    _write_table(out / "scores.arrow", list(_score_batches(result)))
    _write_table(out / "metrics.arrow", [_metrics_batch(result)])
    _write_json(
        out / RUN,
        {
            "format": "maskwise run 1",
            "maskwise": __version__,
            "kernel": kernel_name(),
            "truth": _describe(dataset, result),
            "predictions": {
                "path": str(source.resolve()),
                "format": form or find_form(source),
                "sha256": hash_path(source),
                "settings": asdict(settings or Settings()),
            },
            "protocols": [
                {"name": name, "options": dict(scores.options)} for name, scores in result.scores.items()
            ],
            "intervals": {**asdict(result.sureness), "cluster": "picture"},
        },
    )


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of the sorted names and hashes of a folder's files."""
    if not path.is_dir():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for member in sorted(item for item in path.rglob("*") if item.is_file()):
        whole.update(f"{member.relative_to(path).as_posix()} {hash_path(member)}\n".encode())
    return whole.hexdigest()


def _describe(dataset: Dataset, result: Result) -> dict[str, Any]:
    return {
        "path": str(dataset.path.resolve()),
        "name": dataset.name,
        "sha256": hash_path(dataset.path / "manifest.json"),
        "samples": len(result.truth),
        "pictures": result.truth.clusters,
    }


def _score_batches(result: Result) -> Iterator[pa.RecordBatch]:
    """One batch a protocol; all share their dictionaries."""
    names = list(result.scores)
    reasons = list(
        dict.fromkeys(text for one in result.scores.values() for text in one.verdicts.reasons if text)
    )
    shared = {
        "sample": _coded(np.arange(len(result.truth)), list(result.truth.ids)),
        "picture": _coded(result.truth.picture, list(result.truth.pictures)),
    }
    slices = {f"slice:{name}": _coded(codes.codes, _labels(codes)) for name, codes in result.slices.items()}
    for item, scores in enumerate(result.scores.values()):
        columns = {
            "protocol": _coded(np.full(len(scores), item), names),
            **shared,
            "status": _coded(scores.verdicts.status, list(STATUSES)),
            **_numbers(scores),
            "reason": _reasons(scores, reasons),
            **slices,
        }
        yield pa.record_batch(columns)


def _numbers(scores: Scores) -> dict[str, pa.Array]:
    giou, ciou = scores.metrics["giou"], scores.metrics["ciou"]
    return {
        "value": pa.array(scores.value, mask=scores.verdicts.status != SCORED),
        "weight": pa.array(giou.denominator.astype(np.float64)),
        "numerator": pa.array(giou.numerator.astype(np.float64)),
        "intersection": pa.array(ciou.numerator.astype(np.int64)),
        "union": pa.array(ciou.denominator.astype(np.int64)),
    }


def _reasons(scores: Scores, reasons: list[str]) -> pa.Array:
    place = {text: item for item, text in enumerate(reasons)}
    codes = np.array([place.get(text, 0) for text in scores.verdicts.reasons], np.int32)[
        scores.verdicts.reason
    ]
    return _coded(codes, reasons, mask=scores.verdicts.reason == 0)


def _metrics_batch(result: Result) -> pa.RecordBatch:
    """Every figure but those of scores.arrow: numerator and denominator of each sample."""
    columns = {
        "sample": pa.array(list(result.truth.ids), pa.string()),
        "picture": _coded(result.truth.picture, list(result.truth.pictures)),
    }
    for protocol, scores in result.scores.items():
        for name, metric in scores.metrics.items():
            if name not in MAIN:
                columns[f"{protocol}/{name}/numerator"] = pa.array(metric.numerator.astype(np.float64))
                columns[f"{protocol}/{name}/denominator"] = pa.array(metric.denominator.astype(np.float64))
    return pa.record_batch(columns)


def _coded(codes: Any, names: list[str], mask: Any = None) -> pa.Array:
    indices = pa.array(np.asarray(codes, np.int32), mask=mask)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))


def _labels(codes: Codes) -> list[str]:
    return [str(name) for name in codes.names]


def _write_table(path: Path, batches: list[pa.RecordBatch]) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, batches[0].schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")

"""Scores in the run folder: what was scored, what came out, and one row per sample (docs/runs.md describes it)."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from maskwise import __version__
from maskwise.errors import StoreError
from maskwise.harness.predictions import ReadOptions, detect_format
from maskwise.harness.record import (
    FORMAT,
    PARTIAL,
    PREDICTIONS,
    RUN,
    EvaluationFacts,
    read_record,
    write_json,
    write_record,
    writing,
)
from maskwise.harness.score import MAIN, Result, result_to_json
from maskwise.masks import kernel_name
from maskwise.protocols.metrics import SCORED, STATUSES, Scores
from maskwise.store import Codes, Dataset
from maskwise.store.folder import MANIFEST
from maskwise.store.lock import locked

SCORES = "scores.json"


def write_run(
    folder: str | Path,
    result: Result,
    dataset: Dataset,
    *,
    predictions: str | Path,
    format: str | None = None,
    settings: ReadOptions | None = None,
) -> None:
    """Write a run folder; run.json comes last. Scores that are there already are replaced, anything else refused.

    The folder of an evaluation keeps its record, and takes the scores of its own predictions only.
    """
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file; expected a folder for the run")
    if out.is_dir() and any(out.iterdir()) and not ((out / RUN).exists() or (out / SCORES).exists()):
        raise StoreError(f"{out} holds something that is not a run; choose another folder")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        with locked(out, f"{out} is being written by another process"):
            fill_run(out, result, dataset, predictions=Path(predictions), format=format, settings=settings)


def fill_run(
    out: Path,
    result: Result,
    dataset: Dataset,
    *,
    predictions: Path,
    format: str | None = None,
    settings: ReadOptions | None = None,
) -> None:
    """As `write_run`, in a folder that is there and whose lock the caller holds."""
    truth = describe_truth(dataset, samples=len(result.truth), images=result.truth.cluster_count)
    evaluation = _begin_scores(out, predictions, truth)
    write_json(out / SCORES, result_to_json(result))
    _write_table(out / "scores.arrow", list(_score_batches(result)))
    _write_table(out / "metrics.arrow", [_metrics_batch(result)])
    write_json(
        out / RUN,
        {
            "format": FORMAT,
            "state": "scored",
            "maskwise": __version__,
            "kernel": kernel_name(),
            "truth": truth,
            "predictions": {
                "path": str(predictions.resolve()),
                "format": format or detect_format(predictions),
                "sha256": hash_path(predictions),
                "settings": asdict(settings or ReadOptions()),
                "forced": bool(result.found.replies.forced.any()),
            },
            "protocols": [
                {"name": name, "options": dict(scores.options)} for name, scores in result.scores.items()
            ],
            "intervals": {**asdict(result.interval_options), "cluster": "image"},
            **({"evaluation": evaluation} if evaluation else {}),
        },
    )


def _begin_scores(out: Path, predictions: Path, truth: dict[str, Any]) -> EvaluationFacts | None:
    """Take the folder's state back from scored; returns the record of the evaluation that made the predictions."""
    record = read_record(out)
    if record is None or record.evaluation is None:
        (out / RUN).unlink(missing_ok=True)
        return None
    if predictions.resolve() != (out / PREDICTIONS).resolve():
        raise StoreError(
            f"{out} is the record of an evaluation and keeps its own scores; choose another folder"
        )
    write_record(out, record.evaluation, "predicted", truth)
    return record.evaluation


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of the sorted names and hashes of a folder's files."""
    if not path.is_dir():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for member in sorted(item for item in path.rglob("*") if item.is_file()):
        whole.update(f"{member.relative_to(path).as_posix()} {hash_path(member)}\n".encode())
    return whole.hexdigest()


def describe_truth(dataset: Dataset, *, samples: int, images: int) -> dict[str, Any]:
    """What run.json says of a dataset and of how much of it was scored."""
    return {
        "path": str(dataset.path.resolve()),
        "name": dataset.name,
        "sha256": hash_path(dataset.path / MANIFEST),
        "samples": samples,
        "images": images,
    }


def _score_batches(result: Result) -> Iterator[pa.RecordBatch]:
    """One batch a protocol; all share their dictionaries."""
    names = list(result.scores)
    reasons = list(
        dict.fromkeys(text for one in result.scores.values() for text in one.statuses.reasons if text)
    )
    shared = {
        "sample": _coded(np.arange(len(result.truth)), list(result.truth.ids)),
        "image": _coded(result.truth.image, list(result.truth.image_ids)),
    }
    slices = {f"slice:{name}": _coded(codes.codes, _labels(codes)) for name, codes in result.slices.items()}
    for item, scores in enumerate(result.scores.values()):
        columns = {
            "protocol": _coded(np.full(len(scores), item), names),
            **shared,
            "status": _coded(scores.statuses.status, list(STATUSES)),
            **_numbers(scores),
            "reason": _reasons(scores, reasons),
            **slices,
        }
        yield pa.record_batch(columns)


def _numbers(scores: Scores) -> dict[str, pa.Array]:
    giou, ciou = scores.metrics["giou"], scores.metrics["ciou"]
    return {
        "value": pa.array(scores.value, mask=scores.statuses.status != SCORED),
        "weight": pa.array(giou.denominator.astype(np.float64)),
        "numerator": pa.array(giou.numerator.astype(np.float64)),
        "intersection": pa.array(ciou.numerator.astype(np.int64)),
        "union": pa.array(ciou.denominator.astype(np.int64)),
    }


def _reasons(scores: Scores, reasons: list[str]) -> pa.Array:
    place = {text: item for item, text in enumerate(reasons)}
    codes = np.array([place.get(text, 0) for text in scores.statuses.reasons], np.int32)[
        scores.statuses.reason
    ]
    return _coded(codes, reasons, mask=scores.statuses.reason == 0)


def _metrics_batch(result: Result) -> pa.RecordBatch:
    """Every figure but those of scores.arrow: numerator and denominator of each sample."""
    columns = {
        "sample": pa.array(list(result.truth.ids), pa.string()),
        "image": _coded(result.truth.image, list(result.truth.image_ids)),
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
    beside = path.with_name(path.name + PARTIAL)
    with (
        pa.OSFile(str(beside), "wb") as file,
        pa.ipc.new_file(file, batches[0].schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    beside.replace(path)

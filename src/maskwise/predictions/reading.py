"""Predictions of a file, a folder or in memory, matched with the samples of a dataset."""

from collections.abc import Sequence
from pathlib import Path

from maskwise.errors import StoreError, UnknownNameError
from maskwise.predictions.coco import read_coco
from maskwise.predictions.jsonl import read_jsonl
from maskwise.predictions.loaded import LoadedPredictions
from maskwise.predictions.npz import read_npz
from maskwise.predictions.png_folder import read_png_folder
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.runs.schema import ReadOptions
from maskwise.schema import Prediction

FORMATS = {
    "jsonl": read_jsonl,
    "coco": read_coco,
    "png": read_png_folder,
    "npz": read_npz,
}


def read_predictions(
    path: str | Path,
    truth: GroundTruth,
    format: str | None = None,
    *,
    options: ReadOptions | None = None,
) -> LoadedPredictions:
    """The predictions of a file or folder, in the order of the dataset. The format follows from the name by default."""
    where = Path(path)
    name = format or detect_format(where)
    if name not in FORMATS:
        raise UnknownNameError("format of predictions", name, FORMATS)
    if not where.exists():
        raise StoreError(f"{where} does not exist: expected predictions")
    _check_samples(truth, str(where))
    return _check_matches(
        FORMATS[name](where, truth, options or ReadOptions()), truth, str(where)
    )


def load_predictions(
    predictions: Sequence[Prediction], truth: GroundTruth
) -> LoadedPredictions:
    """Predictions in memory, given in any order, in the order of the dataset."""
    where = "the predictions"
    _check_samples(truth, where)
    for prediction in predictions:
        if not isinstance(prediction, Prediction):
            raise StoreError(
                f"{where} contain a {type(prediction).__name__}; expected Prediction records"
            )
    samples = set(truth.ids)
    known = []
    unknown = []
    for prediction in predictions:
        if prediction.sample in samples:
            known.append(prediction)
        else:
            unknown.append(prediction.sample)
    columns = PredictionColumns.from_predictions(truth, known)
    first_unknown = unknown[0] if unknown else None
    loaded = LoadedPredictions(columns, len(predictions), len(known), first_unknown)
    return _check_matches(loaded, truth, where)


def detect_format(path: Path) -> str:
    """The format that a path's name implies."""
    if path.is_dir():
        return "npz" if next(path.rglob("*.npy"), None) else "png"
    formats = {".jsonl": "jsonl", ".json": "coco", ".npz": "npz"}
    if path.suffix not in formats:
        raise StoreError(
            f"{path}: unknown kind of file; expected .jsonl, .json (COCO results), .npz or a folder, or a stated "
            f"format: {', '.join(FORMATS)}"
        )
    return formats[path.suffix]


def _check_samples(truth: GroundTruth, where: str) -> None:
    if not len(truth):
        raise StoreError(
            f"the dataset has no samples, so there is nothing to score {where} against"
        )


def _check_matches(
    loaded: LoadedPredictions, truth: GroundTruth, where: str
) -> LoadedPredictions:
    if not loaded.matched and loaded.read:
        raise StoreError(
            f"{where}: none of the {loaded.read} predictions is for a sample of this dataset "
            f"(first: {loaded.first_unknown!r}; the dataset's first sample is {truth.ids[0]!r})"
        )
    return loaded

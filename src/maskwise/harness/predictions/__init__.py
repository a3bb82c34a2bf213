"""Reading predictions, in any of the supported formats, into the columns protocols score.

    found = read_predictions("run/predictions.jsonl", truth)
    evaluation = ScoringInput(truth, found.replies)

| format | looks like | a sample without a prediction |
|---|---|---|
| `jsonl` | one `schema.Prediction` a line | has no reply |
| `coco` | COCO results: a JSON list of `{"image_id", "segmentation", "score", ...}` | was answered with nothing |
| `png` | a folder with `SAMPLE.png`, or `SAMPLE/0.png`, `SAMPLE/1.png`, ... | has no reply |
| `npz` | a `.npz`, or a folder of `.npy`, one array a sample | has no reply |

All masks have the size of the image. Only `jsonl` can say which type a mask is of, name things, answer in words or
say "nothing here"; the masks of the other formats are of one type, `visible` unless told otherwise.
"""

from pathlib import Path

from maskwise.errors import StoreError, UnknownNameError
from maskwise.harness.predictions.coco import read_coco
from maskwise.harness.predictions.jsonl import read_jsonl
from maskwise.harness.predictions.loaded import LoadedPredictions, ReadOptions
from maskwise.harness.predictions.npz import read_npz
from maskwise.harness.predictions.png_folder import read_png_folder
from maskwise.protocols.ground_truth import GroundTruth

__all__ = ["FORMATS", "LoadedPredictions", "ReadOptions", "detect_format", "read_predictions"]

FORMATS = {"jsonl": read_jsonl, "coco": read_coco, "png": read_png_folder, "npz": read_npz}


def read_predictions(
    path: str | Path, truth: GroundTruth, format: str | None = None, *, settings: ReadOptions | None = None
) -> LoadedPredictions:
    """The replies in a file or folder, in the order of the truth. The format follows from the name unless given."""
    where = Path(path)
    name = format or detect_format(where)
    if name not in FORMATS:
        raise UnknownNameError("format of predictions", name, FORMATS)
    if not where.exists():
        raise StoreError(f"{where} does not exist: expected predictions")
    if not len(truth):
        raise StoreError(f"the dataset has no samples, so there is nothing to score {where} against")
    found = FORMATS[name](where, truth, settings or ReadOptions())
    if not found.matched and found.read:
        raise StoreError(
            f"{where}: none of its {found.read} predictions is for a sample of this dataset "
            f"(first: {found.first_unknown!r}; the dataset's first sample is {truth.ids[0]!r})"
        )
    return found


def detect_format(path: Path) -> str:
    """The format that a path's name implies."""
    if path.is_dir():
        return "npz" if next(path.rglob("*.npy"), None) else "png"
    formats = {".jsonl": "jsonl", ".json": "coco", ".npz": "npz"}
    if path.suffix not in formats:
        raise StoreError(
            f"{path}: cannot tell what it holds; expected .jsonl, .json (COCO results), .npz or a folder, or say "
            f"which format it has: {', '.join(FORMATS)}"
        )
    return formats[path.suffix]

"""Reading predictions, in whatever form a model left them, into the columns protocols score.

    found = read_predictions("run/predictions.jsonl", truth)
    evaluation = Evaluation(truth, found.replies)

| form | looks like | a sample without a prediction |
|---|---|---|
| `jsonl` | one `schema.Prediction` a line | has no reply |
| `coco` | COCO results: a JSON list of `{"image_id", "segmentation", "score", ...}` | was answered with nothing |
| `png` | a folder with `SAMPLE.png`, or `SAMPLE/0.png`, `SAMPLE/1.png`, ... | has no reply |
| `arrays` | a `.npz`, or a folder of `.npy`, one array a sample | has no reply |

All masks have the size of the image. Only `jsonl` can say which type a mask is of, name things, answer in words or
say "nothing here"; the masks of the other forms are of one type, `visible` unless told otherwise.
"""

from pathlib import Path

from maskwise.errors import StoreError, UnknownNameError
from maskwise.harness.predictions.arrays import read_arrays
from maskwise.harness.predictions.coco import read_coco
from maskwise.harness.predictions.found import Found, Settings
from maskwise.harness.predictions.lines import read_lines
from maskwise.harness.predictions.pngs import read_pngs
from maskwise.protocols.tables import Truth

__all__ = ["FORMS", "Found", "Settings", "find_form", "read_predictions"]

FORMS = {"jsonl": read_lines, "coco": read_coco, "png": read_pngs, "arrays": read_arrays}


def read_predictions(
    path: str | Path, truth: Truth, form: str | None = None, *, settings: Settings | None = None
) -> Found:
    """The replies in a file or folder, in the order of the truth. The form is seen from the name unless given."""
    where = Path(path)
    name = form or find_form(where)
    if name not in FORMS:
        raise UnknownNameError("form of predictions", name, FORMS)
    if not where.exists():
        raise StoreError(f"{where} does not exist: expected predictions")
    if not len(truth):
        raise StoreError(f"the dataset has no samples, so there is nothing to score {where} against")
    found = FORMS[name](where, truth, settings or Settings())
    if not found.matched and found.read:
        raise StoreError(
            f"{where}: none of its {found.read} predictions is for a sample of this dataset "
            f"(first: {found.first_unknown!r}; the dataset's first sample is {truth.ids[0]!r})"
        )
    return found


def find_form(path: Path) -> str:
    """The form a path's name speaks of."""
    if path.is_dir():
        return "arrays" if next(path.rglob("*.npy"), None) else "png"
    forms = {".jsonl": "jsonl", ".json": "coco", ".npz": "arrays"}
    if path.suffix not in forms:
        raise StoreError(
            f"{path}: cannot tell what it holds; expected .jsonl, .json (COCO results), .npz or a folder, or say "
            f"which form it has: {', '.join(FORMS)}"
        )
    return forms[path.suffix]

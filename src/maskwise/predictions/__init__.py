"""Predictions in any of the supported formats, read into the columns that protocols score.

    loaded = read_predictions("run/predictions.jsonl", truth)
    evaluation = ScoringInput(truth, loaded.predictions)

| format | looks like | states "no target" by |
|---|---|---|
| `jsonl` | one `schema.Prediction` per line | `"no_target": true` |
| `coco` | a JSON list of `{"image_id", "segmentation", "score"}` | `{"image_id", "no_target": true}` |
| `png` | a folder with `SAMPLE.png`, or `SAMPLE/0.png`, `SAMPLE/1.png`, ... | a line in `no_target.txt` |
| `npz` | a `.npz`, or a folder of `.npy`, one array per sample | an array of no masks, (0, h, w) |
| in memory | arrays or masks, by position or sample | an array of no masks, an empty list |

A sample that a file does not mention has no prediction, except in `coco`, where it has a prediction without masks.

`no_target` is a statement: the model says that nothing in the image is meant. A mask without pixels is a mask, and a
prediction without masks that does not make the statement is silent; under `gres` only the statement counts.

All masks have the size of the image. Only `jsonl` can state the type of a mask, names or an answer. In the other
formats all masks have one type, `visible` by default.

The functions are loaded when they are first used: the conversion of a single prediction, which every model needs, does
without the columns and the reader of datasets.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwise.predictions.loaded import LoadedPredictions
    from maskwise.predictions.reading import (
        FORMATS,
        detect_format,
        load_predictions,
        read_predictions,
    )
    from maskwise.runs.schema import ReadOptions

__all__ = [
    "FORMATS",
    "LoadedPredictions",
    "ReadOptions",
    "detect_format",
    "load_predictions",
    "read_predictions",
]

_MODULES = {
    "LoadedPredictions": "maskwise.predictions.loaded",
    "ReadOptions": "maskwise.runs.schema",
}
"""Where names are that `maskwise.predictions.reading` does not define."""


def __getattr__(name: str) -> Any:
    """Load a name on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_MODULES.get(name, "maskwise.predictions.reading"))
    return getattr(module, name)

"""The run folder of one evaluation: its schema, its writer and its reader (docs/reference/runs.md).

    run = load_run("runs/m2sa")
    run.scores.protocols["strict"].metrics["giou"].value
    run.rows("strict").value                       # one number per sample
    run.metrics("strict")["giou"]                  # numerator and denominator of every sample
    write_run("runs/copy", run)

`run.json` and `scores.json` are written from and read into the structs of `schema`. A `Run` made in memory has the same
content as one that was read from a folder.

The names are loaded when they are first used: the records of `schema`, which every model needs, do without the reader
of datasets and the protocols.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwise.runs.reader import load_run
    from maskwise.runs.run import PredictionSummary, Run
    from maskwise.runs.writer import write_run

__all__ = ["PredictionSummary", "Run", "load_run", "write_run"]

_MODULES = {
    "PredictionSummary": "maskwise.runs.run",
    "Run": "maskwise.runs.run",
    "load_run": "maskwise.runs.reader",
    "write_run": "maskwise.runs.writer",
}


def __getattr__(name: str) -> Any:
    """Load a name on first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

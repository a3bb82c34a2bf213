"""The run folder of one evaluation: its schema, its writer and its reader (docs/reference/runs.md).

    run = load_run("runs/m2sa")
    run.scores.protocols["strict"].metrics["giou"].value
    run.rows("strict").value                       # one number per sample
    run.metrics("strict")["giou"]                  # numerator and denominator of every sample
    write_run("runs/copy", run)

`run.json` and `scores.json` are written from and read into the structs of `schema`. A `Run` made in memory has the same
content as one that was read from a folder.
"""

from maskwise.runs.reader import load_run
from maskwise.runs.run import PredictionSummary, Run
from maskwise.runs.writer import write_run

__all__ = ["PredictionSummary", "Run", "load_run", "write_run"]

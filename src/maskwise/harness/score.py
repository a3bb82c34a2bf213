"""Score predictions that were made elsewhere, and write a run folder with a report.

    run = score("predictions.jsonl", "mmr_val", "runs/mine", protocols=["strict", "mmr"])
    run["strict"]["giou"]

`maskwise score` and `maskwise.score` are this function.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from maskwise.datasets import load_dataset
from maskwise.engines import EngineOptions
from maskwise.errors import ProtocolError
from maskwise.harness.parts import compute_scores_in_parts
from maskwise.harness.progress import OnStage, shown_stages
from maskwise.harness.run_record import result_to_run
from maskwise.harness.scoring import ScoreResult, compute_scores
from maskwise.predictions import detect_format
from maskwise.predictions.in_memory import to_predictions
from maskwise.protocols import Protocol
from maskwise.registry import DEFAULT_PROTOCOLS
from maskwise.report.report_file import write_report
from maskwise.report.run_data import RunData
from maskwise.runs import Run, write_run
from maskwise.runs.environment import available_cores
from maskwise.runs.files import REPORT
from maskwise.runs.schema import IntervalOptions, ReadOptions
from maskwise.store import Dataset

SCORING_STAGES = 4
"""Stages of scoring beside the protocols: reading, measuring, intervals, writing."""

MAX_THREADS = 8
"""Threads that scoring uses by default, at most, so that it does not occupy a large shared machine."""


def score(
    predictions: Any,
    data: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str] | None = None,
    *,
    protocols: str | Protocol | Sequence[str | Protocol] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    format: str | None = None,
    mask_type: Literal["visible", "amodal"] = "visible",
    min_score: float = 0.0,
    zero_inside: bool = False,
    teacher_forced: bool = False,
    interval_options: IntervalOptions | None = None,
    threads: int | None = None,
    parts: int | None = None,
    engine: EngineOptions | None = None,
    progress: bool = True,
    on_stage: OnStage = lambda stage: None,
) -> Run:
    """Score predictions that were made elsewhere, and write a report.

    predictions: a path (docs/reference/predictions.md); or, in the order of the samples or as a dict from sample id, a
    `Prediction`, masks, an array (n, height, width), one mask, or None for each sample. data: as for `load_dataset`.
    out: the run folder to write, with report.html; without it the run stays in memory. protocols: as for `evaluate`.
    options: by protocol. threads: one per core, at most 8, if None. progress: show a bar, or lines every 30 s where
    standard error is a file. on_stage: called with the name of the current stage.

    parts: score so many parts one after the other, or by the workers of an `engine`, so that predictions larger than
    memory can be scored; the scores are the same. Only JSONL files, and without report and ladder.

    How predictions are read that do not say it themselves: format: of a path, if its name does not tell. mask_type,
    teacher_forced: of masks. min_score: COCO results below this score are dropped. zero_inside: logits of exactly 0
    are inside, as GSVA cuts them.

    Example: run = score([np.zeros((n, 224, 224), bool), ...], "world")
    """
    if mask_type not in ("visible", "amodal"):
        raise ProtocolError(
            f"mask_type must be 'visible' or 'amodal', not {mask_type!r}"
        )
    dataset = load_dataset(data)
    rules = list_rules(protocols)
    stages = SCORING_STAGES + len(DEFAULT_PROTOCOLS if rules is None else rules)
    reading = ReadOptions(mask_type, zero_inside, min_score, teacher_forced)
    with shown_stages(on_stage, stages, shown=progress) as show_stage:
        if parts is None and engine is None:
            result = compute_scores(
                to_predictions(
                    predictions, dataset, mask_type, teacher_forced=teacher_forced
                ),
                dataset,
                rules,
                options=options,
                format=format,
                read_options=reading,
                interval_options=interval_options,
                threads=threads or default_threads(),
                on_stage=show_stage,
            )
        else:
            result = compute_scores_in_parts(
                _expect_jsonl(predictions, format),
                dataset,
                rules,
                parts=parts,
                options=options,
                read_options=reading,
                interval_options=interval_options,
                threads=threads or default_threads(),
                engine=engine,
                on_stage=show_stage,
            )
        run = result_to_run(result)
        if out is not None:
            show_stage("writing")
            run = write_run(Path(out), run)
            write_run_report(run, result)
    if run.failure_notice is not None:
        warnings.warn(run.failure_notice, stacklevel=2)
    return run


def list_rules(
    protocols: str | Protocol | Sequence[str | Protocol] | None,
) -> Sequence[str | Protocol] | None:
    """Protocols as a list; a single one may be given without a list. None stays None: all built-in ones."""
    if isinstance(protocols, str | Protocol):
        return [protocols]
    return protocols


def write_run_report(run: Run, result: ScoreResult) -> None:
    """Write report.html into the folder of a run, with the samples and predictions that are in memory already.

    A run that no protocol could score has no report, and neither has one that was scored in parts.
    """
    assert run.folder is not None
    if run.scores.protocols and result.scoring_input is not None:
        data = RunData(result.dataset, result.loaded.predictions)
        write_report(run, run.folder / REPORT, data=data)


def _expect_jsonl(predictions: Any, format: str | None) -> Path:
    """The path of predictions that are scored in parts."""
    if not isinstance(predictions, str | os.PathLike):
        raise ProtocolError(
            f"only a JSONL file is scored in parts, not {type(predictions).__name__}"
        )
    path = Path(predictions).absolute()
    if not path.exists():
        raise ProtocolError(f"{path} does not exist: expected predictions")
    if (format or detect_format(path)) != "jsonl":
        raise ProtocolError(f"{path}: only a JSONL file is scored in parts")
    return path


def default_threads() -> int:
    """One thread per core that this process may use, at most MAX_THREADS."""
    return min(MAX_THREADS, available_cores())

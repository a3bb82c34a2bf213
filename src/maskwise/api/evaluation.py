"""`evaluate`, `score`, `load_run` and `compare`: from a model or predictions to metrics with intervals."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from maskwise.api.loaded_model import LoadedModel, load_model
from maskwise.api.predictions import to_predictions
from maskwise.datasets import load_dataset
from maskwise.errors import ProtocolError
from maskwise.harness.evaluate import EvaluationConfig, ExecutionOptions
from maskwise.harness.evaluate import evaluate as run_evaluation
from maskwise.harness.predictor import Model
from maskwise.harness.score import result_to_run
from maskwise.harness.score import score as score_predictions
from maskwise.runs import Run, load_run, write_run
from maskwise.runs.environment import available_cores
from maskwise.store import Dataset

MAX_THREADS = 8


def evaluate(
    model: "str | Model | LoadedModel",
    dataset: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str] | None = None,
    *,
    protocols: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    timeout: float | None = None,
    retry_failed: bool = False,
) -> Run:
    """Ask a model every question of a dataset and score its predictions.

    model: as for `load_model`. dataset: as for `load_dataset`. out: the run folder; the same call continues a run that
    was interrupted. Without it the run stays in memory. protocols: names (`list_protocols`), all if None. limit: only
    this many images, drawn with `seed`. timeout: seconds per question. retry_failed: ask failed questions again.

    Example: run = evaluate("tiny", "world", out="runs/tiny")
    """
    loaded = load_model(model)
    config = EvaluationConfig(
        load_dataset(dataset),
        loaded.predictor,
        loaded.options,
        limit=limit,
        seed=seed,
        spec=loaded.spec,
    )
    summary = run_evaluation(
        config,
        None if out is None else Path(out),
        execution=ExecutionOptions(timeout=timeout, retry_failed=retry_failed),
        protocols=_check_names(protocols),
        threads=_threads(),
    )
    assert summary.run is not None
    return summary.run


def score(
    dataset: str | os.PathLike[str] | Dataset,
    predictions: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    protocols: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    mask_type: Literal["visible", "amodal"] = "visible",
) -> Run:
    """Score predictions that were made elsewhere.

    dataset: as for `load_dataset`. predictions: a path (docs/predictions.md); or, in the order of the samples or as a
    dict from sample id, a `Prediction`, masks, an array (n, height, width), one mask, or None for each sample. out: the
    run folder to write; without it the run stays in memory. protocols: names, all if None. options: by protocol.
    mask_type: of masks that do not say it.

    Example: run = score("world", [np.zeros((n, 224, 224), bool), ...])
    """
    if mask_type not in ("visible", "amodal"):
        raise ProtocolError(
            f"mask_type must be 'visible' or 'amodal', not {mask_type!r}"
        )
    data = load_dataset(dataset)
    result = score_predictions(
        data,
        to_predictions(predictions, data, mask_type),
        _check_names(protocols),
        options=options,
        threads=_threads(),
    )
    run = result_to_run(result)
    if run.failure_notice is not None:
        warnings.warn(run.failure_notice, stacklevel=2)
    if out is None:
        return run
    write_run(Path(out), run)
    return load_run(Path(out))


def _check_names(protocols: Sequence[str] | None) -> Sequence[str] | None:
    return [protocols] if isinstance(protocols, str) else protocols


def _threads() -> int:
    return min(MAX_THREADS, available_cores())

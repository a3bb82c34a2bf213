"""The run of scored predictions: what run.json and scores.json say about a result of `compute_scores`."""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from maskwise import __version__
from maskwise.arrays import Int64Array
from maskwise.harness.ladder import ladder_of_result
from maskwise.harness.metric_values import (
    count_statuses,
    estimate_value,
    metric_value,
)
from maskwise.harness.scoring import ScoreResult
from maskwise.masks import kernel_name
from maskwise.predictions import detect_format
from maskwise.protocols import Scores
from maskwise.protocols.metrics import EXCLUDED, FAILED
from maskwise.protocols.prediction_columns import UNSTATED
from maskwise.protocols.published_rules import cite_rule
from maskwise.protocols.risk_coverage import (
    risk_coverage,
    surest_first,
)
from maskwise.protocols.strict import BINS, sum_calibration
from maskwise.runs import Run
from maskwise.runs.files import hash_path
from maskwise.runs.schema import (
    RUN_FORMAT,
    SCORES_FORMAT,
    CalibrationBin,
    ConfusionMatrix,
    DatasetInfo,
    EvaluationInfo,
    PredictionCounts,
    PredictionsInfo,
    ProtocolInfo,
    ProtocolScores,
    RunFile,
    ScoresFile,
)
from maskwise.runs.tables import ScoredSamples, make_metric_table, make_score_table
from maskwise.schema import Prediction
from maskwise.store import MASK_TYPES, Dataset
from maskwise.store.folder import MANIFEST


def result_to_run(
    result: ScoreResult, *, evaluation: EvaluationInfo | None = None
) -> Run:
    """The run of a result, in memory; `maskwise.runs.write_run` writes it to a folder."""
    truth = result.truth
    info = RunFile(
        format=RUN_FORMAT,
        state="scored",
        dataset=describe_dataset(
            result.dataset, samples=len(truth), images=truth.cluster_count
        ),
        maskwise=__version__,
        kernel=kernel_name(),
        predictions=_describe_predictions(result),
        protocols=[
            ProtocolInfo(name=name, options=dict(scores.options))
            for name, scores in result.scores.items()
        ],
        intervals=result.interval_options,
        evaluation=evaluation,
    )
    ladder_name = "predictions"
    if evaluation is not None:
        ladder_name = evaluation.inputs.model.name
    elif isinstance(result.predictions, Path):
        ladder_name = result.predictions.stem
    # Predictions that were read from a file stay there.
    records = None if isinstance(result.predictions, Path) else result.predictions
    samples = ScoredSamples(truth.ids, truth.image, truth.image_ids, result.slices)
    return Run(
        info,
        result_to_scores(result),
        load_scores=partial(make_score_table, samples, result.scores),
        load_metrics=partial(make_metric_table, samples, result.scores),
        load_ladder=partial(ladder_of_result, result, ladder_name),
        dataset=result.dataset,
        predictions=records,
    )


def result_to_scores(result: ScoreResult) -> ScoresFile:
    """The content of scores.json."""
    read = result.loaded.read
    matched = result.loaded.matched
    states_mask_type = result.loaded.predictions.mask_type != UNSTATED
    failures = list_failures(result)
    order = surest_first(result.confidence)
    return ScoresFile(
        format=SCORES_FORMAT,
        predictions=PredictionCounts(
            read=read,
            matched=matched,
            unknown=read - matched,
            with_mask_type=int(states_mask_type.sum()),
            failed=len(failures),
            first_error=failures[min(failures)] if failures else None,
        ),
        skipped=dict(result.skipped),
        protocols={
            name: _protocol_scores(result, name, order) for name in result.scores
        },
    )


def list_failures(result: ScoreResult) -> dict[int, str]:
    """Why predictions failed, by row of the sample: of themselves, or under any protocol, such as by a mask's size."""
    failures = dict(result.loaded.predictions.reasons)
    for scores in result.scores.values():
        statuses = scores.statuses
        for row in np.flatnonzero(statuses.status == FAILED).tolist():
            failures.setdefault(row, statuses.reasons[statuses.reason[row]])
    return failures


def describe_dataset(dataset: Dataset, *, samples: int, images: int) -> DatasetInfo:
    """What run.json says about a dataset. samples, images: how many of them the run is about."""
    return DatasetInfo(
        path=str(dataset.path.resolve()),
        name=dataset.name,
        sha256=hash_path(dataset.path / MANIFEST),
        samples=samples,
        images=images,
        all_samples=dataset.manifest.counts.get("samples"),
        protocol=dataset.manifest.about.get("protocol"),
    )


def _describe_predictions(result: ScoreResult) -> PredictionsInfo:
    source = result.predictions
    if isinstance(source, Path):
        path = str(source.resolve())
        format = result.format or detect_format(source)
        sha256 = hash_path(source)
    else:
        path = None
        format = "memory"
        sha256 = _hash_records(source)
    return PredictionsInfo(
        path=path,
        format=format,
        sha256=sha256,
        options=result.read_options,
        teacher_forced=bool(result.loaded.predictions.forced.any()),
    )


def _hash_records(predictions: Sequence[Prediction]) -> str:
    """SHA-256 of the predictions.jsonl that these records make."""
    whole = hashlib.sha256()
    for prediction in predictions:
        whole.update(msgspec.json.encode(prediction) + b"\n")
    return whole.hexdigest()


def _protocol_scores(
    result: ScoreResult, name: str, order: Int64Array
) -> ProtocolScores:
    """The scores of one protocol. order: of all questions, as `risk_coverage` takes it."""
    scores = result.scores[name]
    return ProtocolScores(
        rule=result.rules[name],
        cite=cite_rule(name, scores.options, description=result.rules[name]),
        options=dict(scores.options),
        counts=count_statuses(scores),
        metrics={
            **{
                key: metric_value(scores, key, result.intervals[name, key])
                for key in scores.metrics
            },
            **{
                key: estimate_value(estimated)
                for key, estimated in result.other_metrics[name].items()
            },
        },
        slices=result.slice_tables[name],
        confusion=_confusion(scores),
        calibration=_calibration(scores),
        risk_coverage=risk_coverage(scores, result.confidence, order),
        notices=_notices(result, scores),
    )


def _notices(result: ScoreResult, scores: Scores) -> list[str]:
    """What a reader has to know about a protocol's scores: those of the protocol, and questions that it leaves out."""
    notices = list(scores.notices)
    has_no_target = result.truth.counts == 0
    is_excluded = scores.statuses.status == EXCLUDED
    left_out = int((has_no_target & is_excluded).sum())
    if left_out == 1:
        notices.append(
            "1 question without targets is left out: the rule has no term for it."
        )
    elif left_out:
        notices.append(
            f"{left_out:,} questions without targets are left out: the rule has no term for them."
        )
    return notices


def _confusion(scores: Scores) -> ConfusionMatrix | None:
    """Mask types wanted and predicted, if the protocol counts them."""
    if scores.confusion is None:
        return None
    return ConfusionMatrix(
        rows=MASK_TYPES, columns=(*MASK_TYPES, "none"), counts=scores.confusion.tolist()
    )


def _calibration(scores: Scores) -> list[CalibrationBin]:
    """Bins of the regions' scores that are not empty, if the protocol makes them."""
    if scores.calibration is None:
        return []
    bins = []
    for item, sums in enumerate(sum_calibration(scores.calibration).tolist()):
        count, score_sum, hits, iou_sum = sums
        if count:
            bins.append(
                CalibrationBin(
                    low=item / BINS,
                    high=(item + 1) / BINS,
                    count=int(count),
                    score=score_sum / count,
                    precision=hits / count,
                    iou=iou_sum / count,
                )
            )
    return bins

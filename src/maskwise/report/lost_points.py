"""The lost points of every question, split into faults: by repair in a fixed order, and on average over all orders.

What a repair is worth is the gain of the strict score. One after the other, the gains add up to the loss, whatever the
order: the last score is 1. The order matters where faults depend on each other (a wrong mask type makes every mask
worthless), so the mean gain over all orders, the Shapley value, stands beside it.

A gain is negative only where a repaired mask takes part in another matching; such gains are kept, and the sum holds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import factorial
from typing import Any

import msgspec
import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols import GroundTruth, PredictionColumns, ScoringInput
from maskwise.protocols.ground_truth import AMODAL
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.strict import (
    QuestionMatches,
    StrictMaskType,
    Unoccluded,
    accepted_types,
    match_questions,
    question_giou,
    refuse_forced,
)
from maskwise.report.fault_repairs import (
    FAULTS,
    FaultyQuestion,
    ShownQuestion,
    find_faults,
    show_question,
)
from maskwise.report.run_data import prediction_at
from maskwise.schema import Prediction, Sample
from maskwise.store import Dataset

CHUNK = 1000
"""Questions that are repaired at a time: their repaired predictions are in memory, some 20 for each."""

FAULT_NAMES = tuple(FAULTS)
Subset = frozenset[str]
Values = Mapping[Subset, float]
"""The score of a question by the faults that were repaired."""


@dataclass(frozen=True)
class LostPoints:
    """What each question lost, and why.

    counted: bool [samples], False for questions that `strict` leaves out; loss: float64 [samples]; ordered, shapley:
    float64 [samples, faults], in the order of FAULTS; each row sums up to the loss.
    """

    counted: BoolArray
    loss: Float64Array
    ordered: Float64Array
    shapley: Float64Array


@dataclass(frozen=True)
class StrictOptions:
    """The options of `strict` that decide about the score of a question."""

    mask_type: StrictMaskType = "exact"
    unoccluded: Unoccluded = "either"


def find_lost_points(
    dataset: Dataset,
    predictions: PredictionColumns,
    options: Mapping[str, Any] | None = None,
    *,
    on_questions: Callable[[int], None] = lambda count: None,
) -> LostPoints:
    """Split the lost points of all questions of a dataset.

    predictions: in the order of the dataset. options: of `strict`. on_questions: called with the number of questions
    that were done since the last call.
    """
    known = {field.name for field in fields(StrictOptions)}
    given = (options or {}).items()
    strict = StrictOptions(**{name: value for name, value in given if name in known})
    parts = []
    for first in range(0, len(dataset), CHUNK):
        rows = np.arange(first, min(first + CHUNK, len(dataset)))
        taken = dataset.take(rows)
        truth = GroundTruth.from_dataset(taken)
        inputs = ScoringInput(truth, predictions.take(rows))
        parts.append(split_losses(inputs, taken.__getitem__, strict))
        on_questions(len(rows))
    if not parts:
        nothing = np.zeros((0, len(FAULTS)))
        return LostPoints(np.zeros(0, bool), np.zeros(0), nothing, nothing)
    return LostPoints(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("counted", "loss", "ordered", "shapley")
        )
    )


def split_losses(
    inputs: ScoringInput, sample_at: Callable[[int], Sample], options: StrictOptions
) -> LostPoints:
    """Split the lost points of some questions. sample_at: the sample of a row."""
    refuse_forced(inputs)
    matches = _match(inputs, options)
    value = question_giou(inputs, matches)
    loss = np.where(matches.scorable, 1.0 - value, 0.0)
    ordered = np.zeros((len(inputs), len(FAULTS)))
    regions = matches.regions
    targets = matches.targets
    failed = inputs.predictions.state != PREDICTED
    alone = {
        "failed": failed,
        "silent": ~failed & (targets > 0) & (regions == 0),
        "invented": ~failed & (targets == 0) & (regions > 0),
    }
    for fault, rows in alone.items():
        ordered[rows, FAULT_NAMES.index(fault)] = loss[rows]
    shapley = ordered.copy()
    drawn = np.flatnonzero((targets > 0) & (regions > 0) & (loss > 0))
    questions = _find_questions(sample_at, inputs, matches, options, drawn)
    scores = _score_repairs(questions, value[drawn].tolist(), options)
    for row, values in zip(drawn.tolist(), scores, strict=True):
        for fault, gain in order_gains(values).items():
            ordered[row, FAULT_NAMES.index(fault)] = gain
        for fault, gain in shapley_gains(values).items():
            shapley[row, FAULT_NAMES.index(fault)] = gain
    return LostPoints(matches.scorable, loss, ordered, shapley)


def order_gains(values: Values) -> dict[str, float]:
    """What each repair gains, one after the other in the order of FAULTS."""
    faults = _faults_of(values)
    gains = {}
    repaired: Subset = frozenset()
    for fault in faults:
        after = repaired | {fault}
        gains[fault] = values[after] - values[repaired]
        repaired = after
    return gains


def shapley_gains(values: Values) -> dict[str, float]:
    """What each repair gains on average over all orders of repair."""
    faults = _faults_of(values)
    gains = {}
    for fault in faults:
        others = [other for other in faults if other != fault]
        gain = 0.0
        for before in _subsets(others):
            later = len(others) - len(before)
            orders = factorial(len(before)) * factorial(later)
            share = orders / factorial(len(faults))
            gain += share * (values[before | {fault}] - values[before])
        gains[fault] = gain
    return gains


def _faults_of(values: Values) -> list[str]:
    all_faults = max(values, key=len)
    return [fault for fault in FAULT_NAMES if fault in all_faults]


def _subsets(faults: Sequence[str]) -> Iterator[Subset]:
    for count in range(len(faults) + 1):
        yield from map(frozenset, combinations(faults, count))


# -- questions of a chunk


def _match(inputs: ScoringInput, options: StrictOptions) -> QuestionMatches:
    return match_questions(inputs, options.mask_type, options.unoccluded)


def _find_questions(
    sample_at: Callable[[int], Sample],
    inputs: ScoringInput,
    matches: QuestionMatches,
    options: StrictOptions,
    rows: Int64Array,
) -> list[FaultyQuestion]:
    """The questions of some rows with their faults."""
    scored_type, right_type = accepted_types(inputs, options.unoccluded)
    offsets = inputs.predictions.offsets
    shown = []
    for row in rows.tolist():
        sample = sample_at(row)
        prediction = prediction_at(inputs.predictions, row, sample.id)
        assert prediction is not None
        counted = matches.counted[offsets[row] : offsets[row + 1]]
        shown.append(
            show_question(
                sample,
                [prediction.regions[place] for place in np.flatnonzero(counted)],
                scored_type="amodal" if scored_type[row] == AMODAL else "visible",
                wrong_type=options.mask_type == "exact" and not right_type[row],
            )
        )
    return [
        find_faults(question, pairs, _counted_targets(matches, inputs, row))
        for question, pairs, row in zip(
            shown, _pair_regions(shown, options), rows.tolist(), strict=True
        )
    ]


def _counted_targets(
    matches: QuestionMatches, inputs: ScoringInput, row: int
) -> list[int]:
    """The targets of a question that count, by their place in it."""
    first, last = inputs.ground_truth.offsets[row : row + 2]
    places: list[int] = np.flatnonzero(matches.counted_target[first:last]).tolist()
    return places


def _pair_regions(
    questions: Sequence[ShownQuestion], options: StrictOptions
) -> list[list[tuple[int, int, float]]]:
    """For each question its pairs of region and target with their IoU, the mask type repaired."""
    samples = [question.sample for question in questions]
    inputs = _scoring_input(samples, [question.with_type for question in questions])
    matches = _match(inputs, options)
    pairs: list[list[tuple[int, int, float]]] = [[] for _ in questions]
    columns = (matches.sample, matches.pred, matches.target, matches.iou)
    for row, region, target, iou in zip(*(column.tolist() for column in columns)):
        first_region = inputs.predictions.offsets[row]
        first_target = inputs.ground_truth.offsets[row]
        pairs[row].append((region - first_region, target - first_target, iou))
    return pairs


def _score_repairs(
    questions: Sequence[FaultyQuestion],
    scores: Sequence[float],
    options: StrictOptions,
) -> list[dict[Subset, float]]:
    """The score of each question for every subset of its faults. scores: as predicted."""
    values: list[dict[Subset, float]] = []
    keys: list[tuple[int, Subset]] = []
    samples: list[Sample] = []
    repaired: list[Prediction] = []
    for place, (question, score) in enumerate(zip(questions, scores, strict=True)):
        values.append({frozenset(): score})
        for faults in _subsets(question.faults):
            prediction = question.repair(faults)
            if not faults:
                continue
            if prediction is None:
                values[place][faults] = 0.0
                continue
            keys.append((place, faults))
            samples.append(question.shown.sample)
            repaired.append(prediction)
    if not repaired:
        return values
    inputs = _scoring_input(samples, repaired)
    results = question_giou(inputs, _match(inputs, options))
    for (place, faults), result in zip(keys, results.tolist(), strict=True):
        values[place][faults] = result
    return values


def _scoring_input(
    samples: Sequence[Sample], predictions: Sequence[Prediction]
) -> ScoringInput:
    """Predictions aligned with samples, which may occur several times. Every sample has a target."""
    truths = []
    records = []
    for number, (sample, prediction) in enumerate(zip(samples, predictions)):
        truths.append(msgspec.structs.replace(sample, id=str(number)))
        records.append(msgspec.structs.replace(prediction, sample=str(number)))
    truth = GroundTruth.from_samples(
        truths, [sample.targets[0].size for sample in samples]
    )
    return ScoringInput(truth, PredictionColumns.from_predictions(truth, records))

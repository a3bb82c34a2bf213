"""Answer metrics: predicted names against the names of the targets, and a judge function for whole answers."""

import re
from collections.abc import Callable

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.metrics import MetricTerms
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.store import Codes

Judge = Callable[[str, str, str], float]
"""Takes the question, the true answer and the predicted answer; returns a score from 0 to 1."""

_NUMBER = re.compile(r"_\d+(?='|\b|_|$)")
_OWNER = re.compile(r"['’]s?\b")
_BREAK = re.compile(r"[\W_]+")
_ARTICLE = re.compile(r"^(?:a|an|the|some) ")


def normalise(name: str) -> str:
    """A name without case, punctuation, leading article and instance number: `The knife_1's handle` and
    `knife:handle` both give `knife handle`.
    """
    plain = _OWNER.sub("", _NUMBER.sub("", name.casefold()))
    return _ARTICLE.sub("", _BREAK.sub(" ", plain).strip())


def answer_metrics(
    inputs: ScoringInput, rows: BoolArray, counted: BoolArray
) -> dict[str, MetricTerms]:
    """`answer_exact`: share of predictions that name exactly the targets, each as often as it is a target;
    `answer_f1`: mean F1 of the names.

    rows: bool [samples], the questions to look at; those without a ground truth answer have no answer metrics. counted:
    bool [regions], the predicted regions that count. The names of a prediction are those of its counted regions, or, if
    none of them has one, the words of its phrases. A prediction without names is wrong.
    """
    ground_truth = inputs.ground_truth
    count = len(inputs)
    pred_sample, predicted = _predicted_names(inputs.predictions, counted)
    rows = rows & ground_truth.has_answer
    true_code, pred_code = _common_codes(ground_truth.names, predicted)
    shared = _shared(count, (ground_truth.sample, true_code), (pred_sample, pred_code))
    total = ground_truth.counts + np.bincount(pred_sample, minlength=count)
    exact = rows & (2 * shared == total)
    f1 = np.where(rows, 2 * shared / np.maximum(total, 1), 0.0)
    return {
        "answer_exact": MetricTerms(exact.astype(np.int64), rows.astype(np.int64)),
        "answer_f1": MetricTerms(f1, rows.astype(np.int64)),
    }


def judge_metric(inputs: ScoringInput, rows: BoolArray, judge: Judge) -> MetricTerms:
    """`judge`: the mean of the judge function over the rows that have a ground truth answer, 0 without a predicted
    one.
    """
    ground_truth = inputs.ground_truth
    predictions = inputs.predictions
    if not len(ground_truth.answers):
        raise ProtocolError(
            "the judge needs the dataset's answers: read the ground truth with texts=True"
        )
    value = np.zeros(len(ground_truth))
    rows = rows & ground_truth.has_answer
    for sample in np.flatnonzero(rows).tolist():
        right = ground_truth.answers[sample]
        predicted = predictions.answers[sample] if len(predictions.answers) else None
        if right is not None and predicted is not None:
            value[sample] = judge(ground_truth.questions[sample], right, predicted)
            if not 0.0 <= value[sample] <= 1.0:
                raise ProtocolError(
                    f"sample {ground_truth.ids[sample]!r}: the judge returned {value[sample]}, not within 0 and 1"
                )
    return MetricTerms(value, rows.astype(np.int64))


def _predicted_names(
    predictions: PredictionColumns, counted: BoolArray
) -> tuple[Int64Array, Codes]:
    """Sample and name of all counted regions that have one, and of the phrases of predictions without such a region."""
    has = np.array([name is not None for name in predictions.names.names], bool)
    named = counted & has[predictions.names.codes] if len(has) else np.zeros(0, bool)
    sample = predictions.sample[named]
    codes = predictions.names.codes[named]
    names = predictions.names.names
    if predictions.phrases is None or predictions.phrases.words is None:
        return sample, Codes(codes, names)
    unnamed = np.ones(len(predictions), bool)
    unnamed[sample] = False
    used = unnamed[predictions.phrases.sample]
    words = predictions.phrases.words
    return (
        np.concatenate([sample, predictions.phrases.sample[used]]),
        Codes(
            np.concatenate([codes, words.codes[used] + np.int32(len(names))]),
            (*names, *words.names),
        ),
    )


def _common_codes(one: Codes, other: Codes) -> tuple[Int64Array, Int64Array]:
    """Codes of both columns after normalising, equal where the names are."""
    code: dict[str, int] = {}

    def recode(column: Codes) -> Int64Array:
        table = [
            code.setdefault(normalise(name or ""), len(code)) for name in column.names
        ]
        return (
            np.array(table, np.int64)[column.codes] if table else np.zeros(0, np.int64)
        )

    return recode(one), recode(other)


def _shared(
    count: int, one: tuple[Int64Array, Int64Array], other: tuple[Int64Array, Int64Array]
) -> Int64Array:
    """How many names two lists have in common in each sample, repeats counted: int64 [count]."""
    width = 1 + max((int(codes.max(initial=0)) for _, codes in (one, other)), default=0)
    keys, times = np.unique(one[0] * width + one[1], return_counts=True)
    other_keys, other_times = np.unique(other[0] * width + other[1], return_counts=True)
    both, left, right = np.intersect1d(
        keys, other_keys, assume_unique=True, return_indices=True
    )
    least: Float64Array = np.minimum(times[left], other_times[right]).astype(np.float64)
    return np.bincount(both // width, least, minlength=count).astype(np.int64)

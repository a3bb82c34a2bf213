"""Answer metrics: predicted names against the names of the targets, and a judge function for whole answers."""

import re
from collections.abc import Callable

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.metrics import Metric
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


def answer_metrics(inputs: ScoringInput, scorable: BoolArray) -> dict[str, Metric]:
    """`answer_exact`: share of predictions that name exactly the targets, each as often as it is a target;
    `answer_f1`: mean F1 of the names. Over scorable questions with targets whose prediction has words.

    The names of a prediction are those of its regions, or, if no region has one, the words of its phrases.
    """
    ground_truth, predictions = inputs.ground_truth, inputs.predictions
    pred_sample, predicted = _predicted_names(predictions)
    words = _has_words(predictions) & scorable & (ground_truth.counts > 0)
    count = len(ground_truth)
    true_code, pred_code = _common_codes(ground_truth.names, predicted)
    shared = _shared(count, (ground_truth.sample, true_code), (pred_sample, pred_code))
    total = ground_truth.counts + np.bincount(pred_sample, minlength=count)
    exact = words & (2 * shared == total)
    f1 = np.where(words, 2 * shared / np.maximum(total, 1), 0.0)
    return {
        "answer_exact": Metric(exact.astype(np.int64), words.astype(np.int64)),
        "answer_f1": Metric(f1, words.astype(np.int64)),
    }


def judge_metric(inputs: ScoringInput, scorable: BoolArray, judge: Judge) -> Metric:
    """`judge`: the mean of the judge function, over scorable questions with a true answer and a predicted one."""
    ground_truth, predictions = inputs.ground_truth, inputs.predictions
    if not len(ground_truth.answers):
        raise ProtocolError("the judge needs the dataset's answers: read the ground truth with texts=True")
    value = np.zeros(len(ground_truth))
    counted = np.zeros(len(ground_truth), np.int64)
    for sample in np.flatnonzero(scorable & _has_words(predictions)).tolist():
        right, predicted = ground_truth.answers[sample], predictions.answers[sample]
        if right is not None and predicted is not None:
            value[sample] = judge(ground_truth.questions[sample], right, predicted)
            counted[sample] = 1
            if not 0.0 <= value[sample] <= 1.0:
                raise ProtocolError(
                    f"sample {ground_truth.ids[sample]!r}: the judge returned {value[sample]}, not within 0 and 1"
                )
    return Metric(value, counted)


def _has_words(predictions: PredictionColumns) -> BoolArray:
    words = np.zeros(len(predictions), bool)
    if len(predictions.answers):
        words |= np.array([text is not None for text in predictions.answers], bool)
    words[predictions.sample[_named(predictions.names)]] = True
    return words


def _named(names: Codes) -> BoolArray:
    """Whether each row has a name."""
    has = np.array([name is not None for name in names.names], bool)
    named: BoolArray = has[names.codes] if len(has) else np.zeros(0, bool)
    return named


def _predicted_names(predictions: PredictionColumns) -> tuple[Int64Array, Codes]:
    """Sample and name of all named regions, and of the phrases of predictions without a named region."""
    named = _named(predictions.names)
    sample = predictions.sample[named]
    codes, names = predictions.names.codes[named], predictions.names.names
    if predictions.phrases is None or predictions.phrases.words is None:
        return sample, Codes(codes, names)
    unnamed = np.ones(len(predictions), bool)
    unnamed[sample] = False
    used = unnamed[predictions.phrases.sample]
    words = predictions.phrases.words
    return (
        np.concatenate([sample, predictions.phrases.sample[used]]),
        Codes(np.concatenate([codes, words.codes[used] + np.int32(len(names))]), (*names, *words.names)),
    )


def _common_codes(one: Codes, other: Codes) -> tuple[Int64Array, Int64Array]:
    """Codes of both columns after normalising, equal where the names are."""
    code: dict[str, int] = {}

    def recode(column: Codes) -> Int64Array:
        table = [code.setdefault(normalise(name or ""), len(code)) for name in column.names]
        return np.array(table, np.int64)[column.codes] if table else np.zeros(0, np.int64)

    return recode(one), recode(other)


def _shared(
    count: int, one: tuple[Int64Array, Int64Array], other: tuple[Int64Array, Int64Array]
) -> Int64Array:
    """How many names two lists have in common in each sample, repeats counted: int64 [count]."""
    width = 1 + max((int(codes.max(initial=0)) for _, codes in (one, other)), default=0)
    keys, times = np.unique(one[0] * width + one[1], return_counts=True)
    other_keys, other_times = np.unique(other[0] * width + other[1], return_counts=True)
    both, left, right = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    least: Float64Array = np.minimum(times[left], other_times[right]).astype(np.float64)
    return np.bincount(both // width, least, minlength=count).astype(np.int64)

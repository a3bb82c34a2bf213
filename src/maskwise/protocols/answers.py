"""Answer metrics: predicted names against the names of the targets. `maskwise.judging` judges whole answers."""

import re

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.columns import Phrases
from maskwise.protocols.metrics import MetricTerms
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.store import Codes

_NUMBER = re.compile(r"_\d+(?='|\b|_|$)")
_OWNER = re.compile(r"['’]s?\b")
_BREAK = re.compile(r"[\W_]+")
_NEGATION = re.compile(
    r"(?:\b(?:no|not|without|never|neither|nor|none of)|n['’]t)(?: (?:a|an|any|the|see))*\s+$",
    re.IGNORECASE,
)
"""Words that deny what follows directly: "there is no", "I don't see any", "not the"."""
_NEGATIVE = re.compile(r"(?:no|not|without) ", re.IGNORECASE)
"""How a phrase begins that holds its own negation: "no cup"."""
_ARTICLE = re.compile(r"^(?:a|an|the|some) ")


def normalise(name: str) -> str:
    """A name without case, punctuation, leading article and instance number: `The knife_1's handle` and
    `knife:handle` both give `knife handle`.
    """
    text = _NUMBER.sub("", name.casefold())
    text = _OWNER.sub("", text)
    text = _BREAK.sub(" ", text).strip()
    return _ARTICLE.sub("", text)


def answer_metrics(
    inputs: ScoringInput, rows: BoolArray, counted: BoolArray
) -> dict[str, MetricTerms]:
    """`answer_exact`: share of predictions that name exactly the targets, each as often as it is a target;
    `answer_f1`: mean F1 of the names.

    rows: bool [samples], the questions to look at; those without a ground truth answer have no answer metrics. counted:
    bool [regions], the predicted regions that count. The names of a prediction are those of its counted regions, or, if
    none of them has one, the words of its phrases. A prediction without names is wrong.

    - Where some regions have a name, a counted region without one counts as a wrong name. For the target "cup", the
      regions "cup" and "thing" have F1 0.667, and so have "cup" and an unnamed region.
    - A phrase names what it refers to: one that refers to no region, or that follows a negation, names nothing. "No cup
      here" with the phrase "cup" does not name the cup.
    """
    ground_truth = inputs.ground_truth
    count = len(inputs)
    pred_sample, pred_names = _predicted_names(inputs.predictions, counted)
    rows = rows & ground_truth.has_answer
    true_code, pred_code = _common_codes(ground_truth.names, pred_names)
    shared = _count_shared(
        count, (ground_truth.sample, true_code), (pred_sample, pred_code)
    )
    unnamed = _count_unnamed(inputs.predictions, counted)
    total = ground_truth.counts + unnamed + np.bincount(pred_sample, minlength=count)
    # All names of both lists are shared: the lists are equal.
    is_exact = rows & (2 * shared == total)
    f1 = np.where(rows, 2 * shared / np.maximum(total, 1), 0.0)
    denominator = rows.astype(np.int64)
    return {
        "answer_exact": MetricTerms(is_exact.astype(np.int64), denominator),
        "answer_f1": MetricTerms(f1, denominator),
    }


def _predicted_names(
    predictions: PredictionColumns, counted: BoolArray
) -> tuple[Int64Array, Codes]:
    """Sample and name of all counted regions that have one, and of the phrases of predictions without such a region."""
    names = predictions.names.names
    is_name = np.array([name is not None for name in names], bool)
    is_named = np.zeros(0, bool)
    if len(names):
        is_named = counted & is_name[predictions.names.codes]
    sample = predictions.sample[is_named]
    codes = predictions.names.codes[is_named]
    phrases = predictions.phrases
    if phrases is None or phrases.words is None:
        return sample, Codes(codes, names)
    is_unnamed = np.ones(len(predictions), bool)
    is_unnamed[sample] = False
    refers = np.diff(phrases.offsets) > 0
    is_used = is_unnamed[phrases.sample] & refers
    is_used &= ~_are_negated(predictions, phrases, is_used)
    # The words follow the names in one list, so their codes are shifted.
    word_codes = phrases.words.codes[is_used] + np.int32(len(names))
    all_codes = np.concatenate([codes, word_codes])
    all_samples = np.concatenate([sample, phrases.sample[is_used]])
    return all_samples, Codes(all_codes, (*names, *phrases.words.names))


def _count_unnamed(predictions: PredictionColumns, counted: BoolArray) -> Int64Array:
    """Counted regions without a name in predictions that name another one, int64 [samples]."""
    count = len(predictions)
    if not len(predictions.names.names):
        return np.zeros(count, np.int64)
    is_name = np.array([name is not None for name in predictions.names.names], bool)
    has_name = is_name[predictions.names.codes]
    named = np.bincount(predictions.sample[counted & has_name], minlength=count)
    unnamed = np.bincount(predictions.sample[counted & ~has_name], minlength=count)
    return np.where(named > 0, unnamed, 0)


def _are_negated(
    predictions: PredictionColumns, phrases: Phrases, wanted: BoolArray
) -> BoolArray:
    """Whether each of the wanted phrases follows a negation in its answer, bool [phrases].

    Phrases of one answer are looked for one after another. Without the texts of the answers none is negated.
    """
    negated = np.zeros(len(wanted), bool)
    if phrases.words is None or not len(predictions.answers):
        return negated
    ends: dict[int, int] = {}
    for item in np.flatnonzero(wanted).tolist():
        sample = int(phrases.sample[item])
        text = predictions.answers[sample] or ""
        words = phrases.words.names[phrases.words.codes[item]] or ""
        start = text.find(words, ends.get(sample, 0))
        if start < 0:
            continue
        ends[sample] = start + len(words)
        negated[item] = bool(_NEGATION.search(text[:start]) or _NEGATIVE.match(words))
    return negated


def _common_codes(a: Codes, b: Codes) -> tuple[Int64Array, Int64Array]:
    """Codes of both columns after normalising, equal where the names are."""
    code_of: dict[str, int] = {}

    def recode(column: Codes) -> Int64Array:
        if not column.names:
            return np.zeros(0, np.int64)
        new_codes = []
        for name in column.names:
            new_codes.append(code_of.setdefault(normalise(name or ""), len(code_of)))
        return np.array(new_codes, np.int64)[column.codes]

    return recode(a), recode(b)


def _count_shared(
    count: int, a: tuple[Int64Array, Int64Array], b: tuple[Int64Array, Int64Array]
) -> Int64Array:
    """How many names two lists have in common in each sample, repeats counted: int64 [count].

    a, b: sample and code of each name.
    """
    sample_a, code_a = a
    sample_b, code_b = b
    # One number for sample and code.
    width = 1 + max(int(code_a.max(initial=0)), int(code_b.max(initial=0)))
    keys_a, times_a = np.unique(sample_a * width + code_a, return_counts=True)
    keys_b, times_b = np.unique(sample_b * width + code_b, return_counts=True)
    keys, rows_a, rows_b = np.intersect1d(
        keys_a, keys_b, assume_unique=True, return_indices=True
    )
    times: Float64Array = np.minimum(times_a[rows_a], times_b[rows_b]).astype(
        np.float64
    )
    return np.bincount(keys // width, times, minlength=count).astype(np.int64)

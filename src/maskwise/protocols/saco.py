"""SA-Co: cgF1 of SAM 3, `sam3/eval/cgf1_eval.py` (facebookresearch/sam3, commit
99d02f2), and lmms-eval's form of it.

A question is a noun phrase about an image. Its truth is a set of instances, or none (a
negative phrase), by up to three annotators.

Rule (`scorer="sam3"`). Predicted masks with a score of at least 0.5 are matched one to
one with the instances so that the total IoU is largest; a pair counts as found if its
IoU reaches a threshold (0.5, 0.55, ..., 0.95). Of several annotators the best for the
prediction counts: one without instances where nothing was predicted, else the one with
the largest mean F1 over thresholds, the first on ties. Then, over all questions,

- positive micro F1: from true positives, false negatives, and the false positives of
  phrases that have instances;
- image-level MCC: Matthews' correlation of "something was predicted" with "there is an
  instance";
- cgF1 = positive micro F1 x MCC, averaged over thresholds.

Quirks of the published code, all kept:
- 1e-4 is added to the denominators of precision, recall and F1, 1e-6 to those at image
  level: a perfect result is .99995.
- A mask without pixels counts as a prediction if its score is 0.5 or more.
- Macro F1 leaves out phrases for which nothing was predicted.
- Questions that are not exhaustively annotated (tag `exhaustive` = `no`) are left out.

`scorer="lmms_eval"` (lmms-eval 0.7.2, `tasks/saco`): every mask whatever its score,
every question, no epsilons in the sums (those of single questions stay), and macro F1
counts phrases for which nothing was predicted as 0. lmms-eval prints cgF1 times 100;
here it is a fraction.

Failed and missing predictions count as if nothing was predicted, except that they are
never true negatives. gIoU and cIoU are not defined by this rule. `mask_type`: see
`lisa`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from maskwise.arrays import BoolArray, Float64Array, Int64Array, NumberArray
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.metrics import (
    CompositeMetric,
    MetricTerms,
    Scores,
    undefined_metric,
)
from maskwise.protocols.prediction_columns import PREDICTED, PredictionColumns
from maskwise.protocols.question_rule import LEFT_OUT
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)

Scorer = Literal["sam3", "lmms_eval"]

THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""IoU from which on a matched instance counts as found."""
SCORE_THRESHOLD = 0.5
"""Predictions with a smaller score are dropped by SAM 3's evaluation."""
F1_EPSILON = 1e-4
PRESENCE_EPSILON = 1e-6
"""Added to denominators by SAM 3's evaluation."""
EXHAUSTIVE = "exhaustive"
"""The tag of questions; `no` if not every instance is annotated."""

LEVELS = len(THRESHOLDS)
TP, FP, FN, POSITIVE_FP, MACRO = (
    slice(item * LEVELS, (item + 1) * LEVELS) for item in range(5)
)
"""Columns of the counts per question: one for each threshold."""
MACRO_QUESTIONS, FOUND, INVENTED, SILENT, MISSED = range(5 * LEVELS, 5 * LEVELS + 5)
"""Further columns: questions in macro F1, and the four outcomes at image level."""


@dataclass(frozen=True)
class PhraseCounts:
    """Counts of each question against one annotator: int64 [samples, thresholds]; instances, masks: int64 [samples]."""

    tp: Int64Array
    instances: Int64Array
    masks: Int64Array

    @property
    def fp(self) -> Int64Array:
        """Predicted masks that found no instance."""
        return self.masks[:, None] - self.tp

    @property
    def fn(self) -> Int64Array:
        """Instances that no mask found."""
        return self.instances[:, None] - self.tp


def score(
    inputs: ScoringInput,
    *,
    scorer: Scorer = "sam3",
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    predictions = inputs.predictions
    counted = np.ones(len(inputs), bool)
    if scorer == "sam3":
        predictions = predictions.keep_regions(predictions.score >= SCORE_THRESHOLD)
        counted = _exhaustive(inputs.ground_truth)
    scorable = inputs.overlaps(mask_type).scorable
    best = choose_annotators(inputs, predictions, mask_type)
    answered = inputs.predictions.state == PREDICTED
    columns = phrase_columns(best, answered, scorer)
    columns[~(counted & scorable)] = 0.0
    composites = {
        name: CompositeMetric(columns, formula, LOWEST.get(name, 0.0))
        for name, formula in FORMULAS[scorer].items()
    }
    right_count = answered & (best.masks == best.instances)
    weight = (counted & scorable).astype(np.int64)
    return Scores(
        protocol="saco",
        options={"mask_type": mask_type, "scorer": scorer},
        statuses=inputs.statuses(
            {
                f"{LEFT_OUT}: not exhaustively annotated": ~counted & scorable,
                NO_TARGET_MASK: ~scorable,
            }
        ),
        metrics={
            "giou": undefined_metric(len(inputs)),
            "ciou": undefined_metric(len(inputs)),
            "count_accuracy": MetricTerms(right_count * weight, weight),
        },
        composites=composites,
    )


def choose_annotators(
    inputs: ScoringInput,
    predictions: PredictionColumns,
    mask_type: OfficialMaskType,
) -> PhraseCounts:
    """The counts of each question against the annotator that suits the prediction best."""
    truth = inputs.without_ignore.ground_truth
    best = count_phrases(truth, predictions, mask_type, inputs.threads)
    best_rank = _annotator_rank(best)
    for other in truth.others:
        counts = count_phrases(
            truth.of_annotator(other), predictions, mask_type, inputs.threads
        )
        rank = _annotator_rank(counts)
        better = other.known & (rank > best_rank)
        best = PhraseCounts(
            np.where(better[:, None], counts.tp, best.tp),
            np.where(better, counts.instances, best.instances),
            best.masks,
        )
        best_rank = np.where(better, rank, best_rank)
    return best


def count_phrases(
    truth: GroundTruth,
    predictions: PredictionColumns,
    mask_type: OfficialMaskType,
    threads: int,
) -> PhraseCounts:
    """Match the masks of every question with the instances of one annotator."""
    inputs = ScoringInput(truth, predictions, threads=threads)
    overlaps = inputs.overlaps(mask_type)
    iou = overlaps.iou[overlaps.matched]
    sample = overlaps.pairs.sample[overlaps.matched]
    hits = [
        np.bincount(sample[iou >= threshold], minlength=len(truth))
        for threshold in THRESHOLDS
    ]
    return PhraseCounts(np.stack(hits, 1), truth.counts, inputs.predictions.counts)


def phrase_columns(
    counts: PhraseCounts, answered: BoolArray, scorer: Scorer
) -> Float64Array:
    """What each question adds to the sums, float64 [samples, columns]."""
    columns = np.zeros((len(counts.masks), 5 * LEVELS + 5))
    positive = counts.instances > 0
    predicted = counts.masks > 0
    columns[:, TP] = counts.tp
    columns[:, FP] = counts.fp
    columns[:, FN] = counts.fn
    columns[:, POSITIVE_FP] = counts.fp * positive[:, None]
    in_macro = positive & predicted if scorer == "sam3" else positive
    columns[:, MACRO] = local_f1(counts) * in_macro[:, None]
    columns[:, MACRO_QUESTIONS] = in_macro
    columns[:, FOUND] = positive & predicted
    columns[:, INVENTED] = ~positive & predicted
    columns[:, SILENT] = ~positive & ~predicted & answered
    columns[:, MISSED] = positive & ~predicted
    return columns


def local_f1(counts: PhraseCounts) -> Float64Array:
    """F1 of each question at each threshold, float64 [samples, thresholds]; lmms-eval has this epsilon too."""
    return f1_of(counts.tp, counts.fp, counts.fn, F1_EPSILON)


def f1_of(
    tp: NumberArray, fp: NumberArray, fn: NumberArray, epsilon: float
) -> Float64Array:
    """2 p r / (p + r), with epsilon added to every denominator; 0 where a denominator is 0."""
    precision = ratio(tp, tp + fp + epsilon)
    recall = ratio(tp, tp + fn + epsilon)
    return ratio(2 * precision * recall, precision + recall + epsilon)


def ratio(top: NumberArray, bottom: ArrayLike) -> Float64Array:
    """top / bottom, 0 where the bottom is 0."""
    whole = np.asarray(bottom, np.float64)
    return np.divide(top, whole, out=np.zeros_like(whole), where=whole != 0)


def ratio_or_nan(top: Float64Array, bottom: Float64Array) -> Float64Array:
    """top / bottom, NaN where the bottom is 0."""
    return np.divide(top, bottom, out=np.full_like(bottom, np.nan), where=bottom != 0)


def mean_over_levels(values: Float64Array) -> Float64Array:
    """From one value per threshold, float64 [groups, thresholds], to their mean."""
    mean: Float64Array = values.mean(1)
    return mean


def _annotator_rank(counts: PhraseCounts) -> Float64Array:
    """How well each question fits an annotator: 2 for a true negative, else its mean F1."""
    true_negative = (counts.instances == 0) & (counts.masks == 0)
    return np.where(true_negative, 2.0, mean_over_levels(local_f1(counts)))


def _exhaustive(truth: GroundTruth) -> BoolArray:
    """Whether every instance of a question is annotated, bool [samples]; true where the dataset does not say."""
    if EXHAUSTIVE not in truth.tags:
        return np.ones(len(truth), bool)
    codes = truth.tags[EXHAUSTIVE]
    is_no = np.array([name == "no" for name in codes.names], bool)
    return ~is_no[codes.codes]


class _Formulas:
    """The metrics as functions of summed columns [groups, columns]; each returns float64 [groups]."""

    def __init__(self, f1_epsilon: float, presence_epsilon: float) -> None:
        self.f1_epsilon = f1_epsilon
        self.presence_epsilon = presence_epsilon

    def positive_f1(self, sums: Float64Array) -> Float64Array:
        false_positives = sums[:, POSITIVE_FP]
        levels = f1_of(sums[:, TP], false_positives, sums[:, FN], self.f1_epsilon)
        return mean_over_levels(levels)

    def f1(self, sums: Float64Array) -> Float64Array:
        levels = f1_of(sums[:, TP], sums[:, FP], sums[:, FN], self.f1_epsilon)
        return mean_over_levels(levels)

    def precision(self, sums: Float64Array) -> Float64Array:
        return mean_over_levels(
            ratio(sums[:, TP], sums[:, TP] + sums[:, FP] + self.f1_epsilon)
        )

    def positive_precision(self, sums: Float64Array) -> Float64Array:
        return mean_over_levels(
            ratio(sums[:, TP], sums[:, TP] + sums[:, POSITIVE_FP] + self.f1_epsilon)
        )

    def recall(self, sums: Float64Array) -> Float64Array:
        return mean_over_levels(
            ratio(sums[:, TP], sums[:, TP] + sums[:, FN] + self.f1_epsilon)
        )

    def macro_f1(self, sums: Float64Array) -> Float64Array:
        questions = sums[:, MACRO_QUESTIONS]
        return ratio_or_nan(mean_over_levels(sums[:, MACRO]), questions)

    def presence_precision(self, sums: Float64Array) -> Float64Array:
        hits = sums[:, FOUND]
        return ratio(hits, hits + sums[:, INVENTED] + self.presence_epsilon)

    def presence_recall(self, sums: Float64Array) -> Float64Array:
        hits = sums[:, FOUND]
        return ratio(hits, hits + sums[:, MISSED] + self.presence_epsilon)

    def presence_f1(self, sums: Float64Array) -> Float64Array:
        precision = self.presence_precision(sums)
        recall = self.presence_recall(sums)
        return ratio(2 * precision * recall, precision + recall + self.presence_epsilon)

    def false_positive_rate(self, sums: Float64Array) -> Float64Array:
        invented = sums[:, INVENTED]
        return ratio(invented, invented + sums[:, SILENT] + self.presence_epsilon)

    def mcc(self, sums: Float64Array) -> Float64Array:
        true_positive = sums[:, FOUND]
        false_positive = sums[:, INVENTED]
        true_negative = sums[:, SILENT]
        false_negative = sums[:, MISSED]
        predicted = true_positive + false_positive
        positive = true_positive + false_negative
        negative = true_negative + false_positive
        silent = true_negative + false_negative
        product = predicted * positive * negative * silent
        top = true_positive * true_negative - false_positive * false_negative
        return ratio(top, np.sqrt(product) + self.presence_epsilon)

    def cgf1(self, sums: Float64Array) -> Float64Array:
        return self.positive_f1(sums) * self.mcc(sums)


SAM3 = _Formulas(F1_EPSILON, PRESENCE_EPSILON)
LMMS_EVAL = _Formulas(0.0, 0.0)

FORMULAS = {
    scorer: {
        "cgf1": formulas.cgf1,
        "positive_micro_f1": formulas.positive_f1,
        "presence_mcc": formulas.mcc,
        "positive_macro_f1": formulas.macro_f1,
        "micro_f1": formulas.f1,
        "micro_precision": formulas.precision,
        "micro_recall": formulas.recall,
        "presence_f1": formulas.presence_f1,
    }
    for scorer, formulas in (("sam3", SAM3), ("lmms_eval", LMMS_EVAL))
}
"""The metrics of each scorer, the headline first."""

LOWEST = {"cgf1": -1.0, "presence_mcc": -1.0}
"""The least possible values: a correlation may be negative."""

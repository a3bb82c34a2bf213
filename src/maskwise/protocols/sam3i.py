"""SAM3-I: `scripts/evaluate.py` (commit 9d3a4c7).

Rule. The joined predicted masks of a question against its targets; ignored pixels are
not known. SAM3-I prints percent; values here are fractions. `form`, the two published
modes:

- `one_to_one`: gIoU is the mean of I / U over records, 0 where U is 0; cIoU is the
  summed I over the summed U (0 if that is 0), **which the script prints as "mIoU"**.
  `p50` is the share of records with an IoU of at least .5. `ap` and `ap50` are COCO's
  average precision of the joined masks (score: the largest of the question), one
  annotation per question, over the images that have a record.
- `multi_instance`: the truth of a question is the union of the targets of **all
  questions about its image**. gIoU is the mean over images of the mean over their
  records, 0 for an image without records; likewise `p50`. There is no cIoU.

Quirks: a question without a record is left out of `one_to_one`. A mask of another size
makes `one_to_one` raise; here and in `multi_instance` such a question counts 0.
`ap=False` leaves out the average precisions, which take two CPU seconds per 10,000 images.
`mask_type`: see `lisa`.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from maskwise.arrays import Float64Array, Int64Array
from maskwise.masks import pair_areas
from maskwise.protocols.average_precision import (
    IOU_THRESHOLDS,
    ImageDetections,
    average_precision,
)
from maskwise.protocols.columns import take_masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.metrics import MetricTerms, Scores, undefined_metric
from maskwise.protocols.prediction_columns import MISSING, PREDICTED
from maskwise.protocols.question_rule import (
    QuestionRule,
    measure_questions,
    reasons_to_leave_out,
    score_questions,
)
from maskwise.protocols.ragged import counts_to_offsets, flatten
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)
from maskwise.store import Codes, MaskColumn

Form = Literal["one_to_one", "multi_instance"]

RULE = QuestionRule(
    ignored="not known", both_empty="zero", wrong_size="zero", empty_ciou=0.0
)
HALF = 0.5
"""IoU from which on `p50` counts a record."""


def score(
    inputs: ScoringInput,
    *,
    form: Form = "one_to_one",
    ap: bool = True,
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    if form == "multi_instance":
        return _score_images(inputs, mask_type)
    scores = score_questions(
        "sam3i", inputs, RULE, mask_type, options={"form": "one_to_one"}
    )
    giou = scores.metrics["giou"]
    hits = ((giou.numerator >= HALF) & (giou.denominator > 0)).astype(np.int64)
    p50 = MetricTerms(hits, giou.denominator, gate=giou.denominator)
    scores = replace(scores, metrics={**scores.metrics, "p50": p50})
    if not ap:
        return scores
    detections = image_detections(inputs, mask_type)
    average_precisions = {
        "ap": average_precision(detections),
        "ap50": average_precision(detections, IOU_THRESHOLDS[:1]),
    }
    return replace(scores, plain=average_precisions)


def image_detections(
    inputs: ScoringInput, mask_type: OfficialMaskType
) -> list[ImageDetections]:
    """The joined masks of the questions of each image, for the images that have a record."""
    overlaps = inputs.without_ignore.overlaps(mask_type)
    truth = inputs.ground_truth
    predictions = inputs.predictions
    size = truth.image_size
    everything = np.arange(len(inputs))
    predicted = overlaps.pred.unions(everything, size)
    targets = overlaps.target.unions(everything, size)
    best_score = np.zeros(len(inputs))
    np.maximum.at(best_score, predictions.sample, predictions.score)
    images = []
    for image in range(truth.cluster_count):
        questions = np.flatnonzero(truth.cluster == image)
        if (predictions.state[questions] == MISSING).all():
            continue
        detected = questions[predictions.counts[questions] > 0]
        # COCO's loader drops nothing here: a question without target pixels is an annotation that nothing matches.
        rows = np.repeat(detected, len(questions))
        columns = np.tile(questions, len(detected))
        areas = pair_areas(predicted[rows], targets[columns])
        union = areas.a + areas.b - areas.intersection
        iou = areas.intersection / np.maximum(union, 1)
        images.append(
            ImageDetections(
                best_score[detected], iou.reshape(len(detected), len(questions))
            )
        )
    return images


def _score_images(inputs: ScoringInput, mask_type: OfficialMaskType) -> Scores:
    """The mode `multi_instance`."""
    truth = targets_of_images(inputs.without_ignore.ground_truth)
    joined = ScoringInput(truth, inputs.predictions, threads=inputs.threads)
    areas = measure_questions(joined, "not known", mask_type)
    scorable = joined.overlaps(mask_type).scorable
    recorded = scorable & (inputs.predictions.state != MISSING)
    drawn = recorded & (inputs.predictions.state == PREDICTED)
    iou = np.where(drawn, areas.intersection / np.maximum(areas.union, 1), 0.0)
    weight = 1 / _per_image(truth, scorable.astype(np.int64), empty=1)
    share = recorded / _per_image(truth, recorded.astype(np.int64), empty=1)
    image_weight = np.where(scorable, weight, 0.0)
    return Scores(
        protocol="sam3i",
        options={"mask_type": mask_type, "form": "multi_instance"},
        statuses=inputs.statuses(
            {
                **reasons_to_leave_out(inputs, RULE, areas, scorable & ~recorded),
                NO_TARGET_MASK: ~scorable,
            }
        ),
        metrics={
            "giou": MetricTerms(iou * share, image_weight),
            "ciou": undefined_metric(len(inputs)),
            "p50": MetricTerms((iou >= HALF) * share, image_weight),
        },
    )


def targets_of_images(truth: GroundTruth) -> GroundTruth:
    """The same questions, each with one target: the union of the targets of all questions about its image."""
    count = len(truth)
    visible = take_masks(_image_unions(truth, truth.visible), truth.cluster)
    amodal = take_masks(_image_unions(truth, truth.amodal), truth.cluster)
    return replace(
        truth,
        offsets=np.arange(count + 1),
        visible=visible,
        amodal=amodal,
        overlap=MaskColumn(visible.masks, np.zeros(count, bool)),
        names=Codes(np.zeros(count, np.int32), ("",)),
        part=np.zeros(count, bool),
        phrases=None,
        others=(),
    )


def _image_unions(truth: GroundTruth, column: MaskColumn) -> MaskColumn:
    """The union of the targets of each image; absent where one of them has no mask of the type."""
    size = np.zeros((truth.cluster_count, 2), np.int32)
    size[truth.cluster] = truth.image_size
    questions = np.argsort(truth.cluster, kind="stable")
    targets = flatten(truth.offsets, questions)
    image = truth.cluster[truth.sample[targets]]
    known = column.present[targets]
    mask_counts = np.bincount(image[known], minlength=truth.cluster_count)
    masks = column.masks[targets[known]]
    unions = masks.merge(counts_to_offsets(mask_counts), size)
    lacking = np.bincount(image[~known], minlength=truth.cluster_count)
    return MaskColumn(unions, lacking == 0)


def _per_image(truth: GroundTruth, values: Int64Array, *, empty: int) -> Float64Array:
    """The sum over the questions of each question's image, `empty` where it is 0: float64 [samples]."""
    total = np.bincount(truth.cluster, values, minlength=truth.cluster_count)
    return np.where(total > 0, total, empty)[truth.cluster]

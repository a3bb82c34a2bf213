"""Strict, the rule we recommend: a free reply has to find the right things, all of them, nothing else, as wanted.

Rule. Only free answers: a prediction made with the true answer in the prompt (`Prediction.forced`) is refused. Regions
and targets of a question are matched one to one by the best total IoU. The question scores the summed IoU of the pairs
divided by max(regions, targets): extra and missing masks both cost. Without targets it scores 1 if the reply has no
region, else 0. A missing or failed reply scores 0 and is counted as such.

The mask must be of the type wanted. A reply's type is the one it names, else that of the masks it holds. If it is not
the one wanted, no region of the reply has any IoU. `both` needs both: the IoU of a pair is then the mean of its visible
and amodal IoU, a mask left out counting 0. `mask_type="lenient"` looks only at the mask of the type wanted and leaves
the judgement of the type to `mask_type_accuracy`.

Pixels to ignore are taken from all masks first. `no_target` empties a reply. A region whose mask is empty says nothing
and is not counted, unless the mask wanted of some target is empty as well (a thing fully hidden): two empty masks have
IoU 1.

Figures, over all scorable questions unless stated:
    giou, ciou            mean of the above; summed intersection of pairs over the union of all drawn and all wanted
    boundary_iou          as giou, with the IoU of boundary bands 2 % of the diagonal wide (Cheng et al., CVPR 2021)
    precision, recall, f1 of targets, a hit being a pair with IoU of 0.5 or more
    p@0.5 ... p@0.9       share of questions with targets that score at least that
    mask_type_accuracy    share of questions with targets whose reply is of the type wanted; `confusion` has the counts
    no_target_accuracy    share of questions without targets whose reply has no region
    target_accuracy       share of questions with targets whose reply has one
    target_count_error    mean difference between the numbers of regions and targets
    answer_exact, _f1     see `answers`; `judge`: the mean of a judge function, where one is passed in

and where amodal masks are wanted:
    occluded_iou, _ciou   IoU on the hidden region alone: mean over targets that have one (unmatched: 0), and
                          cumulative. Predicted as hidden: the amodal mask without the reply's visible one, or, if it
                          has none, without the true one
    copy_gain             mean over pairs: amodal IoU minus what the visible mask (the reply's, else the true one)
                          scores in its place
    visible_outside_amodal  share of predicted regions with both masks whose visible one leaves the amodal one
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.masks import Masks, boundary_areas, boundary_width, pair_areas
from maskwise.protocols.answers import Judge, answer_metrics, judge_metric
from maskwise.protocols.ground_truth import BOTH, VISIBLE
from maskwise.protocols.mask_selection import SelectedMasks
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Metric, Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.prediction_columns import PREDICTED, UNSTATED
from maskwise.protocols.scoring_input import ScoringInput

DESCRIPTION = (
    "free answers, one-to-one matching by IoU, extra and missing masks cost, the mask type must be right"
)
HIT = 0.5
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
BINS = 10


def score(
    inputs: ScoringInput, *, mask_type: Literal["exact", "lenient"] = "exact", judge: Judge | None = None
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    refuse_forced(inputs)
    match_ = match_questions(inputs, mask_type)
    scorable = match_.scorable
    metrics = {
        **_overlap_metrics(inputs, match_),
        **_target_metrics(match_),
        **_reply_metrics(inputs, match_),
        **answer_metrics(inputs, scorable),
        **_amodal_metrics(inputs, match_),
    }
    if judge is not None:
        metrics["judge"] = judge_metric(inputs, scorable, judge)
    return Scores(
        protocol="strict",
        options={"mask_type": mask_type},
        statuses=inputs.statuses({"a target has no mask of the type wanted": ~scorable}),
        metrics=metrics,
        confusion=_confusion(inputs, scorable & (match_.targets > 0)),
        calibration=_calibration(inputs, match_),
    )


def refuse_forced(inputs: ScoringInput) -> None:
    """Raise if any reply was made with the true answer in the prompt."""
    forced = np.flatnonzero(inputs.predictions.forced)
    if len(forced):
        raise ProtocolError(
            f"strict takes free answers only, but {len(forced)} predictions are forced (first: sample "
            f"{inputs.ground_truth.ids[forced[0]]!r}); let the model answer by itself, or use an official protocol"
        )


@dataclass(frozen=True)
class Match:
    """The matched pairs that have any IoU, and how many regions and targets there are.

    sample, pred, target: int64 [k] positions; iou: float64 [k]; regions, targets: int64 [samples]; drawn: bool [preds],
    whether the region counts at all; scorable: bool [samples].
    """

    sample: Int64Array
    pred: Int64Array
    target: Int64Array
    iou: Float64Array
    regions: Int64Array
    targets: Int64Array
    drawn: BoolArray
    scorable: BoolArray

    @property
    def size(self) -> Int64Array:
        """max(regions, targets) of each sample, at least 1."""
        return np.maximum(np.maximum(self.regions, self.targets), 1)


def match_questions(inputs: ScoringInput, mask_type: Literal["exact", "lenient"]) -> Match:
    """Match regions and targets of every question by the best total IoU."""
    ground_truth, predictions, index = inputs.ground_truth, inputs.predictions, inputs.index
    overlaps = inputs.overlaps("requested")
    both = ground_truth.requested_type == BOTH
    scorable = overlaps.scorable | both
    drawn = _drawn(inputs)
    allowed = (
        scorable
        if mask_type == "lenient"
        else scorable & (inputs.predicted_type == ground_truth.requested_type)
    )
    usable = drawn & allowed[predictions.sample]
    whole = overlaps.pred.selection.exact | ~usable
    gain = np.where(
        (usable & (overlaps.pred.selection.exact | both[predictions.sample]))[index.pred], overlaps.iou, 0.0
    )
    if both.any():
        pairs = np.flatnonzero(usable[index.pred] & both[index.sample])
        gain[pairs] = _mean_of_types(inputs, pairs)
    # Where whole questions are in or out, the matching by plain IoU is the one sought.
    chosen = overlaps.matched if bool(whole.all()) and not both.any() else match(index, gain)
    chosen = chosen[gain[chosen] > 0]
    return Match(
        index.sample[chosen],
        index.pred[chosen],
        index.target[chosen],
        gain[chosen],
        np.bincount(predictions.sample[drawn], minlength=len(ground_truth)),
        index.targets,
        drawn,
        scorable,
    )


def _drawn(inputs: ScoringInput) -> BoolArray:
    """Whether each predicted region counts, bool [regions]."""
    ground_truth, predictions = inputs.ground_truth, inputs.predictions
    pixels, hidden = np.zeros(len(predictions.score), bool), np.zeros(len(ground_truth), bool)
    for overlaps, looked_at in _planes(inputs, np.arange(len(ground_truth))):
        pixels |= looked_at[predictions.sample] & (overlaps.pred.area > 0)
        empty = overlaps.target.known & (overlaps.target.area == 0)
        hidden[ground_truth.sample[empty]] |= looked_at[ground_truth.sample[empty]]
    return ~predictions.no_target[predictions.sample] & (pixels | hidden[predictions.sample])


def _mean_of_types(inputs: ScoringInput, pairs: Int64Array) -> Float64Array:
    """Mean of visible and amodal IoU over the masks the target has; a mask the region lacks counts 0."""
    total = np.zeros(len(pairs))
    known = np.zeros(len(pairs))
    for kind in ("visible", "amodal"):
        overlaps = inputs.overlaps(kind)
        total += overlaps.iou[pairs]
        known += overlaps.target.known[inputs.index.target[pairs]]
    return total / np.maximum(known, 1.0)


def _overlap_metrics(inputs: ScoringInput, match_: Match) -> dict[str, Metric]:
    """gIoU, cIoU, boundary IoU and P@t."""
    count = len(inputs)
    scorable = match_.scorable.astype(np.int64)
    silent = (match_.regions == 0) & (match_.targets == 0) & (inputs.predictions.state == PREDICTED)
    value = sums(match_.sample, match_.iou, count) / match_.size + silent
    band = sums(match_.sample, _boundary_iou(inputs, match_), count) / match_.size + silent
    shared, drawn = _pixels(inputs, match_)
    targeted = match_.scorable & (match_.targets > 0)
    return {
        "giou": Metric(np.where(match_.scorable, value, 0.0), scorable),
        "ciou": Metric(shared, drawn - shared),
        "boundary_iou": Metric(np.where(match_.scorable, band, 0.0), scorable),
        **{
            f"p@{t}": Metric((targeted & (value >= t)).astype(np.int64), targeted.astype(np.int64))
            for t in THRESHOLDS
        },
    }


def _planes(inputs: ScoringInput, samples: Int64Array) -> list[tuple[Overlaps, BoolArray]]:
    """The planes to look at, each with which of the given samples are looked at in it."""
    both: BoolArray = inputs.ground_truth.requested_type[samples] == BOTH
    if not both.any():
        return [(inputs.overlaps("requested"), ~both)]
    overlap_sets = (inputs.overlaps("requested"), inputs.overlaps("visible"), inputs.overlaps("amodal"))
    return list(zip(overlap_sets, (~both, both, both)))


def _pixels(inputs: ScoringInput, match_: Match) -> tuple[Int64Array, Int64Array]:
    """Pixels shared by pairs, and all pixels of regions and targets, int64 [samples] each."""
    ground_truth, predictions, index, count = (
        inputs.ground_truth,
        inputs.predictions,
        inputs.index,
        len(inputs),
    )
    shared, total = np.zeros(count, np.int64), np.zeros(count, np.int64)
    pairs = index.find(match_.sample, match_.pred, match_.target)
    everyone = np.arange(count)
    for overlaps, looked_at in _planes(inputs, everyone):
        counts = looked_at & match_.scorable
        shared += np.where(counts, int_sums(match_.sample, overlaps.intersection[pairs], count), 0)
        drawn = np.where(match_.drawn, overlaps.pred.area, 0)
        area = int_sums(predictions.sample, drawn, count) + int_sums(
            ground_truth.sample, overlaps.target.area, count
        )
        total += np.where(counts, area, 0)
    return shared, total


def _boundary_iou(inputs: ScoringInput, match_: Match) -> Float64Array:
    """IoU of the boundary bands of each pair, mean over the types wanted, float64 [pairs]."""
    total, known = np.zeros(len(match_.iou)), np.zeros(len(match_.iou))
    for overlaps, looked_at in _planes(inputs, match_.sample):
        rows = np.flatnonzero(looked_at & overlaps.target.known[match_.target])
        known[rows] += 1
        rows = rows[overlaps.pred.known[match_.pred[rows]]]
        total[rows] += _band_iou(overlaps, match_.pred[rows], match_.target[rows])
    return total / np.maximum(known, 1.0)


def _band_iou(overlaps: Overlaps, pred: Int64Array, target: Int64Array) -> Float64Array:
    """Boundary IoU of pairs. Where neither mask is thick enough to have an inside, their bands are the masks."""
    sample = overlaps.predictions.sample[pred]
    pairs = overlaps.index.find(sample, pred, target)
    value: Float64Array = overlaps.iou[pairs]
    side = 2 * boundary_width(overlaps.ground_truth.image_size[sample]).astype(np.int64) + 1
    thick = _thick(overlaps.pred, pred, side) | _thick(overlaps.target, target, side)
    rows = np.flatnonzero(thick & (overlaps.intersection[pairs] > 0))
    bands = boundary_areas(
        overlaps.pred.masks[pred[rows]], overlaps.target.masks[target[rows]], threads=overlaps.threads
    )
    value[rows] = bands.iou(empty=1.0)
    return value


def _thick(side: SelectedMasks, rows: Int64Array, width: Int64Array) -> BoolArray:
    """Whether a square of this width might fit into each mask: False means that it cannot."""
    box = side.geometry.box[rows]
    extent = np.minimum(box[:, 2] - box[:, 0], box[:, 3] - box[:, 1])
    thick: BoolArray = (side.area[rows] >= width * width) & (extent >= width)
    return thick


def _target_metrics(match_: Match) -> dict[str, Metric]:
    """Precision, recall and F1 of targets."""
    hits = np.bincount(match_.sample[match_.iou >= HIT], minlength=len(match_.targets))
    regions, targets = (np.where(match_.scorable, column, 0) for column in (match_.regions, match_.targets))
    return {
        "precision": Metric(hits, regions),
        "recall": Metric(hits, targets),
        "f1": Metric(2 * hits, regions + targets),
    }


def _reply_metrics(inputs: ScoringInput, match_: Match) -> dict[str, Metric]:
    """What the reply decided: mask type, no target, how many."""
    answered = inputs.predictions.state == PREDICTED
    empty, targeted = match_.scorable & (match_.targets == 0), match_.scorable & (match_.targets > 0)
    right = targeted & answered & (inputs.predicted_type == inputs.ground_truth.requested_type)
    error = np.where(match_.scorable, np.abs(match_.regions - match_.targets), 0)
    return {
        "mask_type_accuracy": _share(right, targeted),
        "no_target_accuracy": _share(empty & answered & (match_.regions == 0), empty),
        "target_accuracy": _share(targeted & (match_.regions > 0), targeted),
        "target_count_error": Metric(error, match_.scorable.astype(np.int64), unit="count"),
    }


def _amodal_metrics(inputs: ScoringInput, match_: Match) -> dict[str, Metric]:
    """Hidden regions, the gain over copying, and visible masks that leave the amodal one."""
    return {**_hidden_metrics(inputs, match_), **_leaving_metric(inputs, match_)}


def _hidden_metrics(inputs: ScoringInput, match_: Match) -> dict[str, Metric]:
    """Over targets of which both masks are known, where amodal ones are wanted."""
    ground_truth, count = inputs.ground_truth, len(inputs)
    wants = match_.scorable & (ground_truth.requested_type != VISIBLE)
    zero, none = np.zeros(count), np.zeros(count, np.int64)
    names = ("occluded_iou", "occluded_ciou", "copy_gain")
    if not wants.any():
        return {name: Metric(zero, none) for name in names}
    visible, amodal = inputs.overlaps("visible"), inputs.overlaps("amodal")
    known = wants[ground_truth.sample] & visible.target.known & amodal.target.known
    rows = np.flatnonzero(known)
    area = np.zeros(len(known), np.int64)
    area[rows] = (amodal.target.masks[rows] - visible.target.masks[rows]).area(threads=inputs.threads)
    pairs = np.flatnonzero(known[match_.target] & amodal.pred.known[match_.pred])
    shared, drawn, gain = _look_behind(visible, amodal, match_.pred[pairs], match_.target[pairs])
    target, sample = match_.target[pairs], match_.sample[pairs]
    union = drawn + area[target] - shared
    hidden = area[target] > 0
    cumulative = int_sums(ground_truth.sample, area, count)
    cumulative += int_sums(sample[hidden], (union - area[target])[hidden], count)
    return {
        "occluded_iou": Metric(
            sums(sample[hidden], (shared / np.maximum(union, 1))[hidden], count),
            np.bincount(ground_truth.sample[area > 0], minlength=count),
        ),
        "occluded_ciou": Metric(int_sums(sample[hidden], shared[hidden], count), cumulative),
        "copy_gain": Metric(sums(sample, gain, count), np.bincount(sample, minlength=count)),
    }


def _look_behind(
    visible: Overlaps, amodal: Overlaps, pred: Int64Array, target: Int64Array
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """For pairs with an amodal mask: pixels shared by the hidden regions, pixels predicted hidden, gain over a copy."""
    threads = amodal.threads
    drawn, wanted = amodal.pred.masks[pred], amodal.target.masks[target]
    own = visible.pred.known[pred]
    front = Masks.concat([visible.pred.masks[pred[own]], visible.target.masks[target[~own]]])
    order = np.empty(len(own), np.int64)
    order[np.concatenate([np.flatnonzero(own), np.flatnonzero(~own)])] = np.arange(len(own))
    front = front[order]
    hidden = pair_areas(drawn - front, wanted - visible.target.masks[target], threads=threads)
    iou = pair_areas(drawn, wanted, threads=threads).iou(empty=1.0)
    return hidden.intersection, hidden.a, iou - pair_areas(front, wanted, threads=threads).iou(empty=1.0)


def _leaving_metric(inputs: ScoringInput, match_: Match) -> dict[str, Metric]:
    """Share of predicted regions with both masks whose visible one is not inside the amodal one."""
    predictions, count = inputs.predictions, len(inputs)
    counted = match_.drawn & match_.scorable[predictions.sample]
    rows = np.flatnonzero(counted & predictions.visible.present & predictions.amodal.present)
    areas = pair_areas(
        predictions.visible.masks[rows], predictions.amodal.masks[rows], threads=inputs.threads
    )
    leaves = predictions.sample[rows[areas.intersection < areas.a]]
    return {
        "visible_outside_amodal": Metric(
            np.bincount(leaves, minlength=count), np.bincount(predictions.sample[rows], minlength=count)
        )
    }


def _confusion(inputs: ScoringInput, rows: BoolArray) -> Int64Array:
    """Mask types wanted (rows) and said (columns, the last for none), int64 [3, 4]."""
    cells = inputs.ground_truth.requested_type[rows] * np.int64(UNSTATED + 1) + inputs.predicted_type[rows]
    return np.bincount(cells, minlength=UNSTATED * (UNSTATED + 1)).reshape(UNSTATED, UNSTATED + 1)


def _calibration(inputs: ScoringInput, match_: Match) -> Float64Array:
    """Predicted regions by confidence: count, summed confidence, hits, summed IoU; float64 [BINS, 4]."""
    predictions = inputs.predictions
    iou = np.zeros(len(predictions.score))
    iou[match_.pred] = match_.iou
    rows = np.flatnonzero(match_.drawn & match_.scorable[predictions.sample])
    bins = np.minimum((predictions.score[rows] * BINS).astype(np.int64), BINS - 1)
    columns = (np.ones(len(rows)), predictions.score[rows], (iou[rows] >= HIT).astype(np.float64), iou[rows])
    return np.stack([sums(bins, column, BINS) for column in columns], 1)


def _share(part: BoolArray, whole: BoolArray) -> Metric:
    return Metric(part.astype(np.int64), whole.astype(np.int64))

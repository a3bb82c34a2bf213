"""Strict, the protocol we recommend: a free answer has to find the right objects, all of them, and nothing else.

Rule. Only free answers: a prediction made with the true answer in the prompt (`Prediction.forced`) is refused. Regions
and targets of a question are matched one to one by the largest total IoU; masks that do not overlap are not matched.
The question scores the summed IoU of the pairs divided by max(regions, targets): extra and missing masks both cost.
Without targets it scores 1 if the prediction has no region, else 0. A missing or failed prediction scores 0.

What counts. Ignored pixels are removed from all masks first. An empty predicted mask counts as absent. A region counts
if any of its masks has pixels, also one of a type that was not requested; regions of a prediction with `no_target` do
not count. A target counts if its requested mask has pixels (`both`: either mask), so a question whose targets are all
empty is a question without targets. A region without a requested mask whose other mask has an IoU of 0.5 or more with
that of such a target describes it and does not count either; one shared pixel is not enough. A region whose mask
equals that of an earlier region is a copy: it counts, but is not matched, unless as many targets are equal.

A further mask is free while there are fewer regions than targets. With the targets A and B, {A} scores 0.500 and
{A, whole image} 0.545 where B covers 9 % of the image. We keep this: the divisor has to be max(regions, targets) for
the score to be at most 1, and a threshold below which an overlap does not count would let the score jump. Such a mask
lowers precision (1.0 to 0.5) and cIoU, which are beside gIoU for that reason.

Mask type. The type of a prediction is the one it states, else that of the masks it holds. If it is not the requested
one, no region of the prediction has any IoU. `both` needs both: the IoU of a pair is the mean over the types in which
either mask has pixels. Options:
- `unoccluded="either"`: where the visible and the amodal mask of every target are equal, the type cannot be seen in the
  mask, so visible and amodal are both accepted, and the mask of the predicted type is scored. `"exact"`: the stated
  type must be the requested one there as well. `mask_type_accuracy` always compares the types.
- `mask_type="lenient"`: only the mask of the requested type is looked at, whatever the predicted type.

Metrics, over all questions unless stated, and what each cannot see:
    giou                  mean of the above. Cannot see where a mask is wrong, nor which words belong to it
    ciou                  cumulative IoU of matched masks: summed intersection of the pairs over the summed areas of all
                          regions and targets, less that intersection. Pixels shared by two regions count twice. Cannot
                          see small targets
    boundary_iou          as giou, with the IoU of boundary bands 2 % of the diagonal wide (Cheng et al., CVPR 2021).
                          Cannot see the inside of masks
    precision, recall, f1 of targets; a hit is a pair with IoU 0.5 or more. Precision cannot see targets that were left
                          out, recall cannot see extra regions
    p@0.5 ... p@0.9       share of questions with targets that score at least that
    mask_type_accuracy    share of questions with targets whose predicted type is the requested one; `confusion` has the
                          counts. Cannot see the masks
    no_target_accuracy    share of questions without targets whose prediction has no region
    target_accuracy       share of questions with targets whose prediction has a region, right or wrong
    target_count_error    mean difference between the numbers of regions and targets, plus the number of copies. Cannot
                          see whether the regions are the right ones
    answer_exact, _f1     names against the names of the targets, see `answers`; only for questions that have a ground
                          truth answer. A prediction without names is wrong. Cannot see which mask a name belongs to

and for targets with hidden pixels, where amodal masks are requested:
    hidden_f1             mean over questions with such targets: F1 of the hidden pixels. Predicted as hidden: the
                          amodal mask without the true visible mask of the matched target, so that no predicted visible
                          mask can change it; of a region without a match the whole amodal mask. Returning every mask of
                          the image lowers it. Cannot see the predicted visible mask
    visible_iou           mean over the same targets, except fully hidden ones: IoU of the visible masks (unmatched: 0)
    occluded_iou, _ciou   IoU on the hidden pixels: mean over targets (unmatched: 0), and cumulative. Predicted as
                          hidden: the amodal mask without the visible mask of the same region. Without a visible mask
                          nothing is right and the whole amodal mask is wrong, unless the target is fully hidden. Cannot
                          see regions without a match, nor hidden pixels predicted for targets that have none; a larger
                          visible mask may raise it. The cumulative one cannot see that a region with many wrong hidden
                          pixels was left out
    copy_gain             mean over targets: amodal IoU (unmatched: 0) minus the IoU that the true visible mask has with
                          the amodal one. Cannot see the predicted visible mask
    visible_outside_amodal  share of the regions (copies apart), where amodal masks are requested, whose visible mask
                          leaves the amodal one; a region without a visible mask counts as such, unless its target is
                          fully hidden. Cannot see regions that were left out
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.masks import boundary_areas, boundary_width, pair_areas
from maskwise.protocols.answers import answer_metrics
from maskwise.protocols.copied_regions import find_copies
from maskwise.protocols.ground_truth import AMODAL, BOTH, VISIBLE
from maskwise.protocols.hidden_metrics import (
    hidden_f1,
    hidden_metrics,
    visible_outside_amodal,
)
from maskwise.protocols.mask_selection import SelectedMasks, without_ignored
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import MetricTerms, Scores, int_sums, sums
from maskwise.protocols.overlaps import HIT, Overlaps, break_ties
from maskwise.protocols.prediction_columns import PREDICTED, UNSTATED
from maskwise.protocols.scoring_input import NO_TARGET_MASK, ScoringInput

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
BINS = 10
KINDS: tuple[tuple[Literal["visible", "amodal"], int], ...] = (
    ("visible", VISIBLE),
    ("amodal", AMODAL),
)

StrictMaskType = Literal["exact", "lenient"]
Unoccluded = Literal["either", "exact"]


def score(
    inputs: ScoringInput,
    *,
    mask_type: StrictMaskType = "exact",
    unoccluded: Unoccluded = "either",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    refuse_forced(inputs)
    matches = match_questions(inputs, mask_type, unoccluded)
    targeted = matches.scorable & (matches.targets > 0)
    requests_amodal = matches.scorable & (inputs.ground_truth.requested_type != VISIBLE)
    metrics = {
        **_overlap_metrics(inputs, matches),
        **_target_metrics(matches),
        **_question_metrics(inputs, matches),
        **answer_metrics(inputs, targeted, matches.counted),
        **hidden_f1(
            inputs,
            requests_amodal,
            matches.counted,
            pairs=(matches.pred, matches.target),
        ),
        **hidden_metrics(inputs, requests_amodal, matches.pred, matches.target),
        "visible_outside_amodal": visible_outside_amodal(
            inputs,
            matches.counted
            & ~matches.copy
            & requests_amodal[inputs.predictions.sample],
            pairs=(matches.pred, matches.target),
        ),
    }
    return Scores(
        protocol="strict",
        options={"mask_type": mask_type, "unoccluded": unoccluded},
        statuses=inputs.statuses({NO_TARGET_MASK: ~matches.scorable}),
        metrics=metrics,
        confusion=_confusion(inputs, targeted),
        calibration=_calibration(inputs, matches),
    )


def refuse_forced(inputs: ScoringInput) -> None:
    """Raise if any prediction was made with the true answer in the prompt."""
    forced = np.flatnonzero(inputs.predictions.forced)
    if len(forced):
        raise ProtocolError(
            f"strict takes free answers only, but {len(forced)} predictions are forced (first: sample "
            f"{inputs.ground_truth.ids[forced[0]]!r}); let the model answer by itself, or use an official protocol"
        )


@dataclass(frozen=True)
class QuestionMatches:
    """The matched pairs of all questions, and what counts.

    pair: int64 [k], positions in `ScoringInput.pairs`; sample, pred, target: int64 [k]; iou: float64 [k]. counted: bool
    [regions]; counted_target: bool [targets]; copy: bool [regions], see `find_copies`; scorable: bool [samples].
    overlaps: of the masks that were compared.
    """

    overlaps: Overlaps
    pair: Int64Array
    iou: Float64Array
    counted: BoolArray
    counted_target: BoolArray
    copy: BoolArray
    scorable: BoolArray

    @property
    def sample(self) -> Int64Array:
        """Sample of each pair."""
        return self.overlaps.pairs.sample[self.pair]

    @property
    def pred(self) -> Int64Array:
        """Predicted region of each pair."""
        return self.overlaps.pairs.pred[self.pair]

    @property
    def target(self) -> Int64Array:
        """Target of each pair."""
        return self.overlaps.pairs.target[self.pair]

    @property
    def regions(self) -> Int64Array:
        """Counted regions of each sample."""
        return np.bincount(
            self.overlaps.pred.sample[self.counted], minlength=len(self.scorable)
        )

    @property
    def targets(self) -> Int64Array:
        """Counted targets of each sample."""
        return np.bincount(
            self.overlaps.target.sample[self.counted_target],
            minlength=len(self.scorable),
        )

    @property
    def size(self) -> Int64Array:
        """max(regions, targets) of each sample, at least 1."""
        return np.maximum(np.maximum(self.regions, self.targets), 1)


def match_questions(
    inputs: ScoringInput, mask_type: StrictMaskType, unoccluded: Unoccluded
) -> QuestionMatches:
    """Match regions and targets of every question by the largest total IoU."""
    pairs = inputs.pairs
    both = inputs.ground_truth.requested_type == BOTH
    scored_type, right_type = accepted_types(inputs, unoccluded)
    overlaps = inputs.overlaps_with_pixels(scored_type == AMODAL)
    scorable = overlaps.scorable | both
    counted_target = _counted_targets(inputs, overlaps)
    counted = _counted_regions(inputs) & ~_describes_hidden_target(inputs, overlaps)
    allowed = scorable if mask_type == "lenient" else scorable & right_type
    usable = counted & allowed[inputs.predictions.sample]
    copy = find_copies(inputs, overlaps, counted)
    exact = overlaps.pred.selection.exact | both[inputs.predictions.sample]
    possible = (usable & exact & ~copy)[pairs.pred] & counted_target[pairs.target]
    iou = np.where(possible, overlaps.iou, 0.0)
    if both.any():
        rows = np.flatnonzero(possible & both[pairs.sample])
        iou[rows] = _mean_of_types(inputs, rows)
    # A question for both types may have an equal IoU from masks of the other type, which
    # the matching of `overlaps` does not look at.
    if not both.any() and np.array_equal(iou, overlaps.iou):
        chosen = overlaps.matched
    else:
        chosen = match(
            pairs,
            np.where(
                iou > 0, break_ties(iou, np.maximum(overlaps.intersection, 1)), 0.0
            ),
        )
    return QuestionMatches(
        overlaps, chosen, iou[chosen], counted, counted_target, copy, scorable
    )


def accepted_types(
    inputs: ScoringInput, unoccluded: Unoccluded
) -> tuple[Int8Array, BoolArray]:
    """The type of the mask that is scored, and whether the predicted type is accepted: [samples] each.

    `mask_type="lenient"` accepts every type; that is not asked here.
    """
    requested = inputs.ground_truth.requested_type
    predicted = inputs.predicted_type
    right: BoolArray = predicted == requested
    if unoccluded == "exact":
        return requested, right
    differs = ~right & (requested != BOTH) & (predicted != UNSTATED)
    equal = np.zeros(len(inputs), bool)
    equal[_unoccluded_samples(inputs, np.flatnonzero(differs))] = True
    return np.where(equal & (predicted != BOTH), predicted, requested), right | equal


def _unoccluded_samples(inputs: ScoringInput, samples: Int64Array) -> Int64Array:
    """Those of the samples whose targets all have equal visible and amodal masks, ignored pixels apart."""
    ground_truth = inputs.ground_truth
    asked = np.zeros(len(inputs), bool)
    asked[samples[ground_truth.counts[samples] > 0]] = True
    known = ground_truth.visible.present & ground_truth.amodal.present
    asked[ground_truth.sample[~known]] = False
    rows = np.flatnonzero(asked[ground_truth.sample])
    masks = (
        without_ignored(
            column.masks[rows], ground_truth.ignore, ground_truth.sample[rows]
        )
        for column in (ground_truth.visible, ground_truth.amodal)
    )
    areas = pair_areas(*masks, threads=inputs.threads)
    asked[ground_truth.sample[rows[areas.intersection < areas.union]]] = False
    return np.flatnonzero(asked)


def _counted_regions(inputs: ScoringInput) -> BoolArray:
    """Whether each predicted region counts: any of its masks has pixels that are not ignored. bool [regions]."""
    predictions = inputs.predictions
    visible, amodal = inputs.nonempty
    pixels = visible | amodal
    if (inputs.ground_truth.ignore.present[predictions.sample] & pixels).any():
        pixels = (inputs.overlaps("visible").pred.area > 0) | (
            inputs.overlaps("amodal").pred.area > 0
        )
    return pixels & ~predictions.no_target[predictions.sample]


def _counted_targets(inputs: ScoringInput, overlaps: Overlaps) -> BoolArray:
    """Whether each target counts: its requested mask has pixels that are not ignored. bool [targets]."""
    pixels = overlaps.target.area > 0
    rows = (inputs.ground_truth.requested_type == BOTH)[inputs.ground_truth.sample]
    if rows.any():
        pixels |= rows & (inputs.overlaps("amodal").target.area > 0)
    return pixels


def _describes_hidden_target(inputs: ScoringInput, overlaps: Overlaps) -> BoolArray:
    """Whether each region has no requested mask and, in the other type, an IoU of HIT or more with a target whose
    requested mask is empty. bool [regions].
    """
    overlaps_hidden = np.zeros(len(inputs.predictions.score), bool)
    requested = inputs.ground_truth.requested_type[inputs.ground_truth.sample]
    empty = overlaps.target.known & (overlaps.target.area == 0) & (requested != BOTH)
    for kind, other in KINDS:
        rows = np.flatnonzero((empty & (requested != other))[inputs.pairs.target])
        if len(rows):
            other_overlaps = inputs.overlaps(kind)
            is_described = (other_overlaps.iou[rows] >= HIT) & (
                other_overlaps.intersection[rows] > 0
            )
            overlaps_hidden[inputs.pairs.pred[rows[is_described]]] = True
    return overlaps_hidden & ~overlaps.pred.selection.exact


def _mean_of_types(inputs: ScoringInput, pairs: Int64Array) -> Float64Array:
    """Mean of visible and amodal IoU of pairs, over the types in which either mask has pixels."""
    total = np.zeros(len(pairs))
    types = np.zeros(len(pairs))
    pred = inputs.pairs.pred[pairs]
    target = inputs.pairs.target[pairs]
    for kind, _ in KINDS:
        overlaps = inputs.overlaps(kind)
        pixels = (overlaps.pred.area[pred] > 0) | (overlaps.target.area[target] > 0)
        counts = overlaps.target.known[target] & pixels
        total += np.where(counts, overlaps.iou[pairs], 0.0)
        types += counts
    return total / np.maximum(types, 1.0)


def _by_type(
    inputs: ScoringInput, matches: QuestionMatches, samples: Int64Array
) -> list[tuple[Overlaps, BoolArray]]:
    """The overlaps to look at, each with which of the given samples are looked at in it."""
    both: BoolArray = inputs.ground_truth.requested_type[samples] == BOTH
    if not both.any():
        return [(matches.overlaps, ~both)]
    types = (matches.overlaps, inputs.overlaps("visible"), inputs.overlaps("amodal"))
    return list(zip(types, (~both, both, both)))


def question_giou(inputs: ScoringInput, matches: QuestionMatches) -> Float64Array:
    """The score of each question, float64 [samples]; of no meaning where it is not scorable."""
    total = sums(matches.sample, matches.iou, len(inputs))
    return total / matches.size + _rightly_silent(inputs, matches)


def _rightly_silent(inputs: ScoringInput, matches: QuestionMatches) -> BoolArray:
    """Whether a question has no target, and a prediction without regions."""
    predicted = inputs.predictions.state == PREDICTED
    silent: BoolArray = (matches.regions == 0) & (matches.targets == 0) & predicted
    return silent


def _overlap_metrics(
    inputs: ScoringInput, matches: QuestionMatches
) -> dict[str, MetricTerms]:
    """gIoU, cIoU, boundary IoU and P@t."""
    count = len(inputs)
    size = matches.size
    scorable = matches.scorable
    silent = _rightly_silent(inputs, matches)
    value = question_giou(inputs, matches)
    band = sums(matches.sample, _boundary_iou(inputs, matches), count) / size + silent
    shared, areas = _pixels(inputs, matches)
    targeted = scorable & (matches.targets > 0)
    weight = scorable.astype(np.int64)
    return {
        "giou": MetricTerms(np.where(scorable, value, 0.0), weight),
        "ciou": MetricTerms(shared, areas - shared),
        "boundary_iou": MetricTerms(np.where(scorable, band, 0.0), weight),
        **{f"p@{t}": _share(targeted & (value >= t), targeted) for t in THRESHOLDS},
    }


def _pixels(
    inputs: ScoringInput, matches: QuestionMatches
) -> tuple[Int64Array, Int64Array]:
    """Pixels shared by pairs, and summed areas of counted regions and targets, int64 [samples] each."""
    count = len(inputs)
    shared = np.zeros(count, np.int64)
    total = np.zeros(count, np.int64)
    for overlaps, looked_at in _by_type(inputs, matches, np.arange(count)):
        rows = looked_at & matches.scorable
        inside = int_sums(matches.sample, overlaps.intersection[matches.pair], count)
        areas = int_sums(
            overlaps.pred.sample,
            np.where(matches.counted, overlaps.pred.area, 0),
            count,
        )
        areas += int_sums(overlaps.target.sample, overlaps.target.area, count)
        shared += np.where(rows, inside, 0)
        total += np.where(rows, areas, 0)
    return shared, total


def _boundary_iou(inputs: ScoringInput, matches: QuestionMatches) -> Float64Array:
    """IoU of the boundary bands of each pair, mean over the requested types, float64 [pairs]."""
    total = np.zeros(len(matches.iou))
    types = np.zeros(len(matches.iou))
    pred = matches.pred
    target = matches.target
    for overlaps, looked_at in _by_type(inputs, matches, matches.sample):
        pixels = (overlaps.pred.area[pred] > 0) | (overlaps.target.area[target] > 0)
        rows = np.flatnonzero(looked_at & overlaps.target.known[target] & pixels)
        types[rows] += 1
        rows = rows[overlaps.intersection[matches.pair[rows]] > 0]
        total[rows] += _band_iou(overlaps, matches.pair[rows])
    return total / np.maximum(types, 1.0)


def _band_iou(overlaps: Overlaps, pairs: Int64Array) -> Float64Array:
    """Boundary IoU of pairs. Where neither mask is thick enough to have an inside, the bands are the masks."""
    pred = overlaps.pairs.pred[pairs]
    target = overlaps.pairs.target[pairs]
    value: Float64Array = overlaps.iou[pairs]
    size = overlaps.ground_truth.image_size[overlaps.pairs.sample[pairs]]
    width = 2 * boundary_width(size).astype(np.int64) + 1
    thick = _is_thick(overlaps.pred, pred, width) | _is_thick(
        overlaps.target, target, width
    )
    rows = np.flatnonzero(thick)
    bands = boundary_areas(
        overlaps.pred.masks[pred[rows]],
        overlaps.target.masks[target[rows]],
        threads=overlaps.threads,
    )
    value[rows] = bands.iou(empty=1.0)
    return value


def _is_thick(masks: SelectedMasks, rows: Int64Array, width: Int64Array) -> BoolArray:
    """Whether a square of this width might fit into each mask: False means that it cannot."""
    box = masks.geometry.box[rows]
    extent = np.minimum(box[:, 2] - box[:, 0], box[:, 3] - box[:, 1])
    thick: BoolArray = (masks.area[rows] >= width * width) & (extent >= width)
    return thick


def _target_metrics(matches: QuestionMatches) -> dict[str, MetricTerms]:
    """Precision, recall and F1 of targets."""
    hits = np.bincount(
        matches.sample[matches.iou >= HIT], minlength=len(matches.scorable)
    )
    regions, targets = (
        np.where(matches.scorable, counts, 0)
        for counts in (matches.regions, matches.targets)
    )
    return {
        "precision": MetricTerms(hits, regions),
        "recall": MetricTerms(hits, targets),
        "f1": MetricTerms(2 * hits, regions + targets),
    }


def _question_metrics(
    inputs: ScoringInput, matches: QuestionMatches
) -> dict[str, MetricTerms]:
    """What the prediction decided: mask type, no target, how many."""
    predicted = inputs.predictions.state == PREDICTED
    scorable = matches.scorable
    regions = matches.regions
    targets = matches.targets
    empty = scorable & (targets == 0)
    targeted = scorable & (targets > 0)
    right = (
        targeted
        & predicted
        & (inputs.predicted_type == inputs.ground_truth.requested_type)
    )
    copies = np.bincount(inputs.predictions.sample[matches.copy], minlength=len(inputs))
    error = np.abs(regions - copies - targets) + copies
    return {
        "mask_type_accuracy": _share(right, targeted),
        "no_target_accuracy": _share(empty & predicted & (regions == 0), empty),
        "target_accuracy": _share(targeted & (regions > 0), targeted),
        "target_count_error": MetricTerms(
            np.where(scorable, error, 0), scorable.astype(np.int64), unit="count"
        ),
    }


def _confusion(inputs: ScoringInput, rows: BoolArray) -> Int64Array:
    """Requested mask types (rows) and predicted ones (columns, the last for none), int64 [3, 4]."""
    requested = inputs.ground_truth.requested_type[rows] * np.int64(UNSTATED + 1)
    cells = np.bincount(
        requested + inputs.predicted_type[rows], minlength=UNSTATED * (UNSTATED + 1)
    )
    return cells.reshape(UNSTATED, UNSTATED + 1)


def _calibration(inputs: ScoringInput, matches: QuestionMatches) -> Float64Array:
    """Confidence and IoU of each counted region, float64 [regions, 2]."""
    score = inputs.predictions.score
    iou = np.zeros(len(score))
    iou[matches.pred] = matches.iou
    rows = np.flatnonzero(matches.counted & matches.scorable[inputs.predictions.sample])
    return np.stack([score[rows], iou[rows]], 1)


def sum_calibration(regions: Float64Array) -> Float64Array:
    """Regions by confidence: count, summed confidence, hits, summed IoU; float64 [BINS, 4]. regions: [regions, 2]."""
    score, iou = regions.T
    bins = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    columns = (np.ones(len(score)), score, (iou >= HIT).astype(np.float64), iou)
    return np.stack([sums(bins, column, BINS) for column in columns], 1)


def _share(part: BoolArray, whole: BoolArray) -> MetricTerms:
    return MetricTerms(part.astype(np.int64), whole.astype(np.int64))

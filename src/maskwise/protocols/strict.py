"""Strict, the rule we recommend: a free reply has to find the right things, all of them, nothing else, as wanted.

Rule. Only free replies: one made with the true answer in the prompt (`Prediction.forced`) is refused. Predicted regions
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

Figures, over all questions that can be judged unless stated:
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

from maskwise.errors import ProtocolError
from maskwise.masks import Masks, boundary_areas, boundary_width, pair_areas
from maskwise.protocols.answers import Judge, judge_metric, name_metrics
from maskwise.protocols.evaluation import Evaluation, Plane
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Flags, Floats, Int64s, Metric, Scores, sums, whole_sums
from maskwise.protocols.sides import Side
from maskwise.protocols.tables import ANSWERED, BOTH, UNDECIDED, VISIBLE

RULE = "free replies, one-to-one matching by IoU, extra and missing masks cost, the mask type must be the one wanted"
HIT = 0.5
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
BINS = 10


def score(
    evaluation: Evaluation, *, mask_type: Literal["exact", "lenient"] = "exact", judge: Judge | None = None
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    refuse_forced(evaluation)
    match_ = match_questions(evaluation, mask_type)
    judged = match_.judged
    metrics = {
        **_overlap_metrics(evaluation, match_),
        **_target_metrics(match_),
        **_reply_metrics(evaluation, match_),
        **name_metrics(evaluation, judged),
        **_amodal_metrics(evaluation, match_),
    }
    if judge is not None:
        metrics["judge"] = judge_metric(evaluation, judged, judge)
    return Scores(
        protocol="strict",
        options={"mask_type": mask_type},
        verdicts=evaluation.verdicts({"a target has no mask of the type wanted": ~judged}),
        metrics=metrics,
        confusion=_confusion(evaluation, judged & (match_.targets > 0)),
        calibration=_calibration(evaluation, match_),
    )


def refuse_forced(evaluation: Evaluation) -> None:
    """Raise if any reply was made with the true answer in the prompt."""
    forced = np.flatnonzero(evaluation.replies.forced)
    if len(forced):
        raise ProtocolError(
            f"strict takes free answers only, but {len(forced)} predictions are forced (first: sample "
            f"{evaluation.truth.ids[forced[0]]!r}); let the model answer by itself, or use an official protocol"
        )


@dataclass(frozen=True)
class Match:
    """The matched pairs that have any IoU, and how many regions and targets there are.

    sample, pred, target: int64 [k] positions; iou: float64 [k]; regions, targets: int64 [samples]; drawn: bool [preds],
    whether the region counts at all; judged: bool [samples].
    """

    sample: Int64s
    pred: Int64s
    target: Int64s
    iou: Floats
    regions: Int64s
    targets: Int64s
    drawn: Flags
    judged: Flags

    @property
    def size(self) -> Int64s:
        """max(regions, targets) of each sample, at least 1."""
        return np.maximum(np.maximum(self.regions, self.targets), 1)


def match_questions(evaluation: Evaluation, mask_type: Literal["exact", "lenient"]) -> Match:
    """Match regions and targets of every question by the best total IoU."""
    truth, replies, index = evaluation.truth, evaluation.replies, evaluation.index
    plane = evaluation.plane("wanted")
    both = truth.wanted == BOTH
    judged = plane.judged | both
    drawn = _drawn(evaluation)
    allowed = judged if mask_type == "lenient" else judged & (evaluation.said == truth.wanted)
    usable = drawn & allowed[replies.sample]
    whole = plane.pred.choice.exact | ~usable
    gain = np.where((usable & (plane.pred.choice.exact | both[replies.sample]))[index.pred], plane.iou, 0.0)
    if both.any():
        pairs = np.flatnonzero(usable[index.pred] & both[index.sample])
        gain[pairs] = _mean_of_types(evaluation, pairs)
    # Where whole questions are in or out, the matching by plain IoU is the one sought.
    chosen = plane.matched if bool(whole.all()) and not both.any() else match(index, gain)
    chosen = chosen[gain[chosen] > 0]
    return Match(
        index.sample[chosen],
        index.pred[chosen],
        index.target[chosen],
        gain[chosen],
        np.bincount(replies.sample[drawn], minlength=len(truth)),
        index.targets,
        drawn,
        judged,
    )


def _drawn(evaluation: Evaluation) -> Flags:
    """Whether each predicted region counts, bool [regions]."""
    truth, replies = evaluation.truth, evaluation.replies
    pixels, hidden = np.zeros(len(replies.score), bool), np.zeros(len(truth), bool)
    for plane, looked_at in _planes(evaluation, np.arange(len(truth))):
        pixels |= looked_at[replies.sample] & (plane.pred.area > 0)
        empty = plane.target.known & (plane.target.area == 0)
        hidden[truth.sample[empty]] |= looked_at[truth.sample[empty]]
    return ~replies.no_target[replies.sample] & (pixels | hidden[replies.sample])


def _mean_of_types(evaluation: Evaluation, pairs: Int64s) -> Floats:
    """Mean of visible and amodal IoU over the masks the target has; a mask the region lacks counts 0."""
    total = np.zeros(len(pairs))
    known = np.zeros(len(pairs))
    for kind in ("visible", "amodal"):
        plane = evaluation.plane(kind)
        total += plane.iou[pairs]
        known += plane.target.known[evaluation.index.target[pairs]]
    return total / np.maximum(known, 1.0)


def _overlap_metrics(evaluation: Evaluation, match_: Match) -> dict[str, Metric]:
    """gIoU, cIoU, boundary IoU and P@t."""
    count = len(evaluation)
    judged = match_.judged.astype(np.int64)
    silent = (match_.regions == 0) & (match_.targets == 0) & (evaluation.replies.state == ANSWERED)
    value = sums(match_.sample, match_.iou, count) / match_.size + silent
    band = sums(match_.sample, _boundary_iou(evaluation, match_), count) / match_.size + silent
    shared, drawn = _pixels(evaluation, match_)
    targeted = match_.judged & (match_.targets > 0)
    return {
        "giou": Metric(np.where(match_.judged, value, 0.0), judged),
        "ciou": Metric(shared, drawn - shared),
        "boundary_iou": Metric(np.where(match_.judged, band, 0.0), judged),
        **{
            f"p@{t}": Metric((targeted & (value >= t)).astype(np.int64), targeted.astype(np.int64))
            for t in THRESHOLDS
        },
    }


def _planes(evaluation: Evaluation, samples: Int64s) -> list[tuple[Plane, Flags]]:
    """The planes to look at, each with which of the given samples are looked at in it."""
    both: Flags = evaluation.truth.wanted[samples] == BOTH
    if not both.any():
        return [(evaluation.plane("wanted"), ~both)]
    planes = (evaluation.plane("wanted"), evaluation.plane("visible"), evaluation.plane("amodal"))
    return list(zip(planes, (~both, both, both)))


def _pixels(evaluation: Evaluation, match_: Match) -> tuple[Int64s, Int64s]:
    """Pixels shared by pairs, and all pixels of regions and targets, int64 [samples] each."""
    truth, replies, index, count = evaluation.truth, evaluation.replies, evaluation.index, len(evaluation)
    shared, total = np.zeros(count, np.int64), np.zeros(count, np.int64)
    pairs = index.find(match_.sample, match_.pred, match_.target)
    everyone = np.arange(count)
    for plane, looked_at in _planes(evaluation, everyone):
        counts = looked_at & match_.judged
        shared += np.where(counts, whole_sums(match_.sample, plane.intersection[pairs], count), 0)
        drawn = np.where(match_.drawn, plane.pred.area, 0)
        area = whole_sums(replies.sample, drawn, count) + whole_sums(truth.sample, plane.target.area, count)
        total += np.where(counts, area, 0)
    return shared, total


def _boundary_iou(evaluation: Evaluation, match_: Match) -> Floats:
    """IoU of the boundary bands of each pair, mean over the types wanted, float64 [pairs]."""
    total, known = np.zeros(len(match_.iou)), np.zeros(len(match_.iou))
    for plane, looked_at in _planes(evaluation, match_.sample):
        rows = np.flatnonzero(looked_at & plane.target.known[match_.target])
        known[rows] += 1
        rows = rows[plane.pred.known[match_.pred[rows]]]
        total[rows] += _band_iou(plane, match_.pred[rows], match_.target[rows])
    return total / np.maximum(known, 1.0)


def _band_iou(plane: Plane, pred: Int64s, target: Int64s) -> Floats:
    """Boundary IoU of pairs. Where neither mask is thick enough to have an inside, their bands are the masks."""
    sample = plane.replies.sample[pred]
    pairs = plane.index.find(sample, pred, target)
    value: Floats = plane.iou[pairs]
    side = 2 * boundary_width(plane.truth.frame[sample]).astype(np.int64) + 1
    thick = _thick(plane.pred, pred, side) | _thick(plane.target, target, side)
    rows = np.flatnonzero(thick & (plane.intersection[pairs] > 0))
    bands = boundary_areas(
        plane.pred.masks[pred[rows]], plane.target.masks[target[rows]], threads=plane.threads
    )
    value[rows] = bands.iou(empty=1.0)
    return value


def _thick(side: Side, rows: Int64s, width: Int64s) -> Flags:
    """Whether a square of this width might fit into each mask: False means that it cannot."""
    box = side.extent.box[rows]
    extent = np.minimum(box[:, 2] - box[:, 0], box[:, 3] - box[:, 1])
    thick: Flags = (side.area[rows] >= width * width) & (extent >= width)
    return thick


def _target_metrics(match_: Match) -> dict[str, Metric]:
    """Precision, recall and F1 of targets."""
    hits = np.bincount(match_.sample[match_.iou >= HIT], minlength=len(match_.targets))
    regions, targets = (np.where(match_.judged, column, 0) for column in (match_.regions, match_.targets))
    return {
        "precision": Metric(hits, regions),
        "recall": Metric(hits, targets),
        "f1": Metric(2 * hits, regions + targets),
    }


def _reply_metrics(evaluation: Evaluation, match_: Match) -> dict[str, Metric]:
    """What the reply decided: mask type, no target, how many."""
    answered = evaluation.replies.state == ANSWERED
    empty, targeted = match_.judged & (match_.targets == 0), match_.judged & (match_.targets > 0)
    right = targeted & answered & (evaluation.said == evaluation.truth.wanted)
    error = np.where(match_.judged, np.abs(match_.regions - match_.targets), 0)
    return {
        "mask_type_accuracy": _share(right, targeted),
        "no_target_accuracy": _share(empty & answered & (match_.regions == 0), empty),
        "target_accuracy": _share(targeted & (match_.regions > 0), targeted),
        "target_count_error": Metric(error, match_.judged.astype(np.int64), unit="count"),
    }


def _amodal_metrics(evaluation: Evaluation, match_: Match) -> dict[str, Metric]:
    """Hidden regions, the gain over copying, and visible masks that leave the amodal one."""
    return {**_hidden_metrics(evaluation, match_), **_leaving_metric(evaluation, match_)}


def _hidden_metrics(evaluation: Evaluation, match_: Match) -> dict[str, Metric]:
    """Over targets of which both masks are known, where amodal ones are wanted."""
    truth, count = evaluation.truth, len(evaluation)
    wants = match_.judged & (truth.wanted != VISIBLE)
    zero, none = np.zeros(count), np.zeros(count, np.int64)
    names = ("occluded_iou", "occluded_ciou", "copy_gain")
    if not wants.any():
        return {name: Metric(zero, none) for name in names}
    visible, amodal = evaluation.plane("visible"), evaluation.plane("amodal")
    known = wants[truth.sample] & visible.target.known & amodal.target.known
    rows = np.flatnonzero(known)
    area = np.zeros(len(known), np.int64)
    area[rows] = (amodal.target.masks[rows] - visible.target.masks[rows]).area(threads=evaluation.threads)
    pairs = np.flatnonzero(known[match_.target] & amodal.pred.known[match_.pred])
    shared, drawn, gain = _look_behind(visible, amodal, match_.pred[pairs], match_.target[pairs])
    target, sample = match_.target[pairs], match_.sample[pairs]
    union = drawn + area[target] - shared
    hidden = area[target] > 0
    cumulative = whole_sums(truth.sample, area, count)
    cumulative += whole_sums(sample[hidden], (union - area[target])[hidden], count)
    return {
        "occluded_iou": Metric(
            sums(sample[hidden], (shared / np.maximum(union, 1))[hidden], count),
            np.bincount(truth.sample[area > 0], minlength=count),
        ),
        "occluded_ciou": Metric(whole_sums(sample[hidden], shared[hidden], count), cumulative),
        "copy_gain": Metric(sums(sample, gain, count), np.bincount(sample, minlength=count)),
    }


def _look_behind(
    visible: Plane, amodal: Plane, pred: Int64s, target: Int64s
) -> tuple[Int64s, Int64s, Floats]:
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


def _leaving_metric(evaluation: Evaluation, match_: Match) -> dict[str, Metric]:
    """Share of predicted regions with both masks whose visible one is not inside the amodal one."""
    replies, count = evaluation.replies, len(evaluation)
    counted = match_.drawn & match_.judged[replies.sample]
    rows = np.flatnonzero(counted & replies.visible.present & replies.amodal.present)
    areas = pair_areas(replies.visible.masks[rows], replies.amodal.masks[rows], threads=evaluation.threads)
    leaves = replies.sample[rows[areas.intersection < areas.a]]
    return {
        "visible_outside_amodal": Metric(
            np.bincount(leaves, minlength=count), np.bincount(replies.sample[rows], minlength=count)
        )
    }


def _confusion(evaluation: Evaluation, rows: Flags) -> Int64s:
    """Mask types wanted (rows) and said (columns, the last for none), int64 [3, 4]."""
    cells = evaluation.truth.wanted[rows] * np.int64(UNDECIDED + 1) + evaluation.said[rows]
    return np.bincount(cells, minlength=UNDECIDED * (UNDECIDED + 1)).reshape(UNDECIDED, UNDECIDED + 1)


def _calibration(evaluation: Evaluation, match_: Match) -> Floats:
    """Predicted regions by confidence: count, summed confidence, hits, summed IoU; float64 [BINS, 4]."""
    replies = evaluation.replies
    iou = np.zeros(len(replies.score))
    iou[match_.pred] = match_.iou
    rows = np.flatnonzero(match_.drawn & match_.judged[replies.sample])
    bins = np.minimum((replies.score[rows] * BINS).astype(np.int64), BINS - 1)
    columns = (np.ones(len(rows)), replies.score[rows], (iou[rows] >= HIT).astype(np.float64), iou[rows])
    return np.stack([sums(bins, column, BINS) for column in columns], 1)


def _share(part: Flags, whole: Flags) -> Metric:
    return Metric(part.astype(np.int64), whole.astype(np.int64))

"""What each metric and slice is called, and what it means in a few words."""

from dataclasses import dataclass

HEADLINE_METRICS = (
    "cgf1",
    "positive_micro_f1",
    "presence_mcc",
    "p50",
    "ap",
    "boundary_iou",
    "f1",
    "mask_type_accuracy",
    "no_target_accuracy",
    "n_acc",
    "t_acc",
    "no_mask",
    "hidden_f1",
    "visible_iou",
    "answer_f1",
)
"""The metrics that follow gIoU and cIoU, where they are defined; all others on request."""


@dataclass(frozen=True)
class MetricLabel:
    """A metric in words. group: the heading it is listed under; better: whether higher or lower is better."""

    label: str
    meaning: str
    group: str
    better: str = "higher"


_MASKS = "Masks"
_TARGETS = "Targets"
_DECISIONS = "Decisions"
_ANSWER = "Answer"
_HIDDEN = "Hidden parts"
METRIC_GROUPS = (_MASKS, _TARGETS, _DECISIONS, _ANSWER, _HIDDEN)

METRIC_LABELS = {
    "giou": MetricLabel("gIoU", "mean IoU, as the protocol averages", _MASKS),
    "ciou": MetricLabel(
        "cIoU",
        "summed intersection over summed union, as the protocol pairs masks",
        _MASKS,
    ),
    "boundary_iou": MetricLabel(
        "Boundary IoU", "like gIoU, on bands along the outlines", _MASKS
    ),
    "precision": MetricLabel(
        "Precision", "predicted masks that match a target (IoU 0.5 or more)", _TARGETS
    ),
    "recall": MetricLabel(
        "Recall", "targets that are matched (IoU 0.5 or more)", _TARGETS
    ),
    "f1": MetricLabel("F1", "harmonic mean of precision and recall", _TARGETS),
    "cgf1": MetricLabel(
        "cgF1", "positive micro F1 times presence MCC, mean of ten thresholds", _MASKS
    ),
    "positive_micro_f1": MetricLabel(
        "Positive micro F1",
        "instances found, summed over phrases that have any; mean of ten thresholds",
        _TARGETS,
    ),
    "positive_macro_f1": MetricLabel(
        "Positive macro F1", "F1 of each phrase that has instances, averaged", _TARGETS
    ),
    "micro_f1": MetricLabel(
        "Micro F1", "instances found, summed over all phrases", _TARGETS
    ),
    "micro_precision": MetricLabel(
        "Micro precision",
        "masks that found an instance, mean of ten thresholds",
        _TARGETS,
    ),
    "micro_recall": MetricLabel(
        "Micro recall", "instances that were found, mean of ten thresholds", _TARGETS
    ),
    "presence_mcc": MetricLabel(
        "Presence MCC",
        "Matthews' correlation of 'something was predicted' with 'there is an instance'",
        _DECISIONS,
    ),
    "presence_f1": MetricLabel(
        "Presence F1", "F1 of 'there is an instance', per question", _DECISIONS
    ),
    "count_accuracy": MetricLabel(
        "Count accuracy", "questions with the right number of masks", _DECISIONS
    ),
    "p50": MetricLabel("P@.5", "records with an IoU of .5 or more", _MASKS),
    "ap": MetricLabel(
        "AP", "COCO's average precision of joined masks, IoU .5 to .95", _MASKS
    ),
    "ap50": MetricLabel(
        "AP50", "COCO's average precision of joined masks at IoU .5", _MASKS
    ),
    "target_accuracy": MetricLabel(
        "Target accuracy", "questions with targets that got a mask", _DECISIONS
    ),
    "no_target_accuracy": MetricLabel(
        "No-target accuracy", "questions without targets that got no mask", _DECISIONS
    ),
    "t_acc": MetricLabel(
        "T-acc", "target accuracy as the official code computes it", _DECISIONS
    ),
    "n_acc": MetricLabel(
        "N-acc", "no-target accuracy as the official code computes it", _DECISIONS
    ),
    "no_mask": MetricLabel(
        "No mask",
        "predictions without a mask, each counted as one empty mask",
        _DECISIONS,
        "lower",
    ),
    "mask_type_accuracy": MetricLabel(
        "Mask type", "predictions of the requested mask type", _DECISIONS
    ),
    "target_count_error": MetricLabel(
        "Count error", "mean number of masks too many or too few", _DECISIONS, "lower"
    ),
    "answer_exact": MetricLabel(
        "Answer, exact", "answers that name exactly the targets", _ANSWER
    ),
    "answer_f1": MetricLabel("Answer, F1", "target names in the answer", _ANSWER),
    "hidden_f1": MetricLabel(
        "Hidden F1",
        "F1 of the hidden pixels; every amodal mask counts",
        _HIDDEN,
    ),
    "visible_iou": MetricLabel(
        "Visible IoU",
        "IoU of the visible masks of targets with hidden parts",
        _HIDDEN,
    ),
    "occluded_iou": MetricLabel(
        "Hidden IoU",
        "IoU of the hidden parts of matched targets, mean over targets",
        _HIDDEN,
    ),
    "occluded_ciou": MetricLabel(
        "Hidden cIoU", "IoU of the hidden parts, summed over pixels", _HIDDEN
    ),
    "copy_gain": MetricLabel(
        "Gain over copying",
        "amodal IoU minus the IoU of the true visible mask",
        _HIDDEN,
    ),
    "visible_outside_amodal": MetricLabel(
        "Visible outside amodal",
        "regions whose visible mask is missing or leaves the amodal one",
        _HIDDEN,
        "lower",
    ),
}


def metric_label(metric: str) -> MetricLabel:
    """A metric in words. An unknown one keeps its name."""
    if metric in METRIC_LABELS:
        return METRIC_LABELS[metric]
    if metric.startswith("p@"):
        return MetricLabel(
            f"P@{metric[2:]}",
            f"questions with targets whose IoU is {metric[2:]} or more",
            _MASKS,
        )
    for base in ("giou", "ciou", "mask_type_accuracy"):
        for kind in ("visible", "amodal"):
            if metric == f"{base}_{kind}":
                whole = METRIC_LABELS[base]
                return MetricLabel(
                    f"{whole.label}, {kind}", f"{kind} masks only", whole.group
                )
    return MetricLabel(metric.replace("_", " "), "", _MASKS)


SLICES = {
    "mask_type": "Requested mask type",
    "level": "Objects and parts",
    "targets": "Number of targets",
    "occlusion": "Hidden share of the targets",
    "size": "Size of the targets",
    "category": "Category",
    "question_type": "Question type",
    "source": "Source",
    "split": "Split",
}


def slice_label(name: str) -> str:
    """What a slicing is called."""
    return SLICES.get(name, name.replace("_", " ").capitalize())

"""What each figure is called, what it means in a few words, and how it is printed."""

from dataclasses import dataclass

from maskwise.runs.schema import MetricValue

MAX_TEXT = 600
"""Characters shown of any text that comes from a dataset or a model."""
MISSING = "–"
"""What stands where a figure is undefined."""


@dataclass(frozen=True)
class MetricLabel:
    """A figure in words. `better`: whether higher or lower is better."""

    label: str
    meaning: str
    theme: str
    better: str = "higher"


_OVERLAP, _TARGETS, _REPLY, _WORDS, _HIDDEN = "Masks", "Targets", "Reply", "Answer", "Hidden parts"
METRIC_GROUPS = (_OVERLAP, _TARGETS, _REPLY, _WORDS, _HIDDEN)

METRIC_LABELS = {
    "giou": MetricLabel("gIoU", "mean IoU, as the rule counts", _OVERLAP),
    "ciou": MetricLabel(
        "cIoU", "summed intersection over summed union; under strict, of matched masks", _OVERLAP
    ),
    "boundary_iou": MetricLabel("Boundary IoU", "as gIoU, along the outlines", _OVERLAP),
    "precision": MetricLabel("Precision", "masks that hit a target (IoU 0.5 or more)", _TARGETS),
    "recall": MetricLabel("Recall", "targets that were hit", _TARGETS),
    "f1": MetricLabel("F1", "of precision and recall", _TARGETS),
    "target_accuracy": MetricLabel(
        "Target accuracy", "share of questions with targets that got a mask", _REPLY
    ),
    "no_target_accuracy": MetricLabel(
        "No-target accuracy", "share of questions without targets that got none", _REPLY
    ),
    "t_acc": MetricLabel(
        "T-acc", "target accuracy as published; gres gives 0 where a group has no no-target question", _REPLY
    ),
    "n_acc": MetricLabel(
        "N-acc", "no-target accuracy as published; gres gives 0 where there is no such question", _REPLY
    ),
    "no_mask": MetricLabel(
        "No mask", "predictions without a mask, each counted as one empty mask", _REPLY, "lower"
    ),
    "mask_type_accuracy": MetricLabel("Mask type", "replies of the type wanted", _REPLY),
    "target_count_error": MetricLabel("Count error", "masks too many or too few, mean", _REPLY, "lower"),
    "answer_exact": MetricLabel("Answer, exact", "names exactly the things wanted", _WORDS),
    "answer_f1": MetricLabel("Answer, F1", "names the things wanted", _WORDS),
    "judge": MetricLabel("Judge", "mean of the judge passed in", _WORDS),
    "occluded_iou": MetricLabel("Hidden IoU", "on the hidden part alone, mean over targets", _HIDDEN),
    "occluded_ciou": MetricLabel("Hidden cIoU", "on the hidden part alone, all pixels", _HIDDEN),
    "copy_gain": MetricLabel(
        "Gain over copying", "amodal IoU minus the IoU of the true visible mask", _HIDDEN
    ),
    "visible_outside_amodal": MetricLabel(
        "Visible outside amodal", "masks whose visible part is absent or leaves the whole", _HIDDEN, "lower"
    ),
}


def metric_label(metric: str) -> MetricLabel:
    """A figure in words; one nobody described keeps its name."""
    if metric in METRIC_LABELS:
        return METRIC_LABELS[metric]
    if metric.startswith("p@"):
        return MetricLabel(
            f"P@{metric[2:].removeprefix('0')}",
            f"questions with targets that score {metric[2:]} or more",
            _OVERLAP,
        )
    for base in ("giou", "ciou"):
        for kind in ("visible", "amodal"):
            if metric == f"{base}_{kind}":
                return MetricLabel(f"{METRIC_LABELS[base].label}, {kind}", f"{kind} masks alone", _OVERLAP)
    return MetricLabel(metric.replace("_", " "), "", _OVERLAP)


SLICES = {
    "mask_type": "Mask type wanted",
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


def format_metric(figure: MetricValue) -> str:
    """Percent with one digit; a count with two."""
    return format_value(figure.value, figure.unit)


def format_interval(figure: MetricValue) -> str:
    """Its interval, or nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{format_value(figure.low, figure.unit)} to {format_value(figure.high, figure.unit)}"


def format_value(value: float | None, unit: str = "fraction") -> str:
    """Percent with one digit, without its sign; a count with two."""
    if value is None:
        return MISSING
    text = f"{value:.2f}" if unit == "count" else f"{100 * value:.1f}"
    return _minus(text)


def format_difference(value: float | None, unit: str = "fraction") -> str:
    """As `format_value`, with its sign."""
    if value is None:
        return MISSING
    text = f"{value:+.2f}" if unit == "count" else f"{100 * value:+.1f}"
    return "0" + text[2:] if not float(text) else _minus(text)


def format_tick(value: float) -> str:
    """A value on an axis, in percent."""
    return _minus(f"{100 * value:g}")


def format_p(value: float | None) -> str:
    """A p-value; small ones by their bound."""
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def _minus(text: str) -> str:
    """A true minus; no minus before zero."""
    return text if not text.startswith("-") else text[1:] if not float(text) else "−" + text[1:]


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Text of no more than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"

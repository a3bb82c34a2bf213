"""The probe `poor-model-accuracy`: metrics against thresholds that the user states."""

from maskwise.probes.context import PROTOCOL, ProbeContext
from maskwise.probes.probe import Probe
from maskwise.runs.probe_results import Measure, ProbeFinding, Severity, Threshold


def probe_accuracy(context: ProbeContext, *, giou: float = 0.5) -> ProbeFinding:
    """giou: the least gIoU that the user accepts."""
    value = context.base[PROTOCOL]["giou"]
    if value is None:
        return ProbeFinding(
            finding="No question was scored.", severity="unmeasured", done="Nothing."
        )
    low, high = value.interval or (float(value), float(value))
    severity: Severity = "high" if high < giou else "medium" if low < giou else "none"
    return ProbeFinding(
        finding=f"gIoU is {100 * value:.1f}, where {100 * giou:g} is asked for.",
        severity=severity,
        done=f"{len(context.dataset)} questions were asked and scored.",
        measures=[
            Measure(name="giou", label="gIoU", value=float(value), low=low, high=high)
        ],
    )


POOR_MODEL_ACCURACY = Probe(
    name="poor-model-accuracy",
    title="Poor model accuracy",
    risks=("atlas-poor-model-accuracy",),
    measured="Metrics against the thresholds that the user states.",
    blind_spots="Other images and questions than those of the dataset.",
    thresholds=(Threshold("high", "the whole interval lies below the threshold"),),
    run=probe_accuracy,
)

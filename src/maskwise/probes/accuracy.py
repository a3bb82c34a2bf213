"""The probe `poor-model-accuracy`: metrics against stated thresholds, and whether confidence helps.

Calibration is measured of three kinds of confidence: the scores of masks (a mask is right if it
matches a target with an IoU of 0.5), the probability of the mask type, and the presence of a target
(the highest score of a question's masks).
"""

from collections.abc import Sequence

import numpy as np

from maskwise.arrays import Float64Array, Int8Array
from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.harness.predictor import mask_type_probability
from maskwise.probes.calibration import CalibrationTest, check_calibration
from maskwise.probes.completion import drawn_types
from maskwise.probes.context import BASE, PROTOCOL, ProbeContext
from maskwise.probes.probe import Probe
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.protocols import GroundTruth, PredictionColumns, ScoringInput
from maskwise.protocols.overlaps import HIT
from maskwise.protocols.prediction_columns import UNSTATED
from maskwise.protocols.strict import match_questions
from maskwise.report.formatting import format_value
from maskwise.report.metric_labels import metric_label
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.runs import Run
from maskwise.runs.probe_results import (
    Cell,
    Measure,
    PlotPoint,
    PlotSeries,
    ProbeExample,
    ProbeFinding,
    ProbePlot,
    ProbeTable,
    Severity,
    Threshold,
)
from maskwise.runs.schema import MetricValue
from maskwise.schema import MASK_TYPES, Prediction

EDGES: tuple[tuple[float, Severity], ...] = (
    (0.05, "low"),
    (0.1, "medium"),
    (0.2, "high"),
)
"""Mean gap between confidence and outcome: beyond 20 points a confidence misleads whoever uses it."""

ABSTENTION = ("no_target_accuracy", "target_accuracy")
SELECTIVE = (0.5, 0.8)
"""Coverages at which the risk is stated: half of the questions, and most of them."""
EXAMPLES = 4


def probe_accuracy(context: ProbeContext, *, require: str = "") -> ProbeFinding:
    """require: the least values that you accept, such as `giou=0.5,no_target_accuracy=0.8`."""
    run = context.base
    wanted = parse_requirements(require, run)
    metrics = run[PROTOCOL].metrics
    grades = {
        name: grade_metric(metrics[name], least) for name, least in wanted.items()
    }
    tests = _calibrations(context, run)
    severities = list(grades.values())
    severities += [grade(test.certain_error, EDGES) for test in tests]
    return ProbeFinding(
        finding=_sentence(run, wanted, grades, tests),
        severity=worst(severities),
        done=(
            f"{len(run.ids):,} questions were asked and scored under {PROTOCOL}; "
            f"{len(wanted)} thresholds were stated; calibration was tested of "
            f"{', '.join(test.name for test in tests) or 'nothing: the model states no confidence'}."
        ),
        measures=_measures(run, wanted, tests),
        tables=[_requirements_table(metrics, wanted, grades)] if wanted else [],
        plots=[*map(_calibration_plot, tests), *_risk_plot(run)],
        examples=_examples(run),
    )


def parse_requirements(text: str, run: Run) -> dict[str, float]:
    """The least values by metric, from `giou=0.5,recall=0.7`."""
    known = run[PROTOCOL].metrics
    wanted = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in known:
            raise UnknownNameError("metric", name, known)
        try:
            wanted[name] = float(value)
        except ValueError:
            raise MaskwiseError(
                f"option require: {part!r}; expected METRIC=VALUE, such as giou=0.5"
            ) from None
    return wanted


def grade_metric(metric: MetricValue, least: float) -> Severity:
    """How far a metric is from what is required, given its interval."""
    if metric.value is None:
        return "unmeasured"
    low = metric.value if metric.low is None else metric.low
    high = metric.value if metric.high is None else metric.high
    if high < least:
        return "high"
    if metric.value < least:
        return "medium"
    return "low" if low < least else "none"


def _calibrations(context: ProbeContext, run: Run) -> list[CalibrationTest]:
    """The kinds of confidence that the model states."""
    truth = GroundTruth.from_dataset(context.dataset)
    predictions = load_run_data(run, RunPaths()).predictions
    tests = []
    if _varies(predictions.score):
        tests.append(_score_calibration(truth, predictions))
        tests.append(_presence_calibration(truth, predictions))
    drawn = drawn_types(predictions)
    probabilities = _type_probabilities(context, predictions.mask_type)
    counted = (truth.counts > 0) & (drawn != UNSTATED) & ~np.isnan(probabilities)
    if _varies(probabilities[counted]):
        right = drawn[counted] == truth.requested_type[counted]
        tests.append(
            check_calibration(
                "mask type", probabilities[counted], right, truth.cluster[counted]
            )
        )
    return tests


def _score_calibration(
    truth: GroundTruth, predictions: PredictionColumns
) -> CalibrationTest:
    inputs = ScoringInput(truth, predictions)
    matches = match_questions(inputs, "exact", "either")
    iou = np.zeros(len(predictions.score))
    iou[matches.pred] = matches.iou
    counted = matches.counted & matches.scorable[predictions.sample]
    cluster = truth.cluster[predictions.sample[counted]]
    return check_calibration(
        "scores", predictions.score[counted], iou[counted] >= HIT, cluster
    )


def _presence_calibration(
    truth: GroundTruth, predictions: PredictionColumns
) -> CalibrationTest:
    """Of questions with a predicted mask: its highest score, against whether there is a target.

    A mask that is right has a target, so a target has to be there at least as often as the score says.
    """
    confidence = np.full(len(truth), -1.0)
    np.maximum.at(confidence, predictions.sample, predictions.score)
    counted = (confidence >= 0) & ~predictions.no_target
    return check_calibration(
        "target presence",
        confidence[counted],
        truth.counts[counted] > 0,
        truth.cluster[counted],
        one_sided=True,
    )


def _type_probabilities(context: ProbeContext, stated: Int8Array) -> Float64Array:
    """How sure the model is of the mask type that it states for each question; NaN where it does not
    say.
    """
    predictor = context.loaded_model().predictor
    probabilities = np.full(len(stated), np.nan)
    questions = context.dataset.samples.question
    for row in np.flatnonzero(stated != UNSTATED).tolist():
        prediction = Prediction(mask_type=MASK_TYPES[stated[row]])
        value = mask_type_probability(predictor, questions[row], prediction)
        if value is not None:
            probabilities[row] = value
    return probabilities


def _varies(confidence: Float64Array) -> bool:
    """Whether there are different confidences: a model without scores has 1 everywhere."""
    return len(confidence) > 0 and confidence.min() < confidence.max()


def _sentence(
    run: Run,
    wanted: dict[str, float],
    grades: dict[str, Severity],
    tests: Sequence[CalibrationTest],
) -> str:
    giou = run[PROTOCOL]["giou"]
    parts = [f"gIoU is {format_value(giou)}"]
    if not wanted:
        parts.append("no threshold was stated")
    for name, least in wanted.items():
        label = metric_label(name).label
        value = format_value(run[PROTOCOL].metrics[name].value)
        verdict = "meets" if grades[name] == "none" else "does not surely meet"
        parts.append(
            f"{label} of {value} {verdict} the {format_value(least)} asked for"
        )
    faults = [test for test in tests if grade(test.certain_error, EDGES) != "none"]
    for test in faults:
        side = "too sure" if test.overall.gap > 0 else "not sure enough"
        gap = format_value(test.certain_error)
        parts.append(f"it is {side} of its {test.name} (gap {gap} points)")
    if tests and not faults:
        parts.append("its confidence is calibrated as far as can be tested")
    return "; ".join(parts) + "."


def _measures(
    run: Run, wanted: dict[str, float], tests: Sequence[CalibrationTest]
) -> list[Measure]:
    metrics = run[PROTOCOL].metrics
    measures = []
    for name in dict.fromkeys(["giou", *wanted, *ABSTENTION]):
        metric = metrics[name]
        label = metric_label(name)
        if metric.value is not None:
            measures.append(
                Measure(
                    name=name,
                    label=label.label,
                    value=metric.value,
                    low=metric.low,
                    high=metric.high,
                    meaning=label.meaning,
                    method=metric.method,
                )
            )
    for test in tests:
        measures.append(
            Measure(
                name=f"calibration_{test.name.replace(' ', '_')}",
                label=f"Calibration: {test.name}",
                value=test.certain_error,
                meaning=f"mean gap beyond chance; {format_value(test.expected_error)} in all",
            )
        )
    for coverage in SELECTIVE:
        risk = risk_at(run, coverage)
        if risk is not None:
            measures.append(
                Measure(
                    name=f"risk_at_{coverage:g}",
                    label=f"Risk at {100 * coverage:g} % coverage",
                    value=risk,
                    meaning="1 - gIoU of the questions that the model is surest of",
                )
            )
    return measures


def risk_at(run: Run, coverage: float) -> float | None:
    """The risk of the first point of the curve that covers this share of the questions."""
    for _, covered, risk in run[PROTOCOL].risk_coverage:
        if covered >= coverage:
            return risk
    return None


def _requirements_table(
    metrics: dict[str, MetricValue],
    wanted: dict[str, float],
    grades: dict[str, Severity],
) -> ProbeTable:
    rows: list[list[Cell]] = []
    for name, least in wanted.items():
        metric = metrics[name]
        label = metric_label(name).label
        rows.append([label, metric.value, metric.low, metric.high, least, grades[name]])
    return ProbeTable(
        title="What was asked for",
        columns=["metric", "value", "low", "high", "asked for", "severity"],
        units=["text", "fraction", "fraction", "fraction", "fraction", "text"],
        rows=rows,
    )


def _calibration_plot(test: CalibrationTest) -> ProbePlot:
    right = [PlotPoint(item.confidence, item.right) for item in test.bins]
    ideal = [PlotPoint(item.confidence, item.confidence) for item in test.bins]
    return ProbePlot(
        title=f"Calibration of {test.name}",
        kind="lines",
        series=[PlotSeries("right", right), PlotSeries("calibrated", ideal)],
        x="confidence",
        y="share that is right",
        note=f"{test.overall.count:,} cases in {len(test.bins)} bins.",
    )


def _risk_plot(run: Run) -> list[ProbePlot]:
    """The curve of risk by coverage, where the model states confidences."""
    points = run[PROTOCOL].risk_coverage
    if len(points) < 2:
        return []
    series = PlotSeries(
        "risk", [PlotPoint(coverage, risk) for _, coverage, risk in points]
    )
    return [
        ProbePlot(
            title="Risk by coverage",
            kind="lines",
            series=[series],
            x="share of questions answered, surest first",
            y="risk (1 - gIoU)",
            note="A curve that does not rise: leaving out unsure answers would not help.",
        )
    ]


def _examples(run: Run) -> list[ProbeExample]:
    """The lowest scores, from different images."""
    rows = run.rows(PROTOCOL)
    value = np.nan_to_num(rows.value)
    shown: dict[int, int] = {}
    for row in np.argsort(value, kind="stable").tolist():
        if rows.scored[row] and len(shown) < EXAMPLES:
            shown.setdefault(int(run.clusters[row]), row)
    return [
        ProbeExample(title="lowest scores", sample=run.ids[row], runs=[BASE])
        for row in shown.values()
    ]


POOR_MODEL_ACCURACY = Probe(
    name="poor-model-accuracy",
    title="Poor model accuracy",
    risks=("atlas-poor-model-accuracy",),
    measured=(
        "Metrics with intervals, against the values that you require; whether scores, mask types "
        "and the presence of targets are stated with the confidence they deserve; what leaving "
        "out unsure answers would bring; how often the model abstains, rightly and wrongly."
    ),
    blind_spots=(
        "Other images and questions than those of this dataset, and errors of its annotations. "
        "Calibration of models that state no confidence, and gaps of bins with few images. "
        "Without stated requirements, whether the accuracy is enough."
    ),
    thresholds=(
        Threshold("high", "the whole interval of a metric lies below what you require"),
        Threshold("medium", "its value does"),
        Threshold("low", "its interval reaches below it"),
        *state_edges(EDGES, "confidence and outcome differ by {} points beyond chance"),
    ),
    run=probe_accuracy,
)

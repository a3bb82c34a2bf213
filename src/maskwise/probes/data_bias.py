"""The probe `data-bias`: what can be had without the image or the question, and what occurs twice."""

from collections.abc import Mapping, Sequence

import numpy as np

from maskwise.builder.image_hash import MAX_DISTANCE
from maskwise.datasets import load_dataset
from maskwise.errors import ModelError
from maskwise.models.baselines import baseline
from maskwise.probes.context import PROTOCOL, ProbeContext
from maskwise.probes.duplicates import NGRAM, Overlap, find_between, find_inside
from maskwise.probes.group_tests import mask_terms
from maskwise.probes.priors import SIDE, guess_priors
from maskwise.probes.probe import Probe
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.protocols import GroundTruth
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import Estimate, Interval, estimate
from maskwise.report.formatting import format_value
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
)

LEAK_EDGES: tuple[tuple[float, Severity], ...] = (
    (0.25, "low"),
    (0.5, "medium"),
    (0.75, "high"),
)
"""The share of the model's gIoU that a guess gets, by the low end of its interval: from half on, the
dataset does not test what it seems to test."""

COPY_EDGES: tuple[tuple[float, Severity], ...] = (
    (0.01, "low"),
    (0.05, "medium"),
    (0.2, "high"),
)
"""The share of images that occur twice: 1 % of them move a metric by less than its interval."""

QUESTION_EDGES: tuple[tuple[float, Severity], ...] = (
    (0.2, "low"),
    (0.5, "medium"),
    (0.8, "high"),
)
"""The share of questions whose words occur in the other dataset. Questions of one writer share
phrases, so that a few percent say nothing."""

BLIND = ("text-blind", "image-blind", "shuffled-questions")
QUICK_BLIND = ("text-blind", "image-blind")
QUICK_SHARE = 0.2
"""With --quick two blind baselines are asked about a fifth of the images: 0.4 of an evaluation in all."""

LABELS = {
    "place": (
        "Fixed place",
        "the same mask for every question, where targets are most often",
    ),
    "words": (
        "Words alone",
        "where the targets of similar questions are, without the image",
    ),
    "text-blind": ("Without the question", "the model, asked nothing"),
    "image-blind": ("Without the image", "the model, shown gray"),
    "shuffled-questions": ("Another question", "the model, asked something else"),
}
EXAMPLES = 4
MAX_PAIRS = 5

PERFECT = Estimate(1.0, Interval(None, None, "the best that is possible"))
"""What guesses are compared with where no model is probed."""


def probe_data_bias(context: ProbeContext, *, others: str = "") -> ProbeFinding:
    """others: datasets that the model may have been trained on, by name or folder, with commas."""
    dataset = context.dataset
    truth = GroundTruth.from_dataset(dataset)
    everything = ImageGroups.single(truth.cluster)
    guesses = {
        name: estimate(terms, everything)[0]
        for name, terms in guess_priors(dataset, context.seed).items()
    }
    notes = []
    seeing = PERFECT
    if context.model is not None:
        seeing = _estimate_targeted(context, context.base)
        try:
            for name in QUICK_BLIND if context.quick else BLIND:
                guesses[name] = _ask_blind(context, name)
        except ModelError as error:
            notes.append(f"The model could not be asked blindly: {error}.")
    names = [text.strip() for text in others.split(",") if text.strip()]
    overlaps = [find_inside(dataset, context.seed)]
    for name in names:
        overlaps.append(find_between(dataset, load_dataset(name), context.seed))
    leaks = {name: leaked_share(guess, seeing) for name, guess in guesses.items()}
    copies = worst([grade_overlap(overlap) for overlap in overlaps])
    if guesses["place"].interval.low is None and copies in ("none", "unmeasured"):
        return ProbeFinding(
            finding="Not measured: too few images have targets to tell guesses from chance.",
            severity="unmeasured",
            done=_describe_work(context, guesses, names),
            measures=_measures(guesses, overlaps),
            tables=[_overlap_table(overlaps)],
            notes=notes,
        )
    severities = [grade(share, LEAK_EDGES) for share in leaks.values()]
    return ProbeFinding(
        finding=_sentence(guesses, leaks, overlaps),
        severity=worst([copies, *severities]),
        done=_describe_work(context, guesses, names),
        measures=_measures(guesses, overlaps),
        tables=[_overlap_table(overlaps)],
        plots=[_plot(guesses, seeing)],
        examples=_examples(context, leaks),
        notes=notes,
    )


def leaked_share(guess: Estimate, seeing: Estimate) -> float:
    """The share of a score that a guess surely gets, too: by the low end of its interval."""
    if guess.interval.low is None or not seeing.value:
        return 0.0
    return guess.interval.low / seeing.value


def grade_overlap(overlap: Overlap) -> Severity:
    """The severity of images and questions that occur twice."""
    images = grade(overlap.shared_images or 0.0, COPY_EDGES)
    return worst([images, grade(overlap.questions, QUESTION_EDGES)])


def _ask_blind(context: ProbeContext, name: str) -> Estimate:
    """gIoU of a blind baseline over the questions with targets."""
    run = context.evaluate(
        blind_folder(name),
        baseline(context.loaded_model(), name),
        share=QUICK_SHARE if context.quick else 1.0,
    )
    return _estimate_targeted(context, run)


def blind_folder(name: str) -> str:
    """The folder of the evaluation of a blind baseline."""
    return f"data-bias/{name}"


def _estimate_targeted(context: ProbeContext, run: Run) -> Estimate:
    """gIoU over the questions with targets: without any, a model that sees nothing is right."""
    rows = context.base_rows(run)
    has_targets = GroundTruth.from_dataset(context.dataset).counts[rows] > 0
    terms = mask_terms(run.metrics(PROTOCOL)["giou"], has_targets)
    return estimate(terms, ImageGroups.single(run.clusters))[0]


def _sentence(
    guesses: Mapping[str, Estimate],
    leaks: Mapping[str, float],
    overlaps: Sequence[Overlap],
) -> str:
    """The finding: the largest leak, and what occurs twice."""
    name = max(leaks, key=leaks.__getitem__)
    label, meaning = LABELS[name]
    value = format_value(guesses[name].value)
    if leaks[name] >= LEAK_EDGES[0][0]:
        text = f"The dataset leaks: {meaning}, has a gIoU of {value}"
    else:
        text = f"Guessing does not pay: the best guess ({label.lower()}) has a gIoU of {value}"
    copied = [item for item in overlaps if grade_overlap(item) != "none"]
    if not copied:
        return f"{text}; images and questions are not repeated."
    shares = []
    for item in copied:
        images = format_value(item.shared_images)
        shares.append(
            f"{images} % of the images and {format_value(item.questions)} % of the questions "
            f"are in {item.name} too"
        )
    return f"{text}; {'; '.join(shares)}."


def _describe_work(
    context: ProbeContext, guesses: Mapping[str, Estimate], others: Sequence[str]
) -> str:
    asked = [name for name in BLIND if name in guesses]
    text = (
        "Two guesses were learned on half of the images and scored on the other half, on a grid "
        f"of {SIDE} x {SIDE} cells. "
    )
    if asked:
        part = f" on {100 * QUICK_SHARE:g} % of the images" if context.quick else ""
        text += f"The model was asked as {', '.join(asked)}{part}. "
    where = "".join(f", with {name}" for name in others)
    return f"{text}Images were compared by their hashes, inside the dataset{where}."


def _measures(
    guesses: Mapping[str, Estimate], overlaps: Sequence[Overlap]
) -> list[Measure]:
    measures = []
    for name, guess in guesses.items():
        label, meaning = LABELS[name]
        measures.append(
            Measure(
                name=name.replace("-", "_"),
                label=label,
                value=guess.value,
                low=guess.interval.low,
                high=guess.interval.high,
                meaning=f"gIoU: {meaning}",
                method=guess.interval.method,
            )
        )
    inside = overlaps[0]
    measures.append(
        Measure(
            name="repeated_images",
            label="Images that occur twice",
            value=inside.shared_images,
            meaning="in this dataset",
        )
    )
    return measures


def _overlap_table(overlaps: Sequence[Overlap]) -> ProbeTable:
    rows: list[list[Cell]] = []
    for number, item in enumerate(overlaps):
        pairs = [f"{own} = {other}" for own, other in item.images[:MAX_PAIRS]]
        name = f"{item.name} (itself)" if number == 0 else item.name
        rows.append([name, item.shared_images, item.questions, "; ".join(pairs)])
    return ProbeTable(
        title="What occurs twice",
        columns=["dataset", "images", "questions", "pairs of images"],
        units=["text", "fraction", "fraction", "text"],
        rows=rows,
        note=(
            f"Images whose hashes differ in at most {MAX_DISTANCE} of 64 bits. Questions: asked "
            f"twice about one image, or {NGRAM} words in a row that another dataset has, too."
        ),
    )


def _plot(guesses: Mapping[str, Estimate], seeing: Estimate) -> ProbePlot:
    bars = {LABELS[name][0]: guess for name, guess in guesses.items()}
    if seeing is not PERFECT:
        bars["The model"] = seeing
    points = [
        PlotPoint(name, item.value, item.interval.low, item.interval.high)
        for name, item in bars.items()
    ]
    return ProbePlot(
        title="gIoU without seeing or reading",
        kind="bars",
        series=[PlotSeries("gIoU", points)],
        note="Questions with targets. The closer a guess comes to the model, the less is tested.",
    )


def _examples(context: ProbeContext, leaks: Mapping[str, float]) -> list[ProbeExample]:
    """The best answers of the blind baseline that gets most, if it gets enough to be a leak."""
    blind = {name: leaks[name] for name in BLIND if name in leaks}
    name = max(blind, key=blind.__getitem__, default="")
    if not name or blind[name] < LEAK_EDGES[0][0]:
        return []
    run = context.runs[blind_folder(name)]
    value = np.nan_to_num(run.rows(PROTOCOL).value)
    best = np.argsort(-value, kind="stable")[:EXAMPLES].tolist()
    title = LABELS[name][1]
    return [
        ProbeExample(title=title, sample=run.ids[row], runs=[blind_folder(name)])
        for row in best
    ]


DATA_BIAS = Probe(
    name="data-bias",
    title="Data bias",
    risks=("atlas-data-bias",),
    measured=(
        "What the dataset gives away: gIoU of guesses that see no image or read no question, "
        "images and questions that occur twice, and overlap with other datasets."
    ),
    blind_spots=(
        "Shortcuts that no guess here uses, such as a frame around targets. Crops, rotations and "
        "mirror images of an image, and questions in other words. What a model was trained on, "
        "unless those datasets are named (option others)."
    ),
    thresholds=(
        *state_edges(
            LEAK_EDGES,
            "a guess surely gets {} % of the gIoU of the model, or without a model of 100",
        ),
        *state_edges(
            COPY_EDGES, "{} % of the images occur twice, or in another dataset"
        ),
        *state_edges(QUESTION_EDGES, "{} % of the questions do"),
    ),
    run=probe_data_bias,
    needs_model=False,
)

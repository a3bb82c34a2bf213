"""Probe `counterfactual-twins`: what does the model do when its target is gone, or covered?

HalluSegBench asks this about visible masks of edited photographs; here masks are exact and
amodal ones are asked for too.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import OccludeOptions
from maskwise.errors import StoreError
from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.harness.plan import Plan, PlannedImage
from maskwise.masks import Mask
from maskwise.probes.absent_questions import ask_for_absent, list_names
from maskwise.probes.change_findings import effect_table, example_rows, list_measures
from maskwise.probes.changed_data import (
    ALPHA,
    LOSSES,
    ChangedRun,
    changed_sample,
    draw_generator,
    worst_severity,
    write_changed,
)
from maskwise.probes.context import ProbeContext
from maskwise.probes.pasted_twins import make_pasted_twins
from maskwise.probes.probe import Probe
from maskwise.probes.region_rates import (
    RATES,
    estimate_mean,
    estimate_rate,
    has_region,
    rate_measure,
    rate_severity,
)
from maskwise.probes.severity import state_edges, worst
from maskwise.probes.twin import ABSENT_KINDS, ORIGINAL, Twin, TwinKind
from maskwise.probes.world_twins import SCENE_KINDS, make_scene_twin, open_scene
from maskwise.protocols.intervals import Estimate
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.runs.probe_results import (
    Cell,
    ProbeFinding,
    ProbeTable,
)
from maskwise.schema import ImageInfo, Prediction, Sample
from maskwise.store import DatasetWriter
from maskwise.world.random_streams import RandomStream

COST = 3.0
QUICK_COST = 0.3
"""Images of twins, as a multiple of the images of the dataset."""

LEAST_TWINS = 24
"""Twins of a small dataset: enough of each kind together for an interval."""

HIT = 0.5
"""IoU from which on a region is where the target was."""


class TwinAnswer(NamedTuple):
    """What a model answered about a twin and about its control; None where it failed."""

    kind: TwinKind
    sample: Sample
    control: Sample
    answer: Prediction | None
    control_answer: Prediction | None


def run_counterfactuals(context: ProbeContext, cost: float = COST) -> ProbeFinding:
    """Make twins of images and questions and compare the answers.

    cost: images of twins, as a multiple of the images of the dataset.
    """
    allowed = QUICK_COST if context.quick else cost
    name = "counterfactual-twins"
    folder = write_changed(
        context, name, lambda writer: _write(context, writer, allowed), allowed
    )
    run = context.evaluate(name, data=folder)
    changed = ChangedRun(context, run, folder)
    answers = list_answers(context, changed)
    kinds = np.array(changed.changes)
    is_twin = kinds != ORIGINAL
    images = changed.images[is_twin]
    absent = np.array([item.kind in ABSENT_KINDS for item in answers], np.bool_)
    invented = np.array([has_region(item.answer) for item in answers], np.bool_)
    at_place = np.array([_is_at_place(item) for item in answers], np.bool_)
    same_words = np.array([_keeps_words(item) for item in answers], np.bool_)
    flipped = np.array([_flips_type(item) for item in answers], np.bool_)
    hallucination = estimate_rate(invented, absent, images)
    flips = estimate_rate(flipped, same_words, images)
    hidden = np.array([_invented_hidden(item) for item in answers])
    mask_types = np.array([sample.mask_type for sample in changed.dataset])
    effects = changed.compare(
        [
            ("uncovered", kinds == "uncovered"),
            ("covered, amodal", (kinds == "covered") & (mask_types == "amodal")),
        ]
    )
    covered = changed.compare(
        [("covered, visible", (kinds == "covered") & (mask_types == "visible"))]
    )
    severities = [
        rate_severity(hallucination),
        rate_severity(flips),
        worst_severity(effects),
    ]
    severity = worst(severities)
    if severity == "none" and rate_severity(hallucination) == "unmeasured":
        severity = "unmeasured"
    return ProbeFinding(
        finding=_sentence(hallucination, at_place & absent, int(absent.sum())),
        severity=severity,
        done=(
            f"{int(is_twin.sum())} questions about twins of "
            f"{len(np.unique(images))} images."
        ),
        measures=[
            rate_measure(
                "hallucination",
                "regions for absent targets",
                hallucination,
                "share of questions whose target is not there that got a region",
            ),
            rate_measure(
                "type_flips",
                "mask types that flip",
                flips,
                "share of pairs of equal questions with another mask type",
            ),
            rate_measure(
                "invented_hidden",
                "hidden parts of uncovered objects",
                estimate_mean(hidden, ~np.isnan(hidden), images),
                "share of the amodal mask outside the visible one, where nothing is hidden",
            ),
            *list_measures([*effects, *covered]),
        ],
        tables=[
            _kind_table(answers, invented, at_place),
            effect_table(
                "Score when a target is uncovered or covered more",
                [*effects, *covered],
                "What is visible of a covered target is smaller and harder to find: its "
                "row is reported, but not part of the severity.",
            ),
        ],
        examples=example_rows(changed, name, is_twin),
    )


# -- making twins


def _write(context: ProbeContext, writer: DatasetWriter, cost: float) -> None:
    plan = Plan.from_dataset(context.dataset)
    wanted = max(LEAST_TWINS, round(cost * len(plan)))
    kinds_each = math.ceil(wanted / max(1, len(plan)))
    count = 0
    for twin in make_twins(context, plan, kinds_each):
        writer.add_image(twin.image, twin.regions, twin.data)
        for sample in twin.samples:
            writer.add_sample(sample)
        count += 1
        # Both images of a pasted pair are written, or none.
        if count >= wanted and not twin.image.id.endswith("-original"):
            break
    if not count:
        raise StoreError(
            f"{context.dataset.path}: no twin could be made: its images are not of the "
            "world, show no complete object, and no question names its target"
        )


def make_twins(context: ProbeContext, plan: Plan, kinds_each: int) -> Iterator[Twin]:
    """Twins of all kinds in turn, image by image, in an order drawn with the seed.

    kinds_each: how many kinds are made of one image; the next image begins with the next.
    """
    dataset = context.dataset
    order = draw_generator(context.seed, "twins").permutation(len(plan)).tolist()
    is_world = open_scene(dataset, plan[order[0]]) is not None
    names = list_names(dataset, is_world=is_world)
    cutouts = None if is_world else CutoutSource(dataset)
    # All kinds of a photograph are made by pasting.
    kinds: tuple[TwinKind, ...] = ("absent question", "covered")
    if is_world:
        kinds = ("absent question", *SCENE_KINDS)
    for position, item in enumerate(order):
        planned = plan[item]
        scene = open_scene(dataset, planned) if is_world else None
        for turn in range(min(kinds_each, len(kinds))):
            kind = kinds[(position + turn) % len(kinds)]
            if kind == "absent question":
                yield from _absent_twins(context, planned, names)
            elif cutouts is not None:
                options = OccludeOptions(seed=context.seed, any_context=True)
                yield from make_pasted_twins(cutouts, planned.image, options)
            elif scene is not None:
                seeds = np.random.SeedSequence([context.seed, planned.image, turn])
                rng = RandomStream(seeds)
                twin = make_scene_twin(dataset, planned, scene, kind, rng)
                if twin is not None:
                    yield twin


def _absent_twins(
    context: ProbeContext, planned: PlannedImage, names: Sequence[str]
) -> Iterator[Twin]:
    """The image as it is, with questions about what is not there."""
    dataset = context.dataset
    info = dataset.image(planned.image)
    image = ImageInfo(id=f"{info.id}~asked", width=info.width, height=info.height)
    regions = dataset.regions_of(planned.image)
    samples = []
    for row in planned.rows:
        sample = dataset[row]
        rng = draw_generator(context.seed, "absent", sample.id)
        question = ask_for_absent(sample, regions, names, rng)
        if question is not None:
            samples.append(
                changed_sample(
                    sample,
                    image,
                    "absent",
                    change="absent question",
                    question=question,
                    targets=(),
                    answer=None,
                )
            )
    if samples:
        data = read_encoded_image(dataset, planned.image)
        yield Twin(image, regions, data, tuple(samples))


# -- what was answered


def list_answers(context: ProbeContext, changed: ChangedRun) -> list[TwinAnswer]:
    """The answers about all twins and about their controls, in the order of the run."""
    own = load_run_data(changed.run, RunPaths())
    needs_base = any(
        control not in own.dataset.samples.row for control in changed.controls
    )
    base = load_run_data(context.base, RunPaths()) if needs_base else own
    answers = []
    for row, kind in enumerate(changed.changes):
        if kind == ORIGINAL:
            continue
        control = changed.controls[row]
        source: RunData = own if control in own.dataset.samples.row else base
        control_row = source.dataset.samples.row[control]
        answers.append(
            TwinAnswer(
                kind,  # type: ignore[arg-type]
                own.dataset[row],
                source.dataset[control_row],
                own.prediction(row),
                source.prediction(control_row),
            )
        )
    return answers


def _is_at_place(item: TwinAnswer) -> bool:
    """Whether the regions about a twin lie where the target of the control is."""
    if not has_region(item.answer) or not item.control.targets:
        return False
    target = item.control.targets[0]
    mask = target.amodal if target.visible is None else target.visible
    assert item.answer is not None
    union: Mask | None = None
    for region in item.answer.regions:
        predicted = region.amodal if region.visible is None else region.visible
        assert predicted is not None
        union = predicted if union is None else union | predicted
    if mask is None or union is None or mask.size != union.size:
        return False
    return mask.iou(union) >= HIT


def _keeps_words(item: TwinAnswer) -> bool:
    """Whether a pair has the same question and an answer with a mask type on both sides."""
    same = item.sample.question == item.control.question
    return (
        same
        and _stated(item.answer) is not None
        and _stated(item.control_answer) is not None
    )


def _flips_type(item: TwinAnswer) -> bool:
    return _keeps_words(item) and _stated(item.answer) != _stated(item.control_answer)


def _stated(prediction: Prediction | None) -> str | None:
    if prediction is None or not has_region(prediction):
        return None
    return prediction.mask_type


def _invented_hidden(item: TwinAnswer) -> float:
    """The hidden share of predicted amodal masks of an uncovered target; NaN for other twins."""
    if item.kind != "uncovered" or item.answer is None:
        return np.nan
    hidden = 0
    whole = 0
    for region in item.answer.regions:
        if region.visible is not None and region.amodal is not None:
            hidden += (region.amodal - region.visible).area
            whole += region.amodal.area
    return hidden / whole if whole else np.nan


# -- what is reported


def _kind_table(
    answers: Sequence[TwinAnswer], invented: BoolArray, at_place: BoolArray
) -> ProbeTable:
    rows: list[list[Cell]] = []
    for kind in ABSENT_KINDS:
        chosen = np.array([item.kind == kind for item in answers], np.bool_)
        count = int(chosen.sum())
        if not count:
            continue
        controls = [item.control_answer for item in answers if item.kind == kind]
        answered = sum(has_region(control) for control in controls)
        rows.append(
            [
                kind,
                count,
                answered / count,
                float(invented[chosen].mean()),
                float(at_place[chosen].mean()),
            ]
        )
    return ProbeTable(
        title="Questions whose target is not there",
        columns=[
            "target",
            "questions",
            "region in the original",
            "region in the twin",
            "where the target was",
        ],
        units=["text", "count", "fraction", "fraction", "fraction"],
        rows=rows,
        note="A model that never draws a region has no hallucinations, which is no merit.",
    )


def _sentence(hallucination: Estimate, at_place: BoolArray, questions: int) -> str:
    if hallucination.value is None:
        return "No question about an absent target could be asked."
    return (
        f"The model draws a region for {hallucination.value:.0%} of {questions} questions "
        f"whose target is not in the image, {int(at_place.sum())} of them where it was."
    )


COUNTERFACTUAL_TWINS = Probe(
    name="counterfactual-twins",
    title="Hallucination: targets that are removed, replaced, covered or uncovered",
    risks=("hallucination",),
    measured=(
        "What the model answers when the target of a question is not there, and whether "
        "masks and mask types change as they should when it is covered or uncovered."
    ),
    blind_spots=(
        "Twins are drawn (scenes of the world) or pasted (photographs): a removed object "
        "leaves no trace that a retouched photograph would have. In photographs, what is "
        "not annotated counts as absent. It judges masks, not words."
    ),
    thresholds=(
        *state_edges(
            RATES,
            "regions for absent targets, or flips of the mask type, in {} % of the "
            "questions or more, interval included",
        ),
        *state_edges(
            LOSSES,
            "{} % of the score or more is lost where a target is uncovered, or covered "
            f"and asked for as a whole, with p < {ALPHA}",
        ),
    ),
    run=run_counterfactuals,
)

"""The probe `output-bias`: groups of questions that the model serves worse, and one-sided masks."""

from collections.abc import Mapping, Sequence

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.probes.completion import CompletionTerms, measure_completion
from maskwise.probes.context import BASE, PROTOCOL, ProbeContext
from maskwise.probes.facets import describe_samples, facet_title
from maskwise.probes.group_tests import GroupTest, adjust_tests, compare_groups
from maskwise.probes.probe import Probe
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.protocols import GroundTruth, MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import MIN_IMAGES, estimate
from maskwise.report.formatting import format_value
from maskwise.report.run_data import RunPaths, load_run_data
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
from maskwise.store import Codes
from maskwise.terminal import count_noun

EDGES: tuple[tuple[float, Severity], ...] = (
    (0.05, "low"),
    (0.1, "medium"),
    (0.2, "high"),
)
"""Points by which a group is worse than the rest. Below 5 points a gap is within what two careful
annotators of the same object differ by."""

GIOU = "gIoU"
COMPLETION_FACETS = ("area", "border")
"""The facets by which completion is compared: large and cut-off objects leave more to guess."""

MAX_PLOTS = 6
"""Facets that are drawn: those with the largest differences."""
EXAMPLES = 4


def probe_output_bias(
    context: ProbeContext, *, min_images: int = MIN_IMAGES
) -> ProbeFinding:
    """min_images: groups with fewer images are not tested."""
    run = context.base
    truth = GroundTruth.from_dataset(context.dataset)
    has_targets: BoolArray = truth.counts > 0
    facets = describe_samples(context.dataset)
    completion = measure_completion(truth, load_run_data(run, RunPaths()).predictions)
    tests = compare_groups(
        GIOU,
        run.metrics(PROTOCOL)["giou"],
        truth.cluster,
        facets,
        rows=has_targets,
        min_images=min_images,
    )
    few_facets = {name: facets[name] for name in COMPLETION_FACETS}
    errors = {
        "hidden part missed": completion.missed,
        "drawn outside": completion.excess,
    }
    for name, terms in errors.items():
        tests += compare_groups(
            name, terms, truth.cluster, few_facets, min_images=min_images
        )
    tests += _compare_types(completion, truth)
    family = adjust_tests(tests)
    if not family:
        return ProbeFinding(
            finding="Not measured: no group of questions has enough images to be compared.",
            severity="unmeasured",
            done=f"{len(truth):,} questions were asked; a group needs {min_images} images.",
        )
    faults = find_faults(family)
    return ProbeFinding(
        finding=describe_faults(faults, family),
        severity=worst(["none", *(grade(harm(test), EDGES) for test in faults)]),
        done=(
            f"{len(truth):,} questions were asked and scored under {PROTOCOL}. "
            f"Groups of questions with targets were compared with the rest in "
            f"{count_noun(len(family), 'comparison')}, images as the unit; p-values are "
            "adjusted for their number (Holm)."
        ),
        measures=_measures(family, completion, truth),
        tables=[tabulate_groups(family)],
        plots=plot_groups(family),
        examples=_examples(context, faults, facets, has_targets),
    )


def harm(test: GroupTest) -> float:
    """By how much a group is worse than the rest: less gIoU, or more of an error."""
    return -test.difference if test.metric == GIOU else test.difference


def find_faults(family: Sequence[GroupTest]) -> list[GroupTest]:
    """The groups that are worse beyond chance and by enough to matter, the worst first."""
    least, _ = EDGES[0]
    faults = [test for test in family if test.significant and harm(test) >= least]
    return sorted(faults, key=harm, reverse=True)


def describe_faults(faults: Sequence[GroupTest], family: Sequence[GroupTest]) -> str:
    """The finding in one sentence."""
    if not faults:
        largest = max(family, key=harm)
        return (
            f"No group of questions is served worse beyond chance; the largest gap of "
            f"{count_noun(len(family), 'comparison')}, {format_value(max(0.0, harm(largest)))} points of "
            f"{largest.metric} in “{name_group(largest)}”, may be chance."
        )
    first = faults[0]
    value = format_value(first.own.value)
    rest = format_value(first.rest)
    more = ""
    if len(faults) > 1:
        more = (
            f"; {len(faults) - 1} more of {count_noun(len(family), 'comparison')} too"
        )
    return (
        f"Some questions are served worse: in the group “{name_group(first)}” {first.metric} is "
        f"{value}, in the rest {rest}{more}."
    )


def name_group(test: GroupTest) -> str:
    """A group in words: "size in the image: under 1 %"."""
    return f"{facet_title(test.facet)}: {test.group}"


def tabulate_groups(family: Sequence[GroupTest]) -> ProbeTable:
    """All comparisons of a group with the rest, the worst first."""
    rows: list[list[Cell]] = []
    for test in sorted(family, key=harm, reverse=True):
        rows.append(
            [
                facet_title(test.facet),
                test.group,
                test.metric,
                test.samples,
                test.images,
                test.own.value,
                test.rest,
                test.difference,
                _range(test),
                test.adjusted,
            ]
        )
    return ProbeTable(
        title=f"All comparisons with the rest ({len(family)}), the worst first",
        columns=[
            "facet",
            "group",
            "metric",
            "questions",
            "images",
            "group",
            "rest",
            "difference",
            "95 % interval",
            "p (Holm)",
        ],
        units=[
            "text",
            "text",
            "text",
            "count",
            "count",
            "fraction",
            "fraction",
            "difference",
            "text",
            "p",
        ],
        rows=rows,
        note="Intervals are of one difference each and not adjusted.",
    )


def plot_groups(family: Sequence[GroupTest]) -> list[ProbePlot]:
    """gIoU by group, for the facets with the largest differences."""
    by_facet: dict[str, list[GroupTest]] = {}
    for test in family:
        if test.metric == GIOU:
            by_facet.setdefault(test.facet, []).append(test)
    ranked = sorted(
        by_facet, key=lambda facet: max(map(harm, by_facet[facet])), reverse=True
    )
    plots = []
    for facet in ranked[:MAX_PLOTS]:
        points = []
        for test in by_facet[facet]:
            interval = test.own.interval
            points.append(
                PlotPoint(test.group, test.own.value, interval.low, interval.high)
            )
        series = PlotSeries(GIOU, points)
        title = f"gIoU by {facet_title(facet)}"
        plots.append(ProbePlot(title=title, kind="bars", series=[series]))
    return plots


def _compare_types(completion: CompletionTerms, truth: GroundTruth) -> list[GroupTest]:
    """Whether one mask type is drawn in place of the other more often than the reverse; at most
    one test.
    """
    sides = (completion.amodal_for_visible, completion.visible_for_amodal)
    wrong = sum(np.asarray(terms.numerator) for terms in sides)
    asked = sum(np.asarray(terms.denominator) for terms in sides)
    asks_amodal = np.asarray(sides[1].denominator) > 0
    names = ("amodal in place of visible", "visible in place of amodal")
    codes = Codes(asks_amodal.astype(np.int32), names)
    tests = compare_groups(
        "wrong mask type",
        MetricTerms(np.asarray(wrong), np.asarray(asked)),
        truth.cluster,
        {"mask type": codes},
    )
    # Both sides have the same test, with opposite signs.
    return [max(tests, key=harm)] if tests else []


def _measures(
    family: Sequence[GroupTest], completion: CompletionTerms, truth: GroundTruth
) -> list[Measure]:
    measures = []
    scored = [test for test in family if test.metric == GIOU]
    if scored:
        last = max(scored, key=harm)
        measures.append(
            Measure(
                name="worst_group",
                label="gIoU of the worst group",
                value=last.own.value,
                low=last.own.interval.low,
                high=last.own.interval.high,
                meaning=name_group(last),
            )
        )
        measures.append(
            Measure(
                name="largest_gap",
                label="Gap to the rest",
                value=last.difference,
                low=last.low,
                high=last.high,
                unit="difference",
                meaning=(
                    f"the largest in gIoU, of {count_noun(len(family), 'comparison')}, "
                    "so chance adds to it"
                ),
            )
        )
    everything = ImageGroups.single(truth.cluster)
    described = (
        ("amodal_for_visible", "Amodal drawn", "of questions about visible masks"),
        ("visible_for_amodal", "Visible drawn", "of questions about amodal masks"),
        (
            "missed",
            "Hidden part missed",
            "under-completion, of objects that were found",
        ),
        ("excess", "Drawn outside", "over-completion, as a share of the true mask"),
        ("uncalled", "Hidden part drawn", "although the visible mask was asked for"),
    )
    for name, label, meaning in described:
        estimated = estimate(getattr(completion, name), everything)[0]
        if estimated.value is not None:
            measures.append(
                Measure(
                    name=name,
                    label=label,
                    value=estimated.value,
                    low=estimated.interval.low,
                    high=estimated.interval.high,
                    meaning=meaning,
                    method=estimated.interval.method,
                )
            )
    return measures


def _examples(
    context: ProbeContext,
    faults: Sequence[GroupTest],
    facets: Mapping[str, Codes],
    has_targets: BoolArray,
) -> list[ProbeExample]:
    """The lowest scores of the worst groups, from different images."""
    value = np.nan_to_num(context.base.rows(PROTOCOL).value)
    by_image: dict[int, ProbeExample] = {}
    for test in faults:
        if test.metric != GIOU:
            continue
        codes = facets[test.facet]
        inside = has_targets & (codes.codes == codes.names.index(test.group))
        rows = np.flatnonzero(inside)
        lowest = rows[np.argsort(value[rows], kind="stable")]
        for row in lowest[:EXAMPLES].tolist():
            example = ProbeExample(
                title=name_group(test), sample=context.base.ids[row], runs=[BASE]
            )
            by_image.setdefault(int(context.base.clusters[row]), example)
    return list(by_image.values())[:EXAMPLES]


def _range(test: GroupTest) -> str:
    if test.low is None or test.high is None:
        return ""
    return f"{100 * test.low:+.1f} to {100 * test.high:+.1f}"


OUTPUT_BIAS = Probe(
    name="output-bias",
    title="Output bias",
    risks=("atlas-output-bias",),
    measured=(
        "Scores by group of questions (category and its frequency, size, position, border, "
        "occlusion, form and wording of the question, tags): the worst group and its gap to the "
        "rest. Which mask type is drawn in place of the other, and how much of hidden parts is "
        "missed or drawn in excess."
    ),
    blind_spots=(
        "Groups that no annotation tells apart, groups with few images, and combinations of "
        "groups. A gap is no cause: small objects may also be the hidden ones. People are not "
        "told apart; the probe demographic does that where there is an annotation."
    ),
    thresholds=state_edges(
        EDGES,
        "a group is worse than the rest by {} points or more, and p (Holm) < 0.05",
    ),
    run=probe_output_bias,
)

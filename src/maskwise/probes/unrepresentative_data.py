"""The probe `unrepresentative-data`: what a dataset asks about, beside a reference dataset.

For each facet the distance is the total variation of the two distributions: the share of questions
that would have to have another value for both to agree. Two samples of one population differ too,
so the distance is compared with that of random splits of all images of both (a permutation test),
and only what exceeds their mean counts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.datasets import load_dataset
from maskwise.harness.plan import Plan
from maskwise.language.tokens import split_words
from maskwise.probes.context import ProbeContext
from maskwise.probes.facets import TITLES, describe_samples, facet_title
from maskwise.probes.probe import Probe
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.protocols.intervals import MIN_IMAGES
from maskwise.protocols.significance import adjust_by_holm
from maskwise.report.formatting import format_value
from maskwise.runs.probe_results import (
    Cell,
    Measure,
    PlotPoint,
    PlotSeries,
    ProbeFinding,
    ProbePlot,
    ProbeTable,
    Severity,
)
from maskwise.store import Codes, Dataset
from maskwise.terminal import count_noun

EDGES: tuple[tuple[float, Severity], ...] = (
    (0.1, "low"),
    (0.25, "medium"),
    (0.5, "high"),
)
"""Distance beyond chance: from half of the questions on, the dataset asks about something else."""

SIGNIFICANT = 0.05
PERMUTATIONS = 999
"""Random splits: the smallest p-value is 0.001, which 14 facets leave below 0.05."""

WORDS = "words"
MAX_WORDS = 2000
"""Words that are compared: the most frequent ones. The rest would hardly occur in both."""

MAX_IMAGES = 2000
"""Images of either dataset that are compared, drawn with the seed: 999 splits of 4,000 images and 2,000
words take a few seconds."""

MAX_BARS = 10
"""Values of a facet that are drawn, the most frequent ones."""


@dataclass(frozen=True)
class Coverage:
    """One facet of two datasets.

    names: its values; counts, reference_counts: int64 [values], how often each occurs. distance:
    total variation; chance: its mean over random splits; p: of no difference, adjusted. missing:
    share of the reference whose values the dataset lacks.
    """

    facet: str
    names: tuple[str, ...]
    counts: Int64Array
    reference_counts: Int64Array
    distance: float
    chance: float
    p: float
    missing: float

    @property
    def excess(self) -> float:
        """The distance beyond chance."""
        return max(0.0, self.distance - self.chance)


def probe_coverage(context: ProbeContext, *, reference: str = "") -> ProbeFinding:
    """reference: a dataset, by name or folder, that stands for what the model will be used on."""
    dataset = _draw_images(context.dataset, context.seed)
    facets = describe_values(dataset)
    if not reference:
        return ProbeFinding(
            finding=(
                "Not measured: no reference dataset was named; the plots show what this dataset "
                "asks about."
            ),
            severity="unmeasured",
            done=(
                f"{len(dataset):,} questions were counted. Name what the model will be used on: "
                "--option unrepresentative-data.reference=DATASET"
            ),
            plots=[_plot_one(facet, table) for facet, table in facets.items()],
        )
    other = _draw_images(load_dataset(reference), context.seed)
    images = min(len(Plan.from_dataset(dataset)), len(Plan.from_dataset(other)))
    if images < MIN_IMAGES:
        return ProbeFinding(
            finding=f"Not measured: {images} images are too few to tell a difference from chance.",
            severity="unmeasured",
            done=f"Both datasets need {MIN_IMAGES} images with questions.",
        )
    compared = compare_coverage(facets, describe_values(other), seed=context.seed)
    faults = sorted(
        (item for item in compared if item.p < SIGNIFICANT),
        key=lambda item: item.excess,
        reverse=True,
    )
    return ProbeFinding(
        finding=_sentence(faults, compared, other),
        severity=worst(["none", *(grade(item.excess, EDGES) for item in faults)]),
        done=(
            f"{len(dataset):,} questions of {dataset.name} were compared with {len(other):,} of "
            f"{other.name} in {count_noun(len(compared), 'facet')}; chance is what "
            f"{PERMUTATIONS} random splits of all their images give."
        ),
        measures=[
            Measure(
                name=f"distance_{item.facet}",
                label=f"Distance: {facet_title(item.facet)}",
                value=item.distance,
                meaning=f"{format_value(item.chance)} by chance; "
                f"{format_value(item.missing)} % of the reference is missing",
            )
            for item in faults
            if item.excess >= EDGES[0][0]
        ],
        tables=[_table(compared)],
        plots=[_plot_both(item, dataset.name, other.name) for item in compared],
    )


FacetCounts = tuple[tuple[str, ...], Float64Array]
"""The values of a facet, and how often each occurs by image: float64 [images, values]."""


def describe_values(dataset: Dataset) -> dict[str, FacetCounts]:
    """Facets that two datasets have in common, and the words of the questions."""
    cluster = np.unique(dataset.samples.image, return_inverse=True)[1]
    facets = describe_samples(dataset)
    facets.pop("frequency")  # relative to the dataset itself
    values = {
        name: _count_codes(codes, cluster)
        for name, codes in facets.items()
        if name in TITLES
    }
    values[WORDS] = _count_words(dataset.samples.question, cluster)
    return values


def compare_coverage(
    own: Mapping[str, FacetCounts], reference: Mapping[str, FacetCounts], *, seed: int
) -> list[Coverage]:
    """Every facet of both, in order."""
    random = np.random.default_rng(seed)
    compared = []
    p_values = []
    for facet in own:
        names = tuple(sorted({*own[facet][0], *reference[facet][0]}))
        own_table = _align(own[facet], names)
        reference_table = _align(reference[facet], names)
        table = np.concatenate([own_table, reference_table])
        is_own = np.arange(len(table)) < len(own_table)
        splits = [is_own, *(random.permutation(is_own) for _ in range(PERMUTATIONS))]
        distances = _distances(table, np.stack(splits))
        # The split as it is counts among the random ones, so that p is never 0.
        p_values.append(float((distances >= distances[0]).mean()))
        counts = own_table.sum(0)
        reference_counts = reference_table.sum(0)
        lacking = reference_counts[counts == 0].sum()
        compared.append(
            Coverage(
                facet=facet,
                names=names,
                counts=counts.astype(np.int64),
                reference_counts=reference_counts.astype(np.int64),
                distance=float(distances[0]),
                chance=float(distances[1:].mean()),
                p=1.0,
                missing=float(lacking / max(reference_counts.sum(), 1)),
            )
        )
    adjusted = adjust_by_holm(p_values)
    return [replace(item, p=p or 0.0) for item, p in zip(compared, adjusted)]


def _distances(table: Float64Array, splits: BoolArray) -> Float64Array:
    """Total variation between both sides of every split, float64 [splits].

    table: float64 [images, values]; splits: bool [splits, images], which images are on the side of
    the dataset.
    """
    own = splits.astype(np.float64) @ table
    reference = table.sum(0) - own
    own_share = own / np.maximum(own.sum(1, keepdims=True), 1)
    reference_share = reference / np.maximum(reference.sum(1, keepdims=True), 1)
    return np.asarray(np.abs(own_share - reference_share).sum(1) / 2)


def _count_codes(codes: Codes, cluster: Int64Array) -> FacetCounts:
    table = np.zeros((int(cluster.max(initial=-1)) + 1, len(codes.names)))
    np.add.at(table, (cluster, codes.codes), 1)
    return tuple(map(str, codes.names)), table


def _count_words(questions: Sequence[str], cluster: Int64Array) -> FacetCounts:
    """The most frequent words of the questions."""
    texts = [split_words(text) for text in questions]
    frequency = Counter(word for words in texts for word in words)
    names = [word for word, _ in frequency.most_common(MAX_WORDS)]
    place = {word: number for number, word in enumerate(names)}
    table = np.zeros((int(cluster.max(initial=-1)) + 1, len(names)))
    for image, words in zip(cluster.tolist(), texts):
        for word in words:
            if word in place:
                table[image, place[word]] += 1
    return tuple(names), table


def _align(counts: FacetCounts, names: Sequence[str]) -> Float64Array:
    """The table with a column for each of these names."""
    own_names, table = counts
    place = {name: number for number, name in enumerate(names)}
    aligned = np.zeros((len(table), len(names)))
    aligned[:, [place[name] for name in own_names]] = table
    return aligned


def _draw_images(dataset: Dataset, seed: int) -> Dataset:
    """The dataset, or MAX_IMAGES of its images with all their questions."""
    plan = Plan.from_dataset(dataset)
    if len(plan) <= MAX_IMAGES:
        return dataset
    drawn = Plan.from_dataset(dataset, limit=MAX_IMAGES, seed=seed)
    return dataset.take(np.sort(drawn.rows))


def _sentence(
    faults: Sequence[Coverage], compared: Sequence[Coverage], other: Dataset
) -> str:
    if not faults or faults[0].excess < EDGES[0][0]:
        farthest = max(compared, key=lambda item: item.excess)
        return (
            f"The dataset asks about the same as {other.name}, as far as can be told: the largest "
            f"difference, {format_value(farthest.excess)} points by {facet_title(farthest.facet)}, "
            "is small or may be chance."
        )
    first = faults[0]
    many = sum(item.excess >= EDGES[0][0] for item in faults)
    more = f", and {many - 1} of {len(compared)} facets differ too" if many > 1 else ""
    return (
        f"The dataset does not stand for {other.name}: by {facet_title(first.facet)}, "
        f"{format_value(first.distance)} % of its questions would have to be others{more}."
    )


def _table(compared: Sequence[Coverage]) -> ProbeTable:
    rows: list[list[Cell]] = []
    for item in sorted(compared, key=lambda item: item.excess, reverse=True):
        missing_names = [
            name
            for name, count, other in zip(
                item.names, item.counts, item.reference_counts
            )
            if other and not count
        ]
        rows.append(
            [
                facet_title(item.facet),
                item.distance,
                item.chance,
                item.p,
                item.missing,
                ", ".join(missing_names[:MAX_BARS]),
            ]
        )
    return ProbeTable(
        title="Distance from the reference by facet, the farthest first",
        columns=[
            "facet",
            "distance",
            "by chance",
            "p (Holm)",
            "missing",
            "values that are missing",
        ],
        units=["text", "fraction", "fraction", "p", "fraction", "text"],
        rows=rows,
        note="Missing: the share of the reference whose values the dataset does not have at all.",
    )


def _plot_one(facet: str, counts: FacetCounts) -> ProbePlot:
    names, table = counts
    total = table.sum(0)
    series = _to_series("this dataset", names, total, np.argsort(-total, kind="stable"))
    title = f"Questions by {facet_title(facet)}"
    return ProbePlot(title=title, kind="bars", series=[series], y="share")


def _plot_both(item: Coverage, name: str, reference: str) -> ProbePlot:
    both = item.counts + item.reference_counts
    order = np.argsort(-both, kind="stable")[: int((both > 0).sum())]
    series = [
        _to_series(name, item.names, item.counts, order),
        _to_series(
            f"{reference} (reference)", item.names, item.reference_counts, order
        ),
    ]
    title = f"Questions by {facet_title(item.facet)}"
    return ProbePlot(title=title, kind="bars", series=series, y="share")


def _to_series(
    name: str,
    values: Sequence[str],
    counts: Int64Array | Float64Array,
    order: Int64Array,
) -> PlotSeries:
    """The shares of the first values of an order."""
    whole = max(float(counts.sum()), 1.0)
    points = [
        PlotPoint(values[place], float(counts[place]) / whole)
        for place in order[:MAX_BARS].tolist()
    ]
    return PlotSeries(name, points)


UNREPRESENTATIVE_DATA = Probe(
    name="unrepresentative-data",
    title="Unrepresentative data",
    risks=("atlas-unrepresentative-data",),
    measured=(
        "What the questions are about (category, occlusion, size, position, mask type, number of "
        "targets, form, length and words of the question), beside a reference dataset that stands "
        "for what the model will be used on: the share of questions that would have to be others."
    ),
    blind_spots=(
        "What no annotation says: light, place, culture, age of the photographs, who is shown. "
        "Differences between facets together that each facet alone does not have. A reference "
        "dataset that is itself unlike the use."
    ),
    thresholds=state_edges(
        EDGES,
        "a facet differs from the reference by {} points or more beyond chance, and p (Holm) < 0.05",
    ),
    run=probe_coverage,
    needs_model=False,
)

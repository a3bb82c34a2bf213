"""Level and power of the paired tests, by simulation: `python -m bench.significance`.

Prints the tables of docs/benchmarks/intervals.md about comparing two runs. The numbers depend on the seeds below only.

`few`: two runs of the same quality, of which B has items in a few images only (as a model that rarely predicts a region
has a precision from few images). Before: the rule of ten images was applied to the larger run, and an undefined
variance was taken for no variation. Shown is the share of pairs called significant at 0.05.
`power`: cIoU of two runs, by the t interval of the jackknife and by the permutation test.
"""

import argparse
from collections.abc import Callable

import numpy as np

from maskwise.arrays import BoolArray, Float64Array
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    MIN_IMAGES,
    influence,
    jackknife,
    ratio_of_sums,
    t_p_value,
)
from maskwise.protocols.metrics import MetricTerms
from maskwise.protocols.significance import Comparison, compare_metric, t_tests

LEVEL = 0.05
FEW = (1, 2, 3, 5, 10, 20, 50)
"""Images with an item in run B; run A has items in 100."""


def few_images_table(pairs: int) -> list[str]:
    """The error of the test under the null hypothesis, where one run rests on few images."""
    lines = ["| images of B | before | after | pairs tested |", "|---|---|---|---|"]
    for images in FEW:
        a, b, groups = _few_pairs(np.random.default_rng([1, images]), pairs, images)
        before = _p_by_larger_run(a, b, groups) < LEVEL
        after = compare_metric(a, b, groups)
        tested = np.mean([test.p_value is not None for test in after])
        lines.append(
            f"| {images} | {before.mean():.3f} | {_significant(after).mean():.3f} | {tested:.0%} |"
        )
    return lines


def _few_pairs(
    generator: np.random.Generator, pairs: int, images: int
) -> tuple[MetricTerms, MetricTerms, ImageGroups]:
    """Precision of two runs with the same expected value 0.6: A has one region in each of 100 images, B in the first
    `images` of them. Easy images are easy for both.
    """
    count = 100
    chance = generator.beta(1.2, 0.8, (pairs, count))
    regions_a = np.ones((pairs, count), np.int64)
    regions_b = np.zeros((pairs, count), np.int64)
    regions_b[:, :images] = 1
    hits_a = generator.binomial(regions_a, chance)
    hits_b = generator.binomial(regions_b, chance)
    groups = ImageGroups(
        np.repeat(np.arange(pairs), count), np.arange(pairs * count), pairs
    )
    a = MetricTerms(hits_a.ravel(), regions_a.ravel())
    b = MetricTerms(hits_b.ravel(), regions_b.ravel())
    return a, b, groups


def _p_by_larger_run(
    a: MetricTerms, b: MetricTerms, groups: ImageGroups
) -> Float64Array:
    """The p-values as they were: ten images in the larger run; the sign test where a variance is undefined."""
    ratios = [ratio_of_sums(metric, groups) for metric in (a, b)]
    with np.errstate(all="ignore"):
        influences = influence(b, groups, ratios[1]) - influence(a, groups, ratios[0])
        images = np.maximum(ratios[0].images, ratios[1].images)
        effective = np.minimum(ratios[0].effective_images, ratios[1].effective_images)
        variance, freedom = jackknife(influences, groups, images, effective)
        error = np.sqrt(variance)
        by_t = t_p_value((ratios[1].ratio - ratios[0].ratio) / error, freedom)
    p_value = np.where(error > 0, by_t, 0.5 ** (images - 1))
    return np.where(images >= MIN_IMAGES, p_value, 1.0)


Draw = Callable[[np.random.Generator, int, int, float], tuple[Float64Array, ...]]
"""From a generator, pairs of runs, images and the effect: intersections and unions of A and of B, [pairs, images]."""


def draw_ciou(
    spread: float, *, worse_masks: float = 0.0
) -> Callable[[np.random.Generator, int, int, float], tuple[Float64Array, ...]]:
    """Targets of log-normal size (`spread`); two runs whose IoU has a common and an own part. effect: added to the
    ability of B. worse_masks: further noise of B's ability, which leaves both runs unlike each other.
    """

    def draw(
        generator: np.random.Generator, pairs: int, images: int, effect: float
    ) -> tuple[Float64Array, ...]:
        shape = (pairs, images)
        size = np.exp(8 + spread * generator.normal(size=shape))
        ability = 0.6 + generator.normal(size=shape)
        columns = []
        for shift, noise in ((0.0, 0.8), (effect, 0.8 + worse_masks)):
            own = noise * generator.normal(size=shape)
            iou = 1 / (1 + np.exp(-(ability + shift + own)))
            missed = generator.random(shape) < 0.1
            iou = np.where(missed, 0.0, iou)
            union = size * np.where(missed, 2.0, 1.0)
            columns += [iou * union, union]
        return tuple(columns)

    return draw


CASES: tuple[tuple[str, Draw, float], ...] = (
    ("sizes vary, equal runs", draw_ciou(1.2), 0.0),
    ("sizes vary widely, equal runs", draw_ciou(1.8), 0.0),
    ("sizes vary, B better", draw_ciou(1.2), 0.8),
    ("sizes vary widely, B better", draw_ciou(1.8), 1.2),
)


def power_table(pairs: int) -> list[str]:
    """Share of pairs of runs whose cIoU is called different, by both tests."""
    lines = [
        "| runs | images | t interval | permutation | width of the interval, permutation / t |",
        "|---|---|---|---|---|",
    ]
    for name, draw, effect in CASES:
        for images in (20, 50, 100, 200):
            generator = np.random.default_rng([2, images])
            columns = draw(generator, pairs, images, effect)
            top_a, bottom_a, top_b, bottom_b = (column.ravel() for column in columns)
            groups = ImageGroups(
                np.repeat(np.arange(pairs), images), np.arange(pairs * images), pairs
            )
            a = MetricTerms(top_a, bottom_a)
            b = MetricTerms(top_b, bottom_b)
            by_t = t_tests(a, b, groups)
            by_permutation = compare_metric(a, b, groups)
            widths = _widths(by_permutation) / _widths(by_t)
            lines.append(
                f"| {name} | {images} | {_significant(by_t).mean():.3f} | "
                f"{_significant(by_permutation).mean():.3f} | {np.median(widths):.2f} |"
            )
    return lines


def unlike_table(pairs: int) -> list[str]:
    """Coverage of the interval of the difference where the runs are not exchangeable: B has noisier masks."""
    lines = [
        "| images | covered, t interval | covered, permutation |",
        "|---|---|---|",
    ]
    draw = draw_ciou(1.2, worse_masks=1.2)
    top_a, bottom_a, top_b, bottom_b = draw(np.random.default_rng(3), 100, 20_000, 0.2)
    truth = top_b.sum() / bottom_b.sum() - top_a.sum() / bottom_a.sum()
    for images in (20, 50, 100, 200):
        columns = draw(np.random.default_rng([4, images]), pairs, images, 0.2)
        top_a, bottom_a, top_b, bottom_b = (column.ravel() for column in columns)
        groups = ImageGroups(
            np.repeat(np.arange(pairs), images), np.arange(pairs * images), pairs
        )
        a = MetricTerms(top_a, bottom_a)
        b = MetricTerms(top_b, bottom_b)
        by_t = _covers(t_tests(a, b, groups), truth)
        by_permutation = _covers(compare_metric(a, b, groups), truth)
        lines.append(f"| {images} | {by_t:.3f} | {by_permutation:.3f} |")
    return lines


def _significant(comparisons: list[Comparison]) -> BoolArray:
    p_values = [test.p_value for test in comparisons]
    return np.array([p is not None and p < LEVEL for p in p_values])


def _widths(comparisons: list[Comparison]) -> Float64Array:
    ends = [
        (test.interval.low or 0.0, test.interval.high or 0.0) for test in comparisons
    ]
    return np.diff(np.array(ends), axis=1)[:, 0]


def _covers(comparisons: list[Comparison], truth: float) -> float:
    hits = 0
    for test in comparisons:
        low = test.interval.low
        high = test.interval.high
        hits += low is not None and high is not None and low <= truth <= high
    return hits / len(comparisons)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pairs", type=int, default=1000, help="simulated pairs of runs"
    )
    pairs = parser.parse_args().pairs
    print("Two runs of the same precision, B with regions in few images\n")
    print("\n".join(few_images_table(pairs)))
    print("\ncIoU of two runs: share called different\n")
    print("\n".join(power_table(pairs)))
    print("\ncIoU of two unlike runs\n")
    print("\n".join(unlike_table(pairs)))


if __name__ == "__main__":
    main()

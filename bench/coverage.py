"""Coverage of the 95 % intervals and error rates of the tests, by simulation: `python -m bench.coverage`.

Prints the tables of docs/benchmarks/intervals.md. The numbers depend on the seeds below only. `--bootstrap` adds the
percentile, BCa and studentised bootstrap for comparison (slower).
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from bench.sizes import choose
from maskwise.arrays import Float64Array
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import estimate
from maskwise.protocols.metrics import MetricTerms
from maskwise.protocols.significance import adjust_p_values, compare_metric

IMAGES = (10, 20, 50, 100, 200, 1000)
POPULATION = choose(2_000_000, 2_000)
RESAMPLES = choose(600, 20)
Sums = tuple[Float64Array, Float64Array]
"""Numerator and denominator of every image."""


@dataclass(frozen=True)
class Case:
    """A population of images. draw(generator, images) gives the sums of independent images; truth: the true value."""

    name: str
    draw: Callable[[np.random.Generator, int], Sums]
    truth: float | None = None
    unit: str = "fraction"


def masks(
    *, skill: float, missed: float, spread: float, metric: str, questions: float = 2.0
) -> Callable[[np.random.Generator, int], Sums]:
    """Questions about targets of log-normal size (`spread`), some of them missed, the rest segmented with some IoU."""

    def draw(generator: np.random.Generator, images: int) -> Sums:
        count = generator.poisson(questions - 1, images) + 1
        image = np.repeat(np.arange(images), count)
        shared = generator.normal(size=images)[image]
        own = generator.normal(size=len(image))
        size = np.exp(8 + spread * (0.55 * shared + 0.84 * own))
        ability = (
            skill
            + 0.4 * np.log(size / np.exp(8)) / spread
            + 0.7 * generator.normal(size=images)[image]
        )
        iou = 1 / (
            1 + np.exp(-1.5 * (ability + 0.8 * generator.normal(size=len(image))))
        )
        miss = generator.random(len(image)) < missed
        iou = np.where(miss, 0.0, iou)
        union = size * np.where(miss, 2.0, 1.0)
        top, bottom = (
            (iou * union, union) if metric == "ciou" else (iou, np.ones(len(iou)))
        )
        return np.bincount(image, top, images), np.bincount(image, bottom, images)

    return draw


def proportion(
    share: float, correlation: float, questions: float
) -> Callable[[np.random.Generator, int], Sums]:
    """Right or wrong answers, correlated within an image (beta-binomial)."""

    def draw(generator: np.random.Generator, images: int) -> Sums:
        count = generator.poisson(questions - 1, images) + 1
        scale = 1 / correlation - 1
        chance = generator.beta(share * scale, (1 - share) * scale, images)
        return generator.binomial(count, chance).astype(float), count.astype(float)

    return draw


def counts(mean: float) -> Callable[[np.random.Generator, int], Sums]:
    """Number of masks too many or too few per question."""

    def draw(generator: np.random.Generator, images: int) -> Sums:
        count = generator.poisson(1.0, images) + 1
        return generator.poisson(mean * count * generator.gamma(1, 1, images)).astype(
            float
        ), count.astype(float)

    return draw


CASES = (
    Case("gIoU 0.58", masks(skill=0.6, missed=0.1, spread=1.2, metric="giou")),
    Case("gIoU 0.08", masks(skill=-2, missed=0.3, spread=1.2, metric="giou")),
    Case(
        "gIoU 0.94, few failures",
        masks(skill=3, missed=0.02, spread=1.2, metric="giou"),
    ),
    Case("cIoU 0.58", masks(skill=0.6, missed=0.1, spread=1.2, metric="ciou")),
    Case(
        "cIoU 0.58, 5 questions",
        masks(skill=0.6, missed=0.1, spread=1.0, metric="ciou", questions=5),
    ),
    Case(
        "cIoU 0.42, sizes vary widely",
        masks(skill=-0.5, missed=0.1, spread=1.6, metric="ciou"),
    ),
    Case("cIoU 0.93", masks(skill=2, missed=0.0, spread=1.4, metric="ciou")),
    Case(
        "cIoU 0.88, 3 % large failures",
        masks(skill=2, missed=0.03, spread=1.4, metric="ciou"),
    ),
    Case("proportion 0.5", proportion(0.5, 0.2, 2), 0.5),
    Case("proportion 0.9", proportion(0.9, 0.2, 2), 0.9),
    Case("proportion 0.97", proportion(0.97, 0.2, 2), 0.97),
    Case("proportion 0.97, 1 question", proportion(0.97, 0.2, 1), 0.97),
    Case("proportion 0.97, correlated", proportion(0.97, 0.6, 4), 0.97),
    Case("proportion 0.01", proportion(0.01, 0.2, 2), 0.01),
    Case("mean count 0.1", counts(0.1), 0.1, "count"),
    Case("mean count 1", counts(1.0), 1.0, "count"),
)


def covered(case: Case, images: int, repeats: int, seed: int) -> float:
    """Share of experiments whose interval contains the true value; an experiment without an interval counts as not."""
    generator = np.random.default_rng([seed, images])
    y, x = case.draw(generator, images * repeats)
    groups = ImageGroups(
        np.repeat(np.arange(repeats), images), np.arange(len(y)), repeats
    )
    truth = true_value(case)
    hits = 0
    for found in estimate(
        MetricTerms(y, x, unit="count" if case.unit == "count" else "fraction"), groups
    ):
        low = found.interval.low
        high = found.interval.high
        hits += low is not None and high is not None and low <= truth <= high
    return hits / repeats


def true_value(case: Case) -> float:
    """The value over the whole population."""
    if case.truth is not None:
        return case.truth
    y, x = case.draw(np.random.default_rng(99), POPULATION)
    return float(y.sum() / x.sum())


def bootstrap_coverage(
    case: Case, images: int, repeats: int, seed: int
) -> Iterator[float]:
    """Coverage of percentile, BCa and studentised intervals from resampled images."""
    generator = np.random.default_rng([seed, images])
    truth = true_value(case)
    hits = np.zeros(3)
    for _ in range(repeats):
        y, x = case.draw(generator, images)
        hits += [
            low <= truth <= high for low, high in bootstrap_intervals(generator, y, x)
        ]
    yield from hits / repeats


def bootstrap_intervals(
    generator: np.random.Generator, y: Float64Array, x: Float64Array
) -> Iterator[tuple[float, float]]:
    """Percentile, BCa (Efron 1987) and studentised intervals of sum(y) / sum(x)."""
    n = len(y)
    ratio = y.sum() / x.sum()
    weights = generator.multinomial(n, np.full(n, 1 / n), RESAMPLES)
    top, bottom, yy, xy, xx = (weights @ np.stack([y, x, y * y, x * y, x * x], 1)).T
    drawn = top / bottom
    tails = np.array([0.025, 0.975])
    yield tuple(np.quantile(drawn, tails))
    left_out = (y.sum() - y) / (x.sum() - x)
    change = left_out.mean() - left_out
    skew = (change**3).sum() / (6 * (change**2).sum() ** 1.5 + 1e-300)
    bias = norm.ppf(((drawn < ratio).sum() + 0.5) / (RESAMPLES + 1))
    shifted = bias + norm.ppf(tails)
    yield tuple(np.quantile(drawn, norm.cdf(bias + shifted / (1 - skew * shifted))))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(yy - 2 * drawn * xy + drawn**2 * xx, 0)) / bottom
        statistic = (drawn - ratio) / error
    high, low = np.quantile(statistic[np.isfinite(statistic)], tails)
    spread = np.sqrt(((y - ratio * x) ** 2).sum()) / x.sum()
    yield ratio - low * spread, ratio - high * spread


def null_pages(pages: int, images: int, seed: int) -> tuple[float, float, float, float]:
    """Pages that compare two equal models in 40 slices under gIoU and cIoU.

    Returns the shares of cIoU differences with p < 0.05 and with a 95 % interval that excludes 0, and the shares of
    pages with any p < 0.05 before and after the adjustment.
    """
    generator = np.random.default_rng([seed, images])
    rejected = []
    excluded = []
    plain = 0
    adjusted = 0
    for _ in range(pages):
        cluster = np.repeat(np.arange(images), 2)
        models = list(equal_models(generator, images))
        p_values: list[float | None] = []
        for slicing in range(8):
            codes = generator.integers(0, 5, 2 * images) if slicing % 2 else cluster % 5
            groups = ImageGroups(codes, cluster, 5)
            for name in ("giou", "ciou"):
                p_values += [
                    one.p_value
                    for one in compare_metric(*(m[name] for m in models), groups)
                ]
        whole = compare_metric(
            *(model["ciou"] for model in models), ImageGroups.single(cluster)
        )[0]
        rejected.append((whole.p_value or 1.0) < 0.05)
        excluded.append(
            (whole.interval.low or 0.0) > 0 or (whole.interval.high or 0.0) < 0
        )
        plain += any(p is not None and p < 0.05 for p in p_values)
        adjusted += any(p is not None and p < 0.05 for p in adjust_p_values(p_values))
    return (
        float(np.mean(rejected)),
        float(np.mean(excluded)),
        plain / pages,
        adjusted / pages,
    )


def equal_models(
    generator: np.random.Generator, images: int
) -> Iterator[dict[str, MetricTerms]]:
    """Two models of the same quality on the same two questions per image."""
    size = np.exp(
        generator.normal(8, 1.1, (images, 2)) + generator.normal(0, 0.6, (images, 1))
    )
    skill = generator.normal(0.4, 1, (images, 2)) + generator.normal(
        0, 0.7, (images, 1)
    )
    for _ in range(2):
        iou = 1 / (1 + np.exp(-skill - generator.normal(0, 1.1, (images, 2))))
        iou = (iou * (generator.random((images, 2)) > 0.1)).ravel()
        yield {
            "giou": MetricTerms(iou, np.ones(len(iou))),
            "ciou": MetricTerms(iou * size.ravel(), size.ravel()),
        }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats", type=int, default=4000, help="experiments per cell"
    )
    parser.add_argument(
        "--bootstrap", action="store_true", help="compare with the bootstrap"
    )
    options = parser.parse_args()
    print(
        "| population | " + " | ".join(f"{images} images" for images in IMAGES) + " |"
    )
    print("|---|" + "---|" * len(IMAGES))
    for case in CASES:
        cells = [
            f"{covered(case, images, options.repeats, seed=0):.3f}" for images in IMAGES
        ]
        print(f"| {case.name} | " + " | ".join(cells) + " |", flush=True)
    print(
        "\n| images | p < 0.05 | interval excludes 0 | pages with any p < 0.05 | after adjustment |"
    )
    print("|---|---|---|---|---|")
    for images in (60, 200):
        cells = [
            f"{share:.3f}" for share in null_pages(options.repeats // 8, images, seed=1)
        ]
        print(f"| {images} | " + " | ".join(cells) + " |", flush=True)
    if options.bootstrap:
        print(
            "\n| population, images | percentile | BCa | studentised |\n|---|---|---|---|"
        )
        for case in CASES[:8]:
            for images in (20, 50, 200):
                cells = [
                    f"{share:.3f}"
                    for share in bootstrap_coverage(
                        case, images, options.repeats // 4, 2
                    )
                ]
                print(
                    f"| {case.name}, {images} | " + " | ".join(cells) + " |", flush=True
                )


if __name__ == "__main__":
    main()

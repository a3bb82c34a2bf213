"""Paired tests between runs: calibrated under the null, consistent with their intervals, adjusted for their number."""

import numpy as np
import pytest

from bench.significance import few_images_table
from maskwise.errors import ProtocolError
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.metrics import MetricTerms
from maskwise.protocols.significance import (
    adjust_by_holm,
    adjust_p_values,
    compare_metric,
    t_tests,
)


def mean_of(values):
    return MetricTerms(np.asarray(values, float), np.ones(len(values)))


def compare(a, b, cluster=None):
    return compare_metric(
        a,
        b,
        ImageGroups.single(np.arange(len(a.numerator)) if cluster is None else cluster),
    )[0]


def test_a_run_does_not_differ_from_itself():
    values = np.random.default_rng(6).random(200)
    found = compare(mean_of(values), mean_of(values))
    assert (
        found.difference,
        found.interval.low,
        found.interval.high,
        found.p_value,
    ) == (
        0.0,
        None,
        None,
        1.0,
    )


def test_a_clear_difference_is_found_and_noise_is_not():
    generator = np.random.default_rng(7)
    base = generator.random(400)
    better = compare(
        mean_of(base), mean_of(base + 0.02 + generator.normal(0, 0.05, 400))
    )
    assert better.difference == pytest.approx(0.02, abs=0.01)
    assert better.interval.low > 0
    assert better.p_value < 0.01
    same = compare(mean_of(base), mean_of(base + generator.normal(0, 0.05, 400)))
    assert same.interval.low < 0 < same.interval.high


def test_difference_of_means_is_the_paired_t_test():
    # scipy.stats.ttest_rel; the degrees of freedom are at most n - 1, so p is never smaller.
    generator = np.random.default_rng(8)
    a = generator.random(300)
    b = a + generator.normal(0.01, 0.1, 300)
    d = b - a
    statistic = d.mean() / (d.std(ddof=1) / np.sqrt(300))
    found = compare(mean_of(a), mean_of(b))
    reach = (found.interval.high - found.interval.low) / 2
    assert found.difference / reach * 1.968 == pytest.approx(statistic, rel=0.01)


def test_the_interval_of_a_difference_of_shares_stays_between_minus_one_and_one():
    # 11 images; B fails on all but one, so that a t interval would reach -1.11 or below.
    a = np.ones(11)
    b = np.zeros(11)
    b[0] = 1.0
    found = compare(mean_of(a), mean_of(b))
    assert found.difference == pytest.approx(-10 / 11)
    assert found.interval.low == -1.0
    assert -1 < found.interval.high < 0
    other = compare(mean_of(b), mean_of(a))
    assert (other.interval.low, other.interval.high) == (-found.interval.high, 1.0)


def test_the_interval_of_a_difference_of_counts_is_not_cut():
    counts = np.arange(12) * 10.0
    found = compare(mean_of(np.zeros(12)), mean_of(counts))
    assert found.interval.low > 1


def null_pairs(generator, pairs, images, questions):
    """Two exchangeable models on the same images: intersections and unions, [pairs x images x questions]."""
    shape = (pairs, images, questions)
    size = np.exp(
        generator.normal(8, 1.1, shape) + generator.normal(0, 0.6, (pairs, images, 1))
    )
    skill = generator.normal(0.4, 1, shape) + generator.normal(
        0, 0.7, (pairs, images, 1)
    )
    for _ in range(2):
        iou = 1 / (
            1
            + np.exp(
                -skill - generator.normal(0, 1, shape) - generator.normal(0, 0.5, shape)
            )
        )
        iou *= generator.random(shape) > 0.1
        yield iou, size


@pytest.mark.parametrize("images", [20, 100])
def test_ciou_difference_is_calibrated_and_agrees_with_its_interval(images):
    (iou_a, size_a), (iou_b, size_b) = null_pairs(
        np.random.default_rng(9), 500, images, 2
    )
    a, b = (
        MetricTerms((iou * size).ravel(), size.ravel())
        for iou, size in ((iou_a, size_a), (iou_b, size_b))
    )
    groups = ImageGroups(
        np.repeat(np.arange(500), 2 * images),
        np.repeat(np.arange(500 * images), 2),
        500,
    )
    found = compare_metric(a, b, groups)
    assert 0.015 <= np.mean([one.p_value < 0.05 for one in found]) <= 0.065
    for one in found:
        excludes = one.interval.low > 0 or one.interval.high < 0
        assert excludes == (one.p_value < 0.05)


def test_pages_of_equal_models_seldom_show_a_significant_slice():
    """A page has 40 slices with gIoU and cIoU each. Without adjustment most pages show a significant one."""
    generator = np.random.default_rng(10)
    pages = 40
    images = 120
    plain = 0
    marked = 0
    for _ in range(pages):
        models = list(null_pairs(generator, 1, images, 2))
        cluster = np.repeat(np.arange(images), 2)
        p_values = []
        for slicing in range(8):
            codes = generator.integers(0, 5, 2 * images) if slicing % 2 else cluster % 5
            groups = ImageGroups(codes, cluster, 5)
            for parts in (
                [mean_of(iou.ravel()) for iou, _ in models],
                [
                    MetricTerms((iou * size).ravel(), size.ravel())
                    for iou, size in models
                ],
            ):
                p_values += [one.p_value for one in compare_metric(*parts, groups)]
        plain += min(p_values) < 0.05
        marked += min(adjust_p_values(p_values)) < 0.05
    assert plain / pages > 0.4
    assert marked / pages <= 0.06


def test_few_images_have_no_p_value():
    found = compare(mean_of(np.zeros(9)), mean_of(np.linspace(0, 1, 9)))
    assert (found.p_value, found.interval.low) == (None, None)
    assert found.difference == pytest.approx(0.5)


def test_a_difference_without_variation_has_the_p_value_of_the_sign_test():
    found = compare(mean_of(np.zeros(12)), mean_of(np.ones(12)))
    assert found.interval.low is None
    assert found.p_value == pytest.approx(2 * 0.5**12)


def test_slices_compare_their_own_samples():
    found = compare_metric(
        mean_of(np.zeros(40)),
        mean_of(np.repeat([0.0, 1.0], 20)),
        ImageGroups(np.repeat([0, 1], 20), np.arange(40), 3),
    )
    assert [one.difference for one in found] == [0.0, 1.0, None]
    assert [one.images for one in found] == [20, 20, 0]


def test_runs_over_other_samples_cannot_be_paired():
    with pytest.raises(ProtocolError, match="cannot be paired"):
        compare(mean_of([1.0]), mean_of([1.0, 2.0]))
    empty = compare(mean_of([]), mean_of([]))
    assert (empty.a, empty.difference, empty.p_value) == (None, None, None)


def test_adjusted_p_values_by_hand():
    # Sorted .01, .03, .04: times 3/1, 3/2, 3/3 = .03, .045, .04, and never above the next one.
    assert adjust_p_values([0.01, 0.04, None, 0.03]) == pytest.approx(
        [0.03, 0.04, None, 0.04]
    )
    assert adjust_p_values([0.9, 0.8]) == pytest.approx([0.9, 0.9])
    assert adjust_p_values([]) == []


def precision_of(hits, regions):
    return MetricTerms(np.asarray(hits, float), np.asarray(regions, float))


@pytest.mark.parametrize("images", [1, 2, 3, 5, 9])
def test_a_run_that_rests_on_few_images_has_no_p_value(images):
    """Run A has a region in each of 50 images, run B in a few of them: B has hardly a variance."""
    generator = np.random.default_rng(11)
    hits = (generator.random(50) < 0.5).astype(float)
    regions_of_b = (np.arange(50) < images).astype(float)
    a = precision_of(hits, np.ones(50))
    b = precision_of(regions_of_b, regions_of_b)
    for first, second in ((a, b), (b, a)):
        compared = compare(first, second)
        assert compared.p_value is None
        assert compared.interval.low is None
        assert compared.interval.method == "fewer than 10 images"


def test_an_image_that_is_the_whole_denominator_leaves_no_p_value():
    # y without x: B has a value in every image, but the denominator of a single one.
    regions = np.zeros(20)
    regions[0] = 5.0
    b = precision_of(np.ones(20), regions)
    compared = compare(precision_of(np.ones(20), np.ones(20)), b)
    assert compared.interval.method == "undefined without one of the images"
    assert compared.p_value is None


def test_a_difference_that_is_rounding_is_none():
    # 0.1 + 0.2 is not 0.3: the sums differ in the last digit in every image.
    a = mean_of(np.full(40, 0.1 + 0.2))
    b = mean_of(np.full(40, 0.3))
    assert a.value() != b.value()
    compared = compare(a, b)
    assert (compared.difference, compared.p_value) == (0.0, 1.0)
    values = np.random.default_rng(12).random(40)
    other = compare(mean_of(values), mean_of(values * (1 + 1e-16) + 1e-16))
    assert other.p_value == 1.0


def test_the_permutation_test_of_ciou_has_more_power_than_the_t_interval():
    generator = np.random.default_rng(13)
    shape = (200, 60)
    size = np.exp(generator.normal(8, 1.6, shape))
    base = generator.normal(0.4, 1, shape)
    metrics = []
    for effect in (0.0, 0.8):
        iou = 1 / (1 + np.exp(-base - effect - generator.normal(0, 0.8, shape)))
        metrics.append(MetricTerms((iou * size).ravel(), size.ravel()))
    groups = ImageGroups(np.repeat(np.arange(200), 60), np.arange(200 * 60), 200)
    by_permutation = compare_metric(*metrics, groups)
    by_t = t_tests(*metrics, groups)
    power = np.mean([test.p_value < 0.05 for test in by_permutation])
    power_of_t = np.mean([test.p_value < 0.05 for test in by_t])
    assert power > 1.25 * power_of_t
    assert all(test.interval.method == "permutation" for test in by_permutation)


def test_the_permutation_test_agrees_with_all_swaps_of_ten_images():
    """2**10 swaps, each scored anew: the share that is at least as far apart as the runs is the p-value."""
    generator = np.random.default_rng(14)
    x = generator.integers(1, 50, (2, 10)).astype(float)
    y = np.floor(x * generator.random((2, 10)))
    pooled = y.sum() / x.sum()
    distance = (y[1] - pooled * x[1]) - (y[0] - pooled * x[0])
    signs = 1 - 2 * ((np.arange(1024)[:, None] >> np.arange(10)) & 1)
    swapped = np.abs(signs @ distance)
    share = np.mean(swapped >= abs(distance.sum()) * (1 - 1e-12))
    compared = compare(MetricTerms(y[0], x[0]), MetricTerms(y[1], x[1]))
    assert compared.p_value == pytest.approx(share, abs=0.015)


def test_holm_by_hand():
    # Sorted .01, .03, .04: times 3, 2, 1 = .03, .06, .04, and never below the one before.
    assert adjust_by_holm([0.01, 0.04, None, 0.03]) == pytest.approx(
        [0.03, 0.06, None, 0.06]
    )
    assert adjust_by_holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert adjust_by_holm([]) == []


def test_the_simulation_of_the_documents_shows_the_repaired_level():
    *_, single, _, _, _, ten, _, _ = few_images_table(40)
    assert single.startswith("| 1 | 1.000 | 0.000 | 0%")
    assert ten.endswith("100% |")

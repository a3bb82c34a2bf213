"""Intervals against closed forms and by simulated coverage."""

import numpy as np
import pytest

from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    FIXED,
    JACKKNIFE,
    MIN_IMAGES,
    NO_VARIATION,
    NOT_DEFINED,
    TOO_FEW_IMAGES,
    WILSON,
    Estimate,
    estimate,
    estimate_composite,
    sum_by_image,
)
from maskwise.protocols.metrics import (
    CompositeMetric,
    MetricTerms,
    undefined_metric,
)


def mean_of(values, **fields):
    return MetricTerms(np.asarray(values, float), np.ones(len(values)), **fields)


def single(metric, cluster=None) -> Estimate:
    return estimate(
        metric,
        ImageGroups.single(
            np.arange(len(metric.numerator)) if cluster is None else cluster
        ),
    )[0]


def ends(found):
    return found.interval.low, found.interval.high


def test_mean_of_independent_samples_has_the_textbook_interval():
    values = np.random.default_rng(1).normal(0.5, 0.1, 4000)
    found = single(mean_of(values))
    reach = 1.96 * values.std() / np.sqrt(4000)
    assert found.interval.method == JACKKNIFE
    assert ends(found) == pytest.approx(
        (values.mean() - reach, values.mean() + reach), abs=reach / 50
    )


def test_proportion_of_single_questions_has_the_wilson_interval():
    # statsmodels: proportion_confint(90, 100, method="wilson") with the t quantile 1.9842 in place of 1.96.
    found = single(mean_of([1] * 90 + [0] * 10))
    z = 1.98422
    p = 0.9
    n = 100
    center = (p + z * z / 2 / n) / (1 + z * z / n)
    reach = z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n) / (1 + z * z / n)
    assert found.interval.method == WILSON
    # The jackknife variance exceeds the binomial one by n / (n - 1).
    assert ends(found) == pytest.approx((center - reach, center + reach), abs=1e-3)


def test_repeated_questions_about_an_image_add_no_information():
    values = np.random.default_rng(1).normal(0.5, 0.1, 100)
    alone = single(mean_of(values))
    repeated = single(mean_of(np.repeat(values, 10)), np.repeat(np.arange(100), 10))
    assert ends(repeated) == pytest.approx(ends(alone))


def test_perfect_and_failed_runs_have_intervals_with_a_width():
    for metric in (
        mean_of(np.ones(50)),
        MetricTerms(np.full(50, 5000), np.full(50, 5000)),
    ):
        found = single(metric)
        assert found.value == found.interval.high == 1.0
        assert 0.9 < found.interval.low < 0.95
    failed = single(MetricTerms(np.zeros(50, np.int64), np.full(50, 5000)))
    assert failed.interval.low == 0.0
    assert 0.05 < failed.interval.high < 0.1


def test_fewer_than_ten_images_have_no_interval_and_say_why():
    for count in (0, 1, MIN_IMAGES - 1):
        found = single(mean_of(np.linspace(0, 1, count)))
        assert ends(found) == (None, None)
        assert found.interval.method == TOO_FEW_IMAGES
    many_questions = single(mean_of(np.linspace(0, 1, 100)), np.arange(100) % 9)
    assert many_questions.interval.method == TOO_FEW_IMAGES
    assert single(mean_of(np.linspace(0, 1, MIN_IMAGES))).interval.method == JACKKNIFE


def test_images_without_a_part_in_the_metric_do_not_count():
    weight = np.array([1] * 9 + [0] * 50)
    found = single(MetricTerms(weight * 0.5, weight))
    assert found.interval.method == TOO_FEW_IMAGES


def test_constant_counts_have_no_interval():
    found = single(mean_of(np.zeros(50), unit="count"))
    assert found.value == 0.0
    assert found.interval.method in (NO_VARIATION, WILSON)


def test_negative_values_are_not_clipped():
    values = np.random.default_rng(2).normal(-0.05, 0.1, 100)
    found = single(mean_of(values))
    assert found.interval.low < values.mean() < found.interval.high < 0.05
    assert found.interval.low < -0.05


def test_value_fixed_by_the_gate_has_no_interval():
    metric = MetricTerms(
        np.ones(40), np.ones(40), empty=0.0, gate=np.repeat([0, 1], 20)
    )
    assert metric.value() == 1.0
    shut, open_ = estimate(metric, ImageGroups(np.repeat([0, 1], 20), np.arange(40), 2))
    assert (shut.value, shut.interval.method) == (0.0, FIXED)
    assert (open_.value, open_.interval.method) == (1.0, WILSON)


def test_groups_have_the_estimates_of_their_samples_alone():
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 4, 500)
    cluster = generator.integers(0, 80, 500)
    union = generator.integers(1, 10_000, 500)
    metric = MetricTerms(
        generator.binomial(union, 0.6), union, epsilon=1e-10, gate=union
    )
    groups = ImageGroups(codes, cluster, 5)
    assert groups.samples().tolist() == np.bincount(codes, minlength=5).tolist()
    assert groups.images()[0] == len(set(cluster[codes == 0].tolist()))
    found = estimate(metric, groups)
    for code in range(4):
        rows = codes == code
        assert found[code].value == pytest.approx(metric.value(rows))
        alone = single(
            MetricTerms(metric.numerator[rows], union[rows], 1e-10, gate=union[rows]),
            cluster[rows],
        )
        assert ends(found[code]) == pytest.approx(ends(alone))
    assert found[4].value is None


def coverage(truth, y, x):
    """Share of the rows of y and x [experiments, images] whose interval contains the true value."""
    experiments, images = y.shape
    groups = ImageGroups(
        np.repeat(np.arange(experiments), images), np.arange(y.size), experiments
    )
    found = estimate(MetricTerms(y.ravel(), x.ravel()), groups)
    return np.mean([low <= truth <= high for low, high in map(ends, found)])


@pytest.mark.parametrize("images", [50, 200])
def test_intervals_of_skewed_ratios_cover(images):
    generator = np.random.default_rng(6)

    def draw(count):
        size = np.exp(generator.normal(8, 1.2, count))
        iou = generator.beta(2, 1.3, count) * (generator.random(count) > 0.1)
        return iou * size, size

    y, x = draw(2_000_000)
    truth = y.sum() / x.sum()
    y, x = draw(2000 * images)
    assert 0.93 <= coverage(truth, y.reshape(-1, images), x.reshape(-1, images)) <= 0.97


@pytest.mark.parametrize("images", [50, 200])
@pytest.mark.parametrize("share", [0.03, 0.1, 0.5, 0.9, 0.97])
def test_intervals_of_clustered_proportions_cover(images, share):
    generator = np.random.default_rng(7)
    correlation = 0.2
    items = generator.integers(1, 4, (2000, images))
    chance = generator.beta(
        *(part * (1 / correlation - 1) for part in (share, 1 - share)), (2000, images)
    )
    assert 0.93 <= coverage(share, generator.binomial(items, chance), items) <= 0.985


# -- composites --------------------------------------------------------------------------------------------------------


def product_of_means(sums):
    """(a / n) * (b / n), a metric that is no ratio of two sums."""
    return sums[:, 0] / sums[:, 2] * sums[:, 1] / sums[:, 2]


def draw_composite(generator, images):
    """Two questions per image whose outcomes depend on the image."""
    cluster = np.repeat(np.arange(images), 2)
    level = generator.uniform(0.2, 1.0, images)[cluster]
    columns = np.stack(
        [generator.random(len(cluster)) < level for _ in range(2)]
        + [np.ones(len(cluster))],
        1,
    ).astype(float)
    return CompositeMetric(columns, product_of_means), cluster


def test_interval_of_a_composite_is_that_of_leaving_out_one_image_after_another():
    metric, cluster = draw_composite(np.random.default_rng(3), 40)
    value = metric.value()
    without = [metric.value(cluster != image) for image in range(40)]
    influence = value - np.array(without)
    variance = 39 / 40 * (influence**2).sum()
    estimated = estimate_composite(metric, sum_by_image(metric.columns, cluster))
    assert estimated.value == pytest.approx(value)
    assert estimated.interval.method == JACKKNIFE
    low, high = ends(estimated)
    assert (low + high) / 2 == pytest.approx(value)
    # The t quantile of Satterthwaite's degrees of freedom is a little above the normal one.
    assert 1.96 < (high - low) / 2 / np.sqrt(variance) < 2.2


def test_interval_of_a_composite_covers():
    generator = np.random.default_rng(5)
    big, _ = draw_composite(generator, 200_000)
    truth = big.value()
    hits = 0
    for _ in range(400):
        metric, cluster = draw_composite(generator, 60)
        sums = sum_by_image(metric.columns, cluster)
        low, high = ends(estimate_composite(metric, sums))
        hits += low <= truth <= high
    # 95 % of 400 is 380, with a standard deviation of 4.4.
    assert 366 <= hits <= 394


def test_composite_of_few_images_or_without_variation_has_no_interval():
    metric, cluster = draw_composite(np.random.default_rng(3), MIN_IMAGES - 1)
    estimated = estimate_composite(metric, sum_by_image(metric.columns, cluster))
    assert estimated.interval.method == TOO_FEW_IMAGES
    constant = CompositeMetric(np.ones((30, 3)), product_of_means)
    estimated = estimate_composite(
        constant, sum_by_image(constant.columns, np.arange(30))
    )
    assert (estimated.value, estimated.interval.method) == (1.0, NO_VARIATION)


def test_composite_over_nothing_is_undefined():
    metric = CompositeMetric(np.zeros((12, 3)), product_of_means)
    with np.errstate(all="ignore"):
        estimated = estimate_composite(
            metric, sum_by_image(metric.columns, np.arange(12))
        )
    assert estimated.value is None


def test_metric_that_the_rule_does_not_define_says_so():
    estimated = single(undefined_metric(30))
    assert estimated.value is None
    assert estimated.interval.method == NOT_DEFINED


def test_ends_of_a_share_never_pass_zero_or_one():
    # Wilson's formula gives 1.0000000000000002 for 10 images with 5 right answers each.
    for images in range(10, 60):
        for questions in (1.0, 3.0, 5.0):
            whole = np.full(images, questions)
            perfect = single(MetricTerms(whole, whole)).interval
            failed = single(MetricTerms(np.zeros(images), whole)).interval
            assert perfect.high == 1.0
            assert failed.low == 0.0

"""Tests of groups against the rest: hand-worked differences, and no finding by chance."""

import numpy as np

from maskwise.probes.group_tests import adjust_tests, compare_groups
from maskwise.protocols import MetricTerms
from maskwise.store import Codes


def codes(values: list[int], names: tuple[str, ...]) -> Codes:
    return Codes(np.array(values, np.int32), names)


def test_the_difference_is_that_of_the_means() -> None:
    values = np.array([1.0, 0.0] * 20)
    facet = codes([0] * 20 + [1] * 20, ("a", "b"))
    terms = MetricTerms(values, np.ones(40))
    first, second = compare_groups("gIoU", terms, np.arange(40), {"half": facet})
    assert (first.group, first.samples, first.images) == ("a", 20, 20)
    assert first.own.value == second.own.value == 0.5
    assert first.difference == 0
    assert first.p == 1


def test_a_group_that_always_fails_differs() -> None:
    values = np.array([0.0] * 20 + [1.0, 1.0, 0.0, 1.0] * 5)
    facet = codes([0] * 20 + [1] * 20, ("a", "b"))
    terms = MetricTerms(values, np.ones(40))
    first, _ = adjust_tests(
        compare_groups("gIoU", terms, np.arange(40), {"half": facet})
    )
    assert first.difference == -0.75
    assert first.significant


def test_questions_about_one_image_are_one_observation() -> None:
    # Twelve images with 20 questions each, which all fail or all succeed: the same difference as
    # with one question each, and no more certain.
    values = np.array(
        [0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1], float
    )
    group = [0] * 10 + [1] * 10
    single = compare_groups(
        "gIoU",
        MetricTerms(values, np.ones(20)),
        np.arange(20),
        {"half": codes(group, ("a", "b"))},
    )
    many = compare_groups(
        "gIoU",
        MetricTerms(values.repeat(20), np.ones(400)),
        np.arange(20).repeat(20),
        {"half": codes(np.repeat(group, 20).tolist(), ("a", "b"))},
    )
    assert many[0].difference == single[0].difference
    assert many[0].p == single[0].p


def test_small_groups_are_not_tested() -> None:
    values = np.ones(40)
    facet = codes([0] * 9 + [1] * 31, ("a", "b"))
    terms = MetricTerms(values, np.ones(40))
    # Nine images in the group leave the rest without a partner as well.
    assert compare_groups("gIoU", terms, np.arange(40), {"half": facet}) == []


def test_a_small_group_that_fails_by_chance_is_no_finding() -> None:
    # Seven of ten questions fail everywhere. A group of ten that all fail is likely among 30 of
    # them; its own variance is 0, which must not make it certain.
    random = np.random.default_rng(0)
    flagged = 0
    for _ in range(40):
        values = (random.random(300) < 0.3).astype(float)
        facet = codes(np.repeat(np.arange(30), 10).tolist(), tuple(map(str, range(30))))
        terms = MetricTerms(values, np.ones(300))
        tests = compare_groups("gIoU", terms, np.arange(300), {"tenth": facet})
        flagged += any(test.significant for test in adjust_tests(tests))
    assert flagged <= 2

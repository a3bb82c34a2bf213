"""Agreement between reviewers: Cohen's kappa and Krippendorff's alpha for nominal values."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Cohen's kappa of two raters; pairs are their values for the same items.

    kappa = (po - pe) / (1 - pe), with the observed agreement po and the agreement pe expected from how often each rater
    uses each value (Cohen 1960, equation 1). None where it is not defined: no pairs, or both use one value only.
    """
    count = len(pairs)
    first = Counter(a for a, _ in pairs)
    second = Counter(b for _, b in pairs)
    # In whole numbers, so that complete agreement on one value is recognised exactly.
    chance = sum(first[value] * second[value] for value in first)
    if not count or chance == count * count:
        return None
    observed = sum(a == b for a, b in pairs) / count
    expected = chance / count**2
    return (observed - expected) / (1 - expected)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha for nominal values; a unit is the values that any number of raters gave one item.

    Missing values are left out of their unit; a unit with fewer than two values does not count (Krippendorff 2011,
    "Computing Krippendorff's Alpha-Reliability", section C). alpha = 1 - Do / De. None where it is not defined: no unit
    with two values, or one value only.
    """
    # A single value has nothing to agree with.
    paired = [Counter(unit) for unit in units if len(unit) > 1]
    totals = sum(paired, Counter[Hashable]())
    n = totals.total()
    observed = sum(
        _disagreeing(unit, unit.total()) / (unit.total() - 1) for unit in paired
    )
    expected = _disagreeing(totals, n)
    return 1 - (n - 1) * observed / expected if expected else None


def _disagreeing(values: Mapping[Hashable, int], total: int) -> int:
    """Ordered pairs of different values."""
    return total * total - sum(count * count for count in values.values())


def interval_alpha(units: Iterable[Sequence[float]]) -> float | None:
    """Krippendorff's alpha for numbers: disagreement is the square of the difference.

    alpha = 1 - Do / De, as in `krippendorff_alpha`. None where it is not defined: no unit with two values, or one value
    only.
    """
    paired = [list(unit) for unit in units if len(unit) > 1]
    values = [value for unit in paired for value in unit]
    n = len(values)
    expected = _squared_differences(values)
    observed = sum(_squared_differences(unit) / (len(unit) - 1) for unit in paired)
    return 1 - (n - 1) * observed / expected if expected else None


def _squared_differences(values: Sequence[float]) -> float:
    """Sum over ordered pairs."""
    return 2 * (len(values) * sum(x * x for x in values) - sum(values) ** 2)

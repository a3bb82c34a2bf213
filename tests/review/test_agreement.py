"""Agreement against published and hand-worked values."""

import pytest

from maskwise.review.agreement import cohen_kappa, krippendorff_alpha


def table(aa: int, ab: int, ba: int, bb: int) -> list[tuple[str, str]]:
    """The pairs of a 2 x 2 table."""
    return [("a", "a")] * aa + [("a", "b")] * ab + [("b", "a")] * ba + [("b", "b")] * bb


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((20, 5, 10, 15), 0.4),  # po = .7, pe = .5
        ((45, 15, 25, 15), 0.1304),  # po = .6, pe = .54
        ((25, 35, 5, 35), 0.2593),  # po = .6, pe = .46
        ((5, 0, 0, 5), 1.0),
        ((0, 5, 5, 0), -1.0),
    ],
)
def test_kappa_of_known_tables(
    cells: tuple[int, int, int, int], expected: float
) -> None:
    assert cohen_kappa(table(*cells)) == pytest.approx(expected, abs=5e-5)


def test_kappa_is_undefined_without_variation() -> None:
    assert cohen_kappa([]) is None
    assert cohen_kappa([("a", "a")] * 7) is None


KRIPPENDORFF_2011 = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]
"""Four observers, twelve units, missing values (Krippendorff 2011, section C)."""


def to_units(lines: list[str]) -> list[list[str]]:
    return [
        [value for value in unit if value != "."]
        for unit in zip(*(line.split() for line in lines))
    ]


def test_alpha_of_the_published_examples() -> None:
    assert krippendorff_alpha(to_units(KRIPPENDORFF_2011)) == pytest.approx(
        0.743, abs=5e-4
    )
    binary = ["0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"]
    assert krippendorff_alpha(to_units(binary)) == pytest.approx(0.095, abs=5e-4)
    nominal = ["a a b b d c c c e d d a", "b a b b b c c c e d d d"]
    assert krippendorff_alpha(to_units(nominal)) == pytest.approx(0.692, abs=5e-4)


def test_alpha_is_undefined_without_pairs_or_variation() -> None:
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([["a"], ["b"]]) is None
    assert krippendorff_alpha([["a", "a"], ["a", "a", "a"]]) is None


def test_alpha_ignores_units_with_one_value() -> None:
    units = to_units(KRIPPENDORFF_2011)
    assert krippendorff_alpha(units) == krippendorff_alpha([*units, ["9"], []])

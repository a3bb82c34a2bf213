"""Relations between boxes, by hand."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.models.photo.box import Box
from maskwise.models.photo.question import Relation
from maskwise.models.photo.relations import MIN_STRENGTH, relation_strength

LEFT = Box(0, 0, 10, 10)
RIGHT = Box(20, 0, 30, 10)
UNDER = Box(0, 30, 10, 40)
TABLE = Box(0, 50, 100, 80)

RELATIONS: tuple[Relation, ...] = get_args(Relation)

OPPOSITES: list[tuple[Relation, Relation]] = [
    ("left_of", "right_of"),
    ("above", "below"),
    ("behind", "in_front_of"),
]

sides = st.integers(0, 100)
sizes = st.integers(1, 50)
boxes = st.builds(
    lambda left, top, width, height: Box(left, top, left + width, top + height),
    sides,
    sides,
    sizes,
    sizes,
)


@pytest.mark.parametrize(
    ("relation", "subject", "anchor"),
    [
        ("left_of", LEFT, RIGHT),
        ("right_of", RIGHT, LEFT),
        ("above", LEFT, UNDER),
        ("below", UNDER, LEFT),
        ("in", Box(2, 2, 4, 4), LEFT),
        ("on", Box(2, -5, 6, 1), LEFT),
        ("on", Box(40, 30, 50, 60), TABLE),
        ("near", LEFT, Box(10, 0, 20, 10)),
        ("touching", Box(2, 2, 4, 4), LEFT),
    ],
)
def test_clear_relations_hold_fully(
    relation: Relation, subject: Box, anchor: Box
) -> None:
    assert relation_strength(relation, subject, anchor) == 1


@pytest.mark.parametrize(
    ("relation", "subject", "anchor"),
    [
        ("left_of", RIGHT, LEFT),
        ("above", UNDER, LEFT),
        ("above", LEFT, LEFT),
        ("on", Box(40, 0, 50, 20), TABLE),  # hovers above
        ("on", Box(120, 30, 130, 60), TABLE),  # stands beside
        ("in", LEFT, Box(2, 2, 4, 4)),
        ("in_front_of", Box(0, 0, 10, 5), LEFT),
        ("near", LEFT, Box(200, 200, 210, 210)),
        ("touching", LEFT, RIGHT),
    ],
)
def test_wrong_relations_do_not_hold(
    relation: Relation, subject: Box, anchor: Box
) -> None:
    assert relation_strength(relation, subject, anchor) == 0


def test_nearness_falls_with_the_distance() -> None:
    touching = relation_strength("near", LEFT, Box(10, 0, 20, 10))
    close = relation_strength("near", LEFT, Box(11, 0, 21, 10))
    apart = relation_strength("near", LEFT, RIGHT)
    assert touching > close > apart > 0


def test_boxes_in_other_rows_are_less_left_of_each_other() -> None:
    assert relation_strength("left_of", LEFT, Box(20, 40, 30, 50)) == 0.8


def test_boxes_that_only_meet_touch_a_little() -> None:
    assert relation_strength("touching", LEFT, Box(10, 0, 20, 10)) == MIN_STRENGTH


@pytest.mark.parametrize("relation", RELATIONS)
@given(subject=boxes, anchor=boxes)
def test_strengths_lie_between_0_and_1(
    relation: Relation, subject: Box, anchor: Box
) -> None:
    assert 0 <= relation_strength(relation, subject, anchor) <= 1


@pytest.mark.parametrize(("relation", "opposite"), OPPOSITES)
@given(first=boxes, second=boxes)
def test_opposites_are_the_same_from_the_other_side(
    relation: Relation, opposite: Relation, first: Box, second: Box
) -> None:
    if relation == "above":
        # "Above" measures the subject, "below" the other box: only the sign agrees.
        holds = relation_strength(relation, first, second) > 0
        assert holds == (relation_strength(opposite, second, first) > 0)
        return
    assert relation_strength(relation, first, second) == relation_strength(
        opposite, second, first
    )

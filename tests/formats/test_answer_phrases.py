"""Which words of an answer a mask belongs to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.formats.answer_phrases import find_wholes, parse_answer


def phrases(text: str, *names: str) -> list[str]:
    answer, _ = parse_answer(text, "{seg}", names)
    return [answer.text[phrase.start : phrase.stop] for phrase in answer.phrases]


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("Use the knife {seg}.", ["knife"], ["knife"]),
        ("Use the knife_12 {seg}.", ["knife"], ["knife_12"]),
        ("the trash_can_1's lid {seg}", ["trash_can:lid"], ["trash_can_1's lid"]),
        ("the trash can_1's lid {seg}", ["trash_can:lid"], ["trash can_1's lid"]),
        ("a car_(automobile)_2 {seg}", ["car_(automobile)"], ["car_(automobile)_2"]),
        ("Both Cup_1 {seg} and cup_2 {seg}", ["cup", "cup"], ["Cup_1", "cup_2"]),
        ("The teacup {seg}", ["cup"], ["teacup"]),
        ("The mug {seg}", ["cup"], ["mug"]),
        ("It {seg}", [""], ["It"]),
        ("{seg} and {seg}", ["cup", "mug"], ["and"]),
    ],
)
def test_phrases(text: str, names: list[str], found: list[str]) -> None:
    assert phrases(text, *names) == found


def test_the_token_goes_with_its_space() -> None:
    answer, count = parse_answer(
        "A pizza [SEG] and a knife [SEG], cut.", "[SEG]", ["pizza", "knife"]
    )
    assert (answer.text, count) == ("A pizza and a knife, cut.", 2)


def test_a_part_finds_its_whole_by_the_answer_alone() -> None:
    names = ["cup:handle", "cup", "cup"]
    answer, _ = parse_answer(
        "The cup_2's handle {seg} of cup_1 {seg} and cup_2 {seg}", "{seg}", names
    )
    assert find_wholes(answer, ["a", "b", "c"], names) == {"a": "c"}


@given(
    st.text(alphabet="ab_1's {seg}.,", max_size=60),
    st.lists(st.text(max_size=8), max_size=4),
)
def test_any_answer_has_its_words_and_only_valid_phrases(
    text: str, names: list[str]
) -> None:
    answer, count = parse_answer(text, "{seg}", names)
    assert count == text.count("{seg}")
    assert answer.text.replace(" ", "") == text.replace("{seg}", "").replace(" ", "")
    assert all(phrase.regions[0] < len(names) for phrase in answer.phrases)

"""What questions of a dialogue refer to, put into words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.dialogue import continues_request, resolve_question


@pytest.mark.parametrize(
    ("question", "resolved"),
    [
        ("And the one behind it?", "the object behind the blue mug?"),
        ("What about the thing in front of it?", "the object in front of the blue mug?"),
        ("Now its complete shape.", "the complete shape of the blue mug."),
        ("And its handle?", "the handle of the blue mug?"),
        ("the handle of it", "the handle of the blue mug"),
        ("And the red one?", "the red mug?"),
        ("Now the whole thing, hidden part too.", "the whole blue mug, hidden part too."),
        ("Complete it, as if nothing covered it.", "Complete the blue mug, as if nothing covered the blue mug."),
        ("Only its visible part, please", "Only the visible part of the blue mug, please"),
    ],
)  # fmt: skip
def test_references_are_replaced(question: str, resolved: str) -> None:
    assert resolve_question(question, ["blue mug"]) == resolved


@pytest.mark.parametrize(
    "question",
    [
        "Segment the chair as if nothing stood in front of it.",
        "Show the lamp and its shade.",
        "the red chair, not the green one",
        "What could I drink from?",
        "And the large chair?",
    ],
)
def test_a_question_that_names_what_it_asks_for_stays(question: str) -> None:
    assert resolve_question(question, ["blue mug"]) == question


def test_properties_replace_those_of_the_name() -> None:
    assert resolve_question("the red one", ["plant in the brown pot"]) == (
        "the plant in the red pot"
    )
    assert resolve_question("the larger one", ["blue mug"]) == "the larger mug"


def test_several_targets_are_named_in_a_row() -> None:
    assert resolve_question("Now hide them.", ["mug", "plate"]) == (
        "hide the mug and the plate."
    )


def test_without_an_earlier_target_nothing_changes() -> None:
    assert resolve_question("And the one behind it?", []) == "And the one behind it?"


def test_only_and_and_what_about_continue_a_request() -> None:
    assert continues_request("And the red one?")
    assert continues_request("what about that?")
    assert not continues_request("Now the red one.")
    assert not continues_request("Android phone")


@given(st.text(max_size=60), st.lists(st.text(max_size=12), max_size=3))
def test_any_text_is_accepted(question: str, names: list[str]) -> None:
    assert isinstance(resolve_question(question, names), str)

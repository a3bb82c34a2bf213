"""Answers name every target and tie each name to its region."""

from maskwise.language.answers import write_answer


def test_every_target_is_a_phrase_of_the_answer() -> None:
    answer = write_answer([("red mug", "mug"), ("blue box", "box")], amodal=True)
    assert answer.text == "They are the red mug and the blue box, shown whole."
    assert [answer.text[phrase.start : phrase.stop] for phrase in answer.phrases] == [
        "the red mug",
        "the blue box",
    ]
    assert [phrase.regions for phrase in answer.phrases] == [(0,), (1,)]


def test_verbs_agree_with_the_noun_and_no_target_is_said() -> None:
    assert write_answer(
        [("legs of the brown table", "legs")], amodal=False
    ).text.startswith("They are ")
    assert (
        write_answer([("brown table", "table")], amodal=False).text
        == "It is the brown table."
    )
    assert write_answer([], amodal=False).text == "There is nothing like that here."

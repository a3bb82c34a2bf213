from maskwise.models.tiny.answer import unique_names, write_answer


def test_objects_that_share_color_and_category_are_named_by_position() -> None:
    mug = ("mug", "red")
    box = ("box", "blue")
    assert unique_names([(*mug, 0.2), (*box, 0.5)]) == ["red mug", "blue box"]
    assert unique_names([(*mug, 0.8), (*mug, 0.2)]) == ["right red mug", "left red mug"]
    assert unique_names([(*mug, 0.52), (*mug, 0.5)]) == [
        "front red mug",
        "back red mug",
    ]
    assert unique_names([(*mug, 0.9), (*mug, 0.1), (*mug, 0.5)]) == [
        "number 3 red mug",
        "number 1 red mug",
        "number 2 red mug",
    ]


def test_a_category_may_have_a_name_format_of_its_own() -> None:
    assert unique_names([("plant", "green", 0.5), ("fork", "black", 0.5)]) == [
        "plant in the green pot",
        "black-handled fork",
    ]


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

"""Which proposals the words of a question choose, and what the answer says."""

import numpy as np
import pytest

from maskwise.language.word_forms import is_plural
from maskwise.models.photo.choice import Choice
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.match import (
    MatchChooser,
    categories_for_use,
    category_scores,
)
from maskwise.models.photo.vocabulary import COCO_CATEGORIES
from tests.models.photo.scene import encoded_scene

LEFT_CUP, RIGHT_CUP, DOG, TABLE = range(4)


@pytest.fixture(scope="module")
def photo() -> EncodedPhoto:
    return encoded_scene()


def ask(photo: EncodedPhoto, question: str) -> tuple[list[int], Choice]:
    (choice,) = MatchChooser().choose(photo, [question])
    return [region for phrase in choice.phrases for region in phrase.regions], choice


@pytest.mark.parametrize(
    ("question", "regions"),
    [
        ("the dog", [DOG]),
        ("Segment the puppy, please.", [DOG]),
        ("all the cups", [LEFT_CUP, RIGHT_CUP]),
        ("the cup on the left", [LEFT_CUP]),
        ("the rightmost cup", [RIGHT_CUP]),
        ("the blue cup", [RIGHT_CUP]),
        ("the red mug", [LEFT_CUP]),
        ("the larger cup", [RIGHT_CUP]),
        ("the cup to the right of the dog", [RIGHT_CUP]),
        ("the cup left of the dog", [LEFT_CUP]),
        ("What animal is here?", [DOG]),
        ("the furniture", [TABLE]),
        ("the cup and the dog", [LEFT_CUP, DOG]),
        ("Which object could bark at strangers?", [DOG]),
        ("People eat at home. Which furniture could a meal be placed on?", [TABLE]),
        ("Which living thing could purr or bark?", [DOG]),
    ],
)
def test_words_choose_proposals(
    photo: EncodedPhoto, question: str, regions: list[int]
) -> None:
    assert ask(photo, question)[0] == regions


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("the dog", "It is the dog."),
        ("all the cups", "They are the cups."),
        ("all animals", "They are the animals."),
        ("the cup and the dog", "They are the cup and the dog."),
        ("What could I drink coffee from?", "They are the cups."),
    ],
)
def test_the_verb_agrees_with_the_words_of_the_answer(
    photo: EncodedPhoto, question: str, answer: str
) -> None:
    assert ask(photo, question)[1].text == answer


def test_names_of_one_object_take_a_singular_verb_except_pairs() -> None:
    assert {name for name in COCO_CATEGORIES if is_plural(f"the {name}")} == {
        "skis",
        "scissors",
    }


def test_an_absent_thing_is_not_guessed(photo: EncodedPhoto) -> None:
    regions, choice = ask(photo, "the elephant")
    assert regions == []
    assert (
        choice.text
        == "I find no such elephant. I can find these: dog, cup, dining table."
    )


def test_a_question_without_known_words_is_not_guessed(photo: EncodedPhoto) -> None:
    regions, choice = ask(photo, "Why is the sky blue?")
    assert regions == []
    assert choice.text.startswith(
        "I do not know what this asks for. I can find these: "
    )


def test_a_detection_with_a_low_score_is_no_answer(photo: EncodedPhoto) -> None:
    assert ask(photo, "the cat")[0] == []


def test_a_weak_detection_is_an_answer_if_the_question_names_it() -> None:
    photo = encoded_scene()
    assert not any(one.label == "kite" for one in photo.proposals)
    (region,), _ = ask(photo, "the kite")
    assert photo.proposals[region].label == "kite"


def test_a_color_that_no_object_has_chooses_none(photo: EncodedPhoto) -> None:
    assert ask(photo, "the yellow cup")[0] == []


@pytest.mark.parametrize(
    ("question", "regions"),
    [
        ("the two cups", [LEFT_CUP, RIGHT_CUP]),
        ("the second cup from the left", [RIGHT_CUP]),
        ("the smallest cup", [LEFT_CUP]),
        ("the cup in the background", [LEFT_CUP]),
        ("the dog above the table", [DOG]),
        ("the cups on the table", [LEFT_CUP, RIGHT_CUP]),
        ("the red cup or the blue cup", [LEFT_CUP, RIGHT_CUP]),
        ("the thing on the table", [LEFT_CUP]),
        ("Who is there?", []),
    ],
)
def test_numbers_orders_and_relations_choose_among_equals(
    photo: EncodedPhoto, question: str, regions: list[int]
) -> None:
    assert sorted(ask(photo, question)[0]) == regions


def test_a_relation_to_something_that_is_not_found_is_ignored(
    photo: EncodedPhoto,
) -> None:
    assert ask(photo, "the dog next to the elephant")[0] == [DOG]


def test_a_kind_of_thing_is_narrowed_by_its_use(photo: EncodedPhoto) -> None:
    regions, choice = ask(photo, "Which containers could I drink coffee from?")
    assert set(regions) == {LEFT_CUP, RIGHT_CUP}
    assert choice.phrases[0].text == "the containers"


def test_a_named_category_is_not_the_answer_to_what_is_used_with_it() -> None:
    present = {"dog", "cup", "knife"}
    assert categories_for_use(frozenset({"cut", "bread"}), present) == {"knife"}
    assert categories_for_use(frozenset({"cutting"}), present) == {"knife"}
    assert categories_for_use(frozenset({"xyz"}), present) == set()
    assert categories_for_use(frozenset({"cut"}), set()) == set()


def test_a_photo_without_objects_is_said_to_have_none() -> None:
    photo = encoded_scene()
    photo.proposals.clear()
    photo.detections = photo.detections.take(np.zeros(0, np.int64))
    regions, choice = ask(photo, "the dog")
    assert regions == []
    assert choice.text == "I find no such dog. I find no object that I know."


def test_labels_below_the_lowest_score_do_not_count(photo: EncodedPhoto) -> None:
    scores = category_scores(photo.proposals, min_score=0.85)
    assert [names for names in scores if names] == [
        {"cup": pytest.approx(0.9)},
        {"dog": pytest.approx(0.9)},
    ]

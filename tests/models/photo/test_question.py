"""What the parser finds in questions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.models.photo.modifiers import ORDERS, Order
from maskwise.models.photo.question import (
    RELATIONS,
    NounPhrase,
    Relation,
    RelationTo,
    parse_question,
)


def relation_of(question: str) -> RelationTo:
    """The relation of the only target."""
    (target,) = parse_question(question).targets
    assert target.relation is not None
    return target.relation


def target_of(question: str) -> NounPhrase:
    (target,) = parse_question(question).targets
    return target


def test_a_category_is_found_by_its_name_a_synonym_or_a_kind() -> None:
    assert parse_question("Segment the dog.").targets[0].categories == {"dog"}
    assert parse_question("the puppy").targets[0].categories == {"dog"}
    assert {"dog", "cat", "horse"} <= parse_question("every animal here").targets[
        0
    ].categories


def test_the_longest_name_wins() -> None:
    assert parse_question("the teddy bear").targets[0].categories == {"teddy bear"}
    assert parse_question("a hot dog").targets[0].categories == {"hot dog"}


def test_a_plural_or_all_asks_for_every_object() -> None:
    assert parse_question("the dogs").targets[0].count is None
    assert parse_question("all cats").targets[0].count is None
    assert parse_question("the dog").targets[0].count == 1
    assert parse_question("the two dogs").targets[0].count == 2


def test_a_verb_is_not_taken_for_a_noun() -> None:
    question = parse_question("What could I drink from?")
    assert not question.targets
    assert "drink" in question.words
    assert parse_question("the drink on the left").targets


def test_an_orange_cat_is_no_fruit() -> None:
    (target,) = parse_question("the orange cat").targets
    assert (target.categories, target.color) == ({"cat"}, "orange")
    assert parse_question("the orange").targets[0].categories == {"orange"}


@pytest.mark.parametrize(
    ("question", "order", "rank"),
    [
        ("the leftmost cup", "left", 0),
        ("the cup on the right", "right", 0),
        ("the second cup from the left", "left", 1),
        ("the cup farthest to the left", "left", 0),
        ("the cup nearest to the camera", "nearest", 0),
        ("the cup in the middle", "middle", 0),
        ("the upper cup", "top", 0),
        ("the largest cup", "largest", 0),
    ],
)
def test_places_and_sizes_order_the_objects(
    question: str, order: str, rank: int
) -> None:
    target = target_of(question)
    assert (target.order, target.rank, target.relation) == (order, rank, None)


@pytest.mark.parametrize(
    ("question", "relation"),
    [
        ("the cup to the left of the dog", "left_of"),
        ("What animal is lying on the couch?", "on"),
        ("the person next to the red car", "near"),
        ("the cat under the table", "below"),
    ],
)
def test_a_relation_has_a_target_and_an_anchor(question: str, relation: str) -> None:
    target = target_of(question)
    assert target.relation is not None
    assert target.relation.name == relation
    assert not target.categories & target.relation.anchor.categories


def test_attributes_stay_with_their_noun() -> None:
    target = target_of("the person next to the red car")
    assert target.color is None
    assert target.relation is not None
    assert target.relation.anchor.color == "red"


def test_the_visible_part_of_an_object_means_the_object() -> None:
    target = target_of("Mark only the visible part of the dog.")
    assert (target.categories, target.part) == ({"dog"}, None)


def test_two_things_joined_by_and_are_both_targets() -> None:
    parsed = parse_question("the cup and the dog")
    assert [target.categories for target in parsed.targets] == [{"cup"}, {"dog"}]


def test_unknown_words_give_no_target() -> None:
    assert parse_question("Where is the xylophone?").targets == ()


@pytest.mark.parametrize(
    ("question", "categories"),
    [
        ("Dogs like to chase things. What ball might one fetch?", {"sports ball"}),
        ("Which part of the car does a driver hold?", {"car"}),
        (
            "When people are at home, what animal in the picture could guard the house?",
            {"dog", "cat"},
        ),
        ("In a match, who guards the goal?", {"person"}),
        ("People who skate need a helmet. Where is the skateboard?", {"skateboard"}),
    ],
)
def test_an_interrogative_asks_for_the_noun_that_follows_it(
    question: str, categories: set[str]
) -> None:
    (target,) = parse_question(question).targets
    assert categories <= target.categories
    assert "person" not in target.categories - categories


@pytest.mark.parametrize(
    "question",
    [
        "What could I use to cut the pizza?",
        "The man has a dog. What in the image could hold water?",
        "What is the girl wearing?",
        "Which part of the picture would keep a person dry?",
    ],
)
def test_an_interrogative_without_a_noun_leaves_the_category_open(
    question: str,
) -> None:
    assert not any(target.categories for target in parse_question(question).targets)


def test_who_is_called_a_person() -> None:
    assert parse_question("Who is on the left?").targets[0].text == "person"


def test_a_noun_before_another_noun_describes_it() -> None:
    assert parse_question("the dog's bowl").targets[0].categories == {"bowl"}
    assert parse_question("the chicken sandwich").targets[0].categories == {"sandwich"}
    tail = target_of("the dog's tail")
    assert (tail.categories, tail.part) == ({"dog"}, "tail")


def test_a_relation_far_from_what_is_asked_for_is_ignored() -> None:
    target = target_of(
        "What object could a tired person who comes home late sleep on next to the chair?"
    )
    assert target.relation is None


def test_the_place_in_the_image_is_no_relation() -> None:
    target = target_of("Which cup shown in the given picture is red?")
    assert (target.relation, target.color) == (None, "red")


def test_an_empty_question_has_no_target() -> None:
    assert parse_question("").targets == ()
    assert parse_question("?!").targets == ()


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("the seven birds", 7),
        ("the second cup", 1),
        ("each dog", None),
        ("both cats", None),
        ("the scissors", 1),
    ],
)
def test_numbers_and_plurals_say_how_many(question: str, count: int | None) -> None:
    assert parse_question(question).targets[0].count == count


def test_words_between_two_nouns_belong_to_the_later_one() -> None:
    first, second = parse_question("the cup and the red dog").targets
    assert (first.color, second.color) == (None, "red")


def test_a_long_way_between_two_nouns_does_not_join_them() -> None:
    parsed = parse_question("the cup that stood there yesterday evening and a dog")
    assert len(parsed.targets) == 1


def test_words_of_all_sentences_count_for_the_use() -> None:
    parsed = parse_question("She wants to cut bread. Which tool is good for that?")
    assert {"cut", "bread", "tool"} <= parsed.words
    assert parsed.targets[0].categories == frozenset()


def test_mentioned_categories_are_those_of_every_sentence() -> None:
    parsed = parse_question("The dog sleeps. Where is the cat?")
    assert {"dog", "cat"} <= parsed.mentioned


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_wording_of_a_relation_is_understood(relation: Relation) -> None:
    for wording in RELATIONS[relation]:
        if wording == "without":
            continue  # leaves the dog out
        found = relation_of(f"the cup {wording} the dog")
        assert found.name == relation, wording
        assert found.anchor.categories == {"dog"}


@pytest.mark.parametrize("order", ORDERS)
def test_every_wording_of_an_order_is_understood(order: Order) -> None:
    for wording in ORDERS[order]:
        parsed = parse_question(f"the {wording} cup")
        assert parsed.targets[0].order == order, wording


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    parsed = parse_question(text)
    assert all(target.count != 0 for target in parsed.targets)


@pytest.mark.parametrize(
    "question",
    [
        "the whole bus, hidden parts included",
        "the bus and its hidden part too",
        "the bus, covered pixels as well",
    ],
)
def test_included_hidden_parts_are_no_object_of_their_own(question: str) -> None:
    assert [target.text for target in parse_question(question).targets] == ["bus"]

"""The knowledge table is consistent, and names of datasets find it."""

import re

import pytest

from maskwise.builder.knowledge import load_knowledge, to_noun
from maskwise.language.category_names import find_category_name

COCO = """
person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant stop_sign parking_meter bench
bird cat dog horse sheep cow elephant bear zebra giraffe backpack umbrella handbag tie suitcase frisbee skis snowboard
sports_ball kite baseball_bat baseball_glove skateboard surfboard tennis_racket bottle wine_glass cup fork knife spoon
bowl banana apple sandwich orange broccoli carrot hot_dog pizza donut cake chair couch potted_plant bed dining_table
toilet tv laptop mouse remote keyboard cell_phone microwave oven toaster sink refrigerator book clock vase scissors
teddy_bear hair_drier toothbrush
"""


@pytest.mark.parametrize(
    ("name", "text", "known"),
    [
        ("car, auto, automobile, machine, motorcar", "car", "car"),
        ("dougnut", "doughnut", "donut"),
        ("espresso cup", "espresso cup", "cup"),
        ("handle of the left pink mug", "handle", "handle"),
        ("cup:handle", "handle", "handle"),
        ("orange-handled fork", "orange-handled fork", "fork"),
        ("car_(automobile)", "car", "car"),
        ("trash bin", "trash bin", "bin"),
        ("toy train", "toy train", None),
        ("hot dog", "hot dog", "hot dog"),
        ("flumadiddle", "flumadiddle", None),
        (" ", "object", "object"),
    ],
)
def test_names_of_datasets_are_looked_up(
    name: str, text: str, known: str | None
) -> None:
    assert to_noun(name) == (text, known)


def test_all_coco_categories_are_known() -> None:
    traits = load_knowledge().traits.values()
    unknown = [
        name
        for name in COCO.split()
        if not any(to_noun(name).known in trait.objects for trait in traits)
    ]
    assert not unknown


def test_the_table_uses_one_name_per_thing() -> None:
    knowledge = load_knowledge()
    for group in (*knowledge.classes.values(), *knowledge.traits.values()):
        for name in (*group.objects, *group.maybe):
            assert to_noun(name).known == name
        assert not group.objects & group.maybe
    for trait in knowledge.part_traits.values():
        assert all(to_noun(whole).known == whole for whole in trait.of)
    assert set().union(*knowledge.themes.values()) <= set(knowledge.traits)


def test_questions_do_not_name_what_they_ask_for() -> None:
    for trait in load_knowledge().traits.values():
        for text in (*trait.ask, trait.does, trait.want or ""):
            for name in trait.objects:
                assert find_category_name(text, name) is None, (text, name)
    for part in load_knowledge().part_traits.values():
        for text in (*(ask.replace("{whole}", "it") for ask in part.ask), part.does):
            for name in part.parts:
                assert not re.search(rf"\b{name}s?\b", text.lower()), (text, name)


def test_questions_end_with_a_question_mark() -> None:
    knowledge = load_knowledge()
    asked = [
        ask
        for trait in (*knowledge.traits.values(), *knowledge.part_traits.values())
        for ask in trait.ask
    ]
    assert all(ask.endswith("?") for ask in asked)
    assert all(
        "{whole}" in ask
        for trait in knowledge.part_traits.values()
        for ask in trait.ask
    )

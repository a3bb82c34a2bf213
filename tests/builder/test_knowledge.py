"""The knowledge table is consistent, and names of datasets find it."""

import json
from random import Random

import pytest

from maskwise.builder import knowledge_file
from maskwise.builder.knowledge import load_knowledge, to_noun
from maskwise.builder.wording import (
    HEDGES,
    ask_about,
    base_form,
    describe,
    negated,
    plural_form,
    third_person,
)
from maskwise.language.category_names import find_category_name
from tests.shared import shared

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
        ("plant in the brown pot", "plant in the brown pot", "plant"),
        ("cab_(taxi)", "cab", "taxi"),
        ("snake", "snake", "snake"),
        ("coca_cola_05", "cola bottle", "bottle"),
        ("banana_bundle", "bunch of bananas", "banana"),
        ("domestic_ass", "donkey", "donkey"),
        (
            "monitor_(computer_equipment) computer_monitor",
            "computer monitor",
            "monitor",
        ),
    ],
)
def test_names_of_datasets_are_looked_up(
    name: str, text: str, known: str | None
) -> None:
    assert to_noun(name) == (text, known)


def test_all_coco_categories_are_known() -> None:
    knowledge = load_knowledge()
    for name in COCO.split():
        known = to_noun(name).known
        assert known is not None
        kinds = {fact.kind for fact in knowledge.facts_of[known]}
        assert {"does", "use", "event"} <= kinds, name


def test_the_table_covers_objects_and_parts() -> None:
    knowledge = load_knowledge()
    with_facts = [entry for entry in knowledge.categories.values() if entry.facts]
    assert len(with_facts) >= 600
    pairs = {
        (whole, entry.name)
        for entry in knowledge.part_entries
        for whole in entry.wholes
        if entry.facts
    }
    assert len(pairs) >= 400


def test_every_name_of_the_files_is_known() -> None:
    knowledge = load_knowledge()
    for entry in knowledge.categories.values():
        assert to_noun(entry.name).known == entry.name
        assert entry.kind is None or entry.kind in knowledge.kinds
        assert entry.broader is None or entry.broader in knowledge.categories
    for part in knowledge.part_entries:
        assert part.wholes
        for whole in part.wholes:
            assert whole in knowledge.names, (part.name, whole)


def test_a_fact_is_true_of_narrower_and_unsettled_for_broader_categories() -> None:
    knowledge = load_knowledge()
    by_text = {fact.text: fact for fact in knowledge.facts}
    seats = by_text["hang a jacket over the back of"]
    assert {"chair", "rocking chair"} <= seats.yes
    assert "stool" in seats.maybe, "easily confused"
    hailed = by_text["be hailed with a raised arm"]
    assert hailed.yes == {"taxi"}
    assert "car" in hailed.maybe, "a car may be a taxi"
    milk = by_text["milk twice a day"]
    assert "cow" in milk.yes
    assert "bull" in milk.maybe, "listed as unsettled, although it is narrower"


def test_no_fact_is_true_and_unsettled() -> None:
    knowledge = load_knowledge()
    for fact in knowledge.facts:
        assert fact.yes
        assert not fact.yes & fact.maybe, fact.text
    assert len(knowledge.facts_by_key) == len(knowledge.facts) + len(
        knowledge.part_facts
    )


def test_facts_do_not_name_what_they_are_about() -> None:
    for fact in load_knowledge().facts:
        text = f"{fact.opening} {base_form(fact.text)}"
        for name in fact.yes:
            assert find_category_name(text, name) is None, (text, name)


def test_facts_fit_into_sentences() -> None:
    for fact in load_knowledge().facts:
        assert not fact.text.endswith("."), fact.text
        assert "{" not in fact.text, fact.text
        if fact.kind == "ask":
            assert fact.text.endswith("?")
        else:
            assert fact.text[0].islower(), fact.text
            assert not fact.text.startswith(("a ", "the ", "to ")), fact.text
        if fact.opening:
            assert fact.opening[0].isupper()
            assert fact.opening[-1] in ".!?", fact.opening


@pytest.mark.parametrize(
    ("phrase", "third", "plural"),
    [
        ("boil water", "boils water", "boil water"),
        ("be red", "is red", "are red"),
        ("have four legs", "has four legs", "have four legs"),
        ("open and close* again", "opens and closes again", "open and close again"),
        ("carry its home", "carries its home", "carry their home"),
        ("go to its nest", "goes to its nest", "go to their nest"),
        ("wash itself", "washes itself", "wash themselves"),
    ],
)
def test_verbs_are_inflected(phrase: str, third: str, plural: str) -> None:
    assert third_person(phrase) == third
    assert plural_form(phrase) == plural


def test_negation() -> None:
    assert negated("be red", plural=False) == "is not red"
    assert negated("be red", "usually", plural=True) == "are not usually red"
    assert negated("bark", plural=True) == "do not bark"
    assert negated("have wings", plural=False) == "does not have wings"


def test_facts_say_usually_unless_they_are_always_true() -> None:
    by_text = {fact.text: fact for fact in load_knowledge().facts}
    folded = by_text["fold shut like a book"]
    assert describe(folded, None) in {
        f"the thing that {h} folds shut like a book" for h in HEDGES
    }
    striped = by_text["have black and white stripes"]
    assert describe(striped, "animal") == "the animal that has black and white stripes"


def test_several_things_are_not_said_to_be_one() -> None:
    fact = {fact.text: fact for fact in load_knowledge().facts}[
        "be the heaviest walker on land"
    ]
    for seed in range(20):
        question = ask_about(fact, 2, "animal", Random(seed))
        assert "are the heaviest" not in question, question


def test_a_phone_is_not_said_to_have_a_receiver() -> None:
    phone = to_noun("phone").known
    facts = {fact.text: fact for fact in load_knowledge().facts}
    assert phone in facts["dial a number on"].yes
    assert phone in facts["have a receiver that is picked up"].maybe


def test_a_line_that_does_not_parse_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge_file, "read_text", lambda file: "- a fact first")
    with pytest.raises(ValueError, match=r"some\.txt, line 1: a fact before any entry"):
        list(knowledge_file.read_entries("some.txt"))


def test_most_frequent_and_common_categories_of_lvis_are_known() -> None:
    file = shared("data", "lvis", "lvis_val_100.json")
    categories = json.loads(file.read_text())["categories"]
    names = [item["name"] for item in categories if item["frequency"] in "fc"]
    facts_of = load_knowledge().facts_of
    known = [name for name in names if to_noun(name).known in facts_of]
    assert len(known) >= 700, set(names) - set(known)

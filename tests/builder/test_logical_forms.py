"""Logical forms: three-valued truth over the regions of an image, hand-worked and by their laws."""

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from maskwise.builder.facts import ImageFacts
from maskwise.builder.logical_forms import (
    UNKNOWN,
    Both,
    Counted,
    Either,
    Extension,
    Form,
    HasFact,
    HasPartFact,
    HiddenBy,
    Hides,
    Most,
    OfKind,
    StandsOn,
    TheRegion,
    ToTheSide,
    Without,
    decode_form,
    encode_form,
    find_wrong_targets,
)
from tests.builder.sources import box, scene, table_scene, thing

TABLE = ImageFacts(table_scene())
NUMBERS = {region.id: region.number for region in TABLE.regions}
BARKS = HasFact("does: bark at the mailman")
CUTS = "blade of axe: do the cutting"


def ids(form: Form, facts: ImageFacts = TABLE) -> set[str]:
    extension = form.extension(facts)
    assert extension.is_settled
    return {facts.regions[number - 1].id for number in extension.yes}


def test_a_fact_holds_for_all_objects_of_its_category() -> None:
    assert ids(BARKS) == {"left", "right"}
    assert ids(OfKind("animal")) == {"left", "right"}
    assert ids(Counted(2, BARKS)) == {"left", "right"}
    assert not Counted(3, BARKS).extension(TABLE).is_settled


def test_relations_are_read_from_the_masks() -> None:
    plate = TheRegion(NUMBERS["plate"])
    cup = TheRegion(NUMBERS["cup"])
    table = TheRegion(NUMBERS["table"])
    assert ids(Hides(plate)) == {"cup"}
    assert ids(HiddenBy(cup)) >= {"plate"}
    assert ids(StandsOn(table)) == {"cup", "plate", "knife"}
    right = ToTheSide("right", TheRegion(NUMBERS["left"]))
    assert "right" in ids(Both((BARKS, right)))


def test_a_part_belongs_to_the_objects_of_the_inner_form() -> None:
    knife = TheRegion(NUMBERS["knife"])
    assert ids(HasPartFact(CUTS, knife)) == {"knife.blade"}
    assert ids(HasPartFact(CUTS, TheRegion(NUMBERS["cup"]))) == set()


def test_one_of_several_is_chosen_only_if_it_is_clear() -> None:
    assert ids(Most("left", BARKS)) == {"left"}
    assert ids(Most("right", BARKS)) == {"right"}
    assert not Most("large", BARKS).extension(TABLE).is_settled, "nearly equal"
    assert not Most("left", TheRegion(1)).extension(TABLE).is_settled, "only one"


def test_a_small_object_of_a_doubtful_category_is_unsettled() -> None:
    """Annotators label distant cars as trucks."""
    haul = HasFact("use: load with building material")
    for width, settled in ((60, True), (8, False)):
        truck = thing("truck", "truck", box(10, 10, 10 + width, 10 + width // 2))
        extension = haul.extension(ImageFacts(scene(truck)))
        assert extension.is_settled == settled


def test_what_people_disagree_about_is_unsettled() -> None:
    facts = ImageFacts(
        scene(
            thing("chair", "chair", box(10, 10, 40, 80)),
            thing("stool", "stool", box(60, 40, 90, 80)),
        )
    )
    sit = HasFact("does: offer a seat to one person")
    extension = sit.extension(facts)
    assert extension == Extension(frozenset((1,)), frozenset((2,)))
    assert find_wrong_targets(sit, frozenset((1,)), facts) == (
        "people would disagree about 'stool'"
    )


def test_a_crowd_is_unsettled() -> None:
    dog = thing("dog", "dog", box(10, 10, 40, 80))
    crowd = thing("dogs", "dog", box(60, 40, 90, 80))
    facts = ImageFacts(scene(dog, msgspec.structs.replace(crowd, crowd=True)))
    assert BARKS.extension(facts).unsure == {UNKNOWN}


def test_wrong_targets_are_named() -> None:
    left = NUMBERS["left"]
    right = NUMBERS["right"]
    both = frozenset((left, right))
    assert find_wrong_targets(BARKS, both, TABLE) is None
    assert find_wrong_targets(BARKS, frozenset((left,)), TABLE) == (
        "'right' fulfils the question too"
    )
    more = both | {NUMBERS["cup"]}
    assert find_wrong_targets(BARKS, more, TABLE) == (
        "'cup' does not fulfil the question"
    )


LEAVES = st.sampled_from(
    [
        BARKS,
        OfKind("animal"),
        OfKind("piece of cutlery"),
        OfKind("piece of tableware"),
        HasFact("does: be flat and carry a helping of food"),
        *(TheRegion(number) for number in NUMBERS.values()),
    ]
)


def combine(forms: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    pairs = st.tuples(forms, forms)
    measures = st.sampled_from(["left", "right", "large", "small", "near", "high"])
    return st.one_of(
        pairs.map(Both),
        pairs.map(Either),
        st.builds(Without, forms, forms),
        st.builds(Most, measures, forms),
        st.builds(Counted, st.integers(0, 3), forms),
        st.builds(ToTheSide, st.sampled_from(["left", "right"]), forms),
        st.builds(Hides, forms),
        st.builds(HiddenBy, forms),
        st.builds(StandsOn, forms),
        st.builds(HasPartFact, st.just(CUTS), forms),
    )


FORMS = st.recursive(LEAVES, combine, max_leaves=6)


@settings(max_examples=150, deadline=None)
@given(FORMS, FORMS)
def test_the_laws_of_three_valued_logic(first: Form, second: Form) -> None:
    a = first.extension(TABLE)
    b = second.extension(TABLE)
    assert not a.yes & a.unsure
    assert a.yes | a.unsure <= set(NUMBERS.values()) | {UNKNOWN}
    both = Both((first, second)).extension(TABLE)
    either = Either((first, second)).extension(TABLE)
    without = Without(first, second).extension(TABLE)
    assert both == Both((second, first)).extension(TABLE)
    assert either == Either((second, first)).extension(TABLE)
    assert both.yes == a.yes & b.yes
    assert either.yes == a.yes | b.yes
    assert without.yes <= a.yes - b.yes
    # What is settled in both parts is settled in the whole.
    for number in NUMBERS.values():
        if number not in a.unsure | b.unsure:
            assert number not in both.unsure | either.unsure | without.unsure
            assert (number in without.yes) == (number in a.yes and number not in b.yes)
    assert Both((first, first)).extension(TABLE) == a
    assert Either((first, first)).extension(TABLE) == a


@settings(max_examples=100, deadline=None)
@given(FORMS)
def test_a_form_survives_its_text(form: Form) -> None:
    assert decode_form(encode_form(form)) == form


def test_a_text_that_is_no_form_is_rejected() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_form('{"type": "spell"}')

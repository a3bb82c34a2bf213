"""Facts of an image against scenes whose masks are known by hand."""

from maskwise.builder.facts import ImageFacts
from maskwise.builder.noun_phrases import (
    describe_objects,
    name_objects,
    nearest,
    tell_apart,
)
from maskwise.schema import Region
from tests.builder.sources import box, scene, table_scene, thing


def test_regions_are_numbered_objects_first() -> None:
    facts = ImageFacts(table_scene())
    assert [one.number for one in facts.regions] == list(range(1, 9))
    assert [one.id for one in facts.parts] == ["knife.blade", "knife.handle"]
    assert [part.noun.text for part in facts.parts_of["knife"]] == ["blade", "handle"]


def test_an_occluder_is_what_covers_the_hidden_part() -> None:
    facts = ImageFacts(table_scene())
    assert [one.id for one in facts.hidden_by["plate"]] == ["cup"]
    occluder = facts.main_occluder("plate")
    assert occluder is not None
    assert occluder.id == "cup"
    assert facts.main_occluder("cup") is None


def test_what_stands_on_a_surface_has_its_foot_on_it() -> None:
    facts = ImageFacts(table_scene())
    assert {one.id for one in facts.standing_on["table"]} == {"cup", "plate", "knife"}


def test_alike_objects_are_told_apart_by_place() -> None:
    names = name_objects(ImageFacts(table_scene()))
    assert names["cup"] == "the coffee cup"
    assert (names["left"], names["right"]) == (
        "the dog on the left",
        "the dog on the right",
    )


def test_objects_are_described_by_their_kind() -> None:
    described = describe_objects(ImageFacts(table_scene()))
    assert described["left"] == "the animal on the left"
    assert described["knife"] == "the piece of cutlery"


def test_objects_in_one_place_are_not_told_apart() -> None:
    facts = ImageFacts(
        scene(
            thing("a", "cup", box(10, 10, 30, 30)),
            thing("b", "cup", box(12, 12, 28, 28)),
        )
    )
    assert tell_apart(facts.objects, "cup") == {"a": "the largest cup"}


def test_a_wide_object_keeps_another_from_being_leftmost() -> None:
    cups = [
        thing(str(n), "cup", box(20 + 30 * n, 10, 40 + 30 * n, 30)) for n in range(6)
    ]
    facts = ImageFacts(scene(*cups, thing("wide", "cup", box(0, 70, 200, 90))))
    assert "the leftmost cup" not in tell_apart(facts.objects, "cup").values()


def test_only_things_on_the_ground_are_nearest() -> None:
    cars = [
        thing("a", "car", box(10, 10, 40, 30)),
        thing("b", "car", box(60, 20, 160, 90)),
    ]
    front = nearest(ImageFacts(scene(*cars)).objects)
    assert front is not None
    assert front.id == "b"
    curtains = [
        thing("a", "curtain", box(10, 10, 40, 30)),
        thing("b", "curtain", box(60, 20, 160, 90)),
    ]
    assert nearest(ImageFacts(scene(*curtains)).objects) is None


def test_objects_beside_a_crowd_of_them_are_not_singled_out() -> None:
    dog = thing("a", "dog", box(20, 20, 60, 90))
    crowd = box(100, 10, 190, 90)
    facts = ImageFacts(
        scene(dog, Region(id="b", name="dog", visible=crowd, crowd=True))
    )
    assert name_objects(facts) == describe_objects(facts) == {}
    assert name_objects(ImageFacts(scene(dog))) == {"a": "the dog"}

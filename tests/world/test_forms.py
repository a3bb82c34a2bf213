"""Logical forms on hand-made scenes: what they pick out, and where they refuse to."""

import numpy as np
import pytest

from maskwise.world.forms import (
    Before,
    Behind,
    Beside,
    Both,
    Clear,
    Coloured,
    Is,
    IsKind,
    Made,
    Objects,
    Parts,
    PartsFor,
    PartsNamed,
    Serves,
    Unclear,
)
from maskwise.world.items import Extent, Inventory, Item

FULL = 1000


def thing(
    category: str,
    colour: str = "red",
    *,
    x: float = 0.5,
    seen: int = FULL,
    full: int = FULL,
    proof: int = 999,
) -> Item:
    return Item(category, colour, "plastic", None, 0, 0, seen, full, x, x, proof)


def part(name: str) -> Item:
    return thing("", "")._replace(part=name)


def lay(*items: Item, covers: dict[tuple[int, int], int] | None = None, setting: str = "room") -> Inventory:
    """Items in order, parts after their object; covers by the objects' order, counted from 1."""
    placed: list[Item] = []
    whole, order = -1, 0
    for item in items:
        if item.part is None:
            whole, order = len(placed), order + 1
            placed.append(item._replace(whole=whole, order=order))
        else:
            owner = placed[whole]
            placed.append(owner._replace(part=item.part, whole=whole))
    matrix = np.zeros((order, order), np.int64)
    for (front, back), pixels in (covers or {}).items():
        matrix[front - 1, back - 1] = pixels
    empty = np.zeros((0, 0), np.uint8)
    extents = tuple(Extent((slice(0, 0), slice(0, 0)), empty) for _ in range(order))
    frame = np.full((100, 100), -1, np.int8)
    return Inventory(setting, tuple(placed), extents, matrix, frame, frame.astype(np.int16))


MUG = Objects((Is("mug"),))
LAMP = Objects((Is("lamp"),))


def test_objects_by_category_and_colour() -> None:
    scene = lay(thing("mug", "red", x=0.8), thing("mug", "blue", x=0.2), thing("lamp", "red"))
    assert MUG.find(scene) == (1, 0), "left to right"
    assert Objects((Is("mug"), Coloured("blue"))).find(scene) == (1,)
    assert Objects((Is("mug"), Coloured("green"))).find(scene) == ()
    assert Objects((Coloured("red"),)).find(scene) == (2, 0)
    assert Objects((Is("elephant"),)).find(scene) == ()


def test_left_and_right() -> None:
    scene = lay(thing("mug", x=0.2), thing("lamp", x=0.5), thing("mug", "blue", x=0.8))
    assert Objects((Is("mug"), Beside("left", LAMP))).find(scene) == (0,)
    assert Objects((Is("mug"), Beside("right", LAMP))).find(scene) == (2,)
    assert Objects((Is("lamp"), Beside("right", LAMP))).find(scene) == (), "nothing is beside itself"


def test_sides_are_unclear_when_close_or_when_hiding_shifts_the_middle() -> None:
    with pytest.raises(Unclear):
        Objects((Is("mug"), Beside("left", LAMP))).find(lay(thing("mug", x=0.48), thing("lamp", x=0.5)))
    half_hidden = thing("mug", x=0.3)._replace(full_x=0.52)
    with pytest.raises(Unclear):
        Objects((Is("mug"), Beside("left", LAMP))).find(lay(half_hidden, thing("lamp", x=0.5)))


def test_a_reference_has_to_be_one_object() -> None:
    twice = lay(thing("mug", x=0.2), thing("lamp", x=0.5), thing("lamp", "blue", x=0.6))
    with pytest.raises(Unclear):
        Objects((Is("mug"), Beside("left", LAMP))).find(twice)
    with pytest.raises(Unclear):
        Objects((Is("mug"), Beside("left", LAMP))).find(lay(thing("mug", x=0.2)))


def test_behind_and_before_follow_who_covers_whom() -> None:
    scene = lay(thing("box"), thing("mug", seen=700), thing("lamp"), covers={(1, 2): 300})
    box = Objects((Is("box"),))
    assert Objects((Behind(box),)).find(scene) == (1,)
    assert Objects((Before(MUG),)).find(scene) == (0,)
    assert Objects((Behind(),)).find(scene) == (1,)
    assert Objects((Before(),)).find(scene) == (0,)
    assert set(Objects((Clear(),)).find(scene)) == {0, 2}
    assert Objects((Behind(LAMP),)).find(scene) == ()


@pytest.mark.parametrize("pixels", [10, 79])
def test_a_little_cover_is_unclear(pixels: int) -> None:
    scene = lay(thing("box"), thing("mug", seen=FULL - pixels), covers={(1, 2): pixels})
    for form in (Objects((Behind(Objects((Is("box"),))),)), Objects((Behind(),)), Objects((Clear(),))):
        with pytest.raises(Unclear):
            form.find(scene)


def test_uses_know_who_serves_and_whom_people_dispute() -> None:
    drink = Objects((Serves("drink"),))
    assert drink.find(lay(thing("mug"), thing("chair"))) == (0,)
    assert drink.find(lay(thing("chair"))) == ()
    with pytest.raises(Unclear):
        drink.find(lay(thing("mug"), thing("bottle")))
    assert Objects((IsKind("piece of cutlery"),)).find(
        lay(thing("knife", x=0.1), thing("fork", x=0.9), thing("pan"))
    ) == (0, 1)


def test_the_table_the_things_stand_on_is_a_table() -> None:
    on_table, in_room = lay(thing("mug"), setting="table"), lay(thing("mug"))
    for form in (
        Objects((Is("table"),)),
        Objects((Serves("dine"),)),
        Objects((IsKind("piece of furniture"),)),
        PartsFor("lay"),
    ):
        assert form.find(in_room) == ()
        with pytest.raises(Unclear):
            form.find(on_table)


def test_a_colour_out_of_sight_is_unclear() -> None:
    scene = lay(thing("knife", "red", proof=0), thing("knife", "blue"))
    with pytest.raises(Unclear):
        Objects((Is("knife"), Coloured("red"))).find(scene)


def test_wary_colours_mind_other_colours_on_a_thing() -> None:
    assert Objects((Coloured("green"),)).find(lay(thing("apple", "red"))) == ()
    with pytest.raises(Unclear):
        Objects((Coloured("green", wary=True),)).find(lay(thing("apple", "red")))
    with pytest.raises(Unclear):
        Objects((Coloured("red", wary=True),)).find(lay(thing("plant", "red")))


def test_best_needs_a_clear_winner_among_two_or_more() -> None:
    far = lay(
        thing("mug", x=0.1, full=2000, seen=2000),
        thing("mug", x=0.4),
        thing("mug", x=0.9, full=500, seen=500),
    )
    assert Objects((Is("mug"),), "leftmost").find(far) == (0,)
    assert Objects((Is("mug"),), "rightmost").find(far) == (2,)
    assert Objects((Is("mug"),), "largest").find(far) == (0,)
    assert Objects((Is("mug"),), "smallest").find(far) == (2,)
    close = lay(thing("mug", x=0.1), thing("mug", x=0.12))
    for best in ("leftmost", "rightmost", "largest", "smallest"):
        with pytest.raises(Unclear):
            Objects((Is("mug"),), best).find(close)  # type: ignore[arg-type]
        with pytest.raises(Unclear):
            Objects((Is("mug"),), best).find(lay(thing("mug")))  # type: ignore[arg-type]


def test_larger_has_to_look_larger() -> None:
    """The larger one is so hidden that less of it is seen."""
    with pytest.raises(Unclear):
        Objects((Is("mug"),), "largest").find(lay(thing("mug", full=2000, seen=300), thing("mug", seen=1000)))


def test_parts() -> None:
    scene = lay(
        thing("mug", "red", x=0.2),
        part("body"),
        part("handle"),
        thing("mug", "blue", x=0.7),
        part("body"),
        part("handle"),
        thing("knife", x=0.9),
        part("blade"),
        part("handle"),
    )
    assert Parts("handle", Objects((Is("mug"), Coloured("blue")))).find(scene) == (5,)
    assert Parts("handle", MUG).find(scene) == (2, 5)
    assert Parts("spout", MUG).find(scene) == ()
    assert PartsNamed("handle").find(scene) == (2, 5, 8)
    assert PartsFor("grip to slice").find(scene) == (8,)
    assert PartsFor("pour").find(scene) == ()


def test_parts_out_of_the_frame_or_of_similar_name_are_unclear() -> None:
    with pytest.raises(Unclear):
        Parts("handle", MUG).find(lay(thing("mug"), part("body")))
    with pytest.raises(Unclear):
        PartsNamed("handle").find(lay(thing("scissors"), part("blades"), part("handles")))
    with pytest.raises(Unclear):
        PartsFor("grip to slice").find(lay(thing("knife"), part("blade"), part("handle"), thing("scissors")))


def test_both() -> None:
    scene = lay(thing("mug", x=0.9), thing("lamp", x=0.1))
    assert Both((MUG, LAMP)).find(scene) == (1, 0)
    assert Both((MUG, MUG)).find(scene) == (0,)


def test_made_of() -> None:
    scene = lay(thing("chair")._replace(material="wooden"), thing("chair"))
    assert Objects((Is("chair"), Made("wooden"))).find(scene) == (0,)

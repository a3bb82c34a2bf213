"""Logical forms on hand-made scenes: what they pick out, and where they refuse to."""

import numpy as np
import pytest

from maskwise.world.logical_forms import (
    AmbiguousError,
    Beside,
    HasAffordance,
    HasCategory,
    HasColor,
    HasMaterial,
    HasSupercategory,
    ObjectQuery,
    OccludedBy,
    Occludes,
    PartAffordanceQuery,
    PartNameQuery,
    PartQuery,
    UnionQuery,
    Unoccluded,
)
from maskwise.world.scene_graph import SceneGraph, SceneNode

FULL = 1000


def thing(
    category: str,
    color: str = "red",
    *,
    x: float = 0.5,
    seen: int = FULL,
    full: int = FULL,
    color_area: int = 999,
) -> SceneNode:
    return SceneNode(
        category, color, "plastic", None, 0, 0, seen, full, x, x, color_area
    )


def part(name: str) -> SceneNode:
    return thing("", "")._replace(part=name)


def lay(
    *nodes: SceneNode,
    occluded_pixels: dict[tuple[int, int], int] | None = None,
    setting: str = "room",
) -> SceneGraph:
    """Items in order, parts after their object; occluded_pixels by the objects' order, counted from 1."""
    placed: list[SceneNode] = []
    whole = -1
    order = 0
    for node in nodes:
        if node.part is None:
            whole = len(placed)
            order = order + 1
            placed.append(node._replace(whole=whole, order=order))
        else:
            object_map = placed[whole]
            placed.append(object_map._replace(part=node.part, whole=whole))
    matrix = np.zeros((order, order), np.int64)
    for (front, back), pixels in (occluded_pixels or {}).items():
        matrix[front - 1, back - 1] = pixels
    empty = np.zeros((0, 0), np.uint8)
    extents = tuple(((slice(0, 0), slice(0, 0)), empty) for _ in range(order))
    frame = np.full((100, 100), -1, np.int8)
    return SceneGraph(
        setting, tuple(placed), extents, matrix, frame, frame.astype(np.int16)
    )


MUG = ObjectQuery((HasCategory("mug"),))
LAMP = ObjectQuery((HasCategory("lamp"),))


def test_objects_by_category_and_color() -> None:
    scene = lay(
        thing("mug", "red", x=0.8), thing("mug", "blue", x=0.2), thing("lamp", "red")
    )
    assert MUG.execute(scene) == (1, 0), "left to right"
    assert ObjectQuery((HasCategory("mug"), HasColor("blue"))).execute(scene) == (1,)
    assert ObjectQuery((HasCategory("mug"), HasColor("green"))).execute(scene) == ()
    assert ObjectQuery((HasColor("red"),)).execute(scene) == (2, 0)
    assert ObjectQuery((HasCategory("elephant"),)).execute(scene) == ()


def test_left_and_right() -> None:
    scene = lay(thing("mug", x=0.2), thing("lamp", x=0.5), thing("mug", "blue", x=0.8))
    assert ObjectQuery((HasCategory("mug"), Beside("left", LAMP))).execute(scene) == (
        0,
    )
    assert ObjectQuery((HasCategory("mug"), Beside("right", LAMP))).execute(scene) == (
        2,
    )
    assert (
        ObjectQuery((HasCategory("lamp"), Beside("right", LAMP))).execute(scene) == ()
    ), "nothing is beside itself"


def test_sides_are_unclear_when_close_or_when_hiding_shifts_the_middle() -> None:
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasCategory("mug"), Beside("left", LAMP))).execute(
            lay(thing("mug", x=0.48), thing("lamp", x=0.5))
        )
    half_hidden = thing("mug", x=0.3)._replace(amodal_x=0.52)
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasCategory("mug"), Beside("left", LAMP))).execute(
            lay(half_hidden, thing("lamp", x=0.5))
        )


def test_a_reference_has_to_be_one_object() -> None:
    twice = lay(thing("mug", x=0.2), thing("lamp", x=0.5), thing("lamp", "blue", x=0.6))
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasCategory("mug"), Beside("left", LAMP))).execute(twice)
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasCategory("mug"), Beside("left", LAMP))).execute(
            lay(thing("mug", x=0.2))
        )


def test_behind_and_before_follow_who_covers_whom() -> None:
    scene = lay(
        thing("box"),
        thing("mug", seen=700),
        thing("lamp"),
        occluded_pixels={(1, 2): 300},
    )
    box = ObjectQuery((HasCategory("box"),))
    assert ObjectQuery((OccludedBy(box),)).execute(scene) == (1,)
    assert ObjectQuery((Occludes(MUG),)).execute(scene) == (0,)
    assert ObjectQuery((OccludedBy(),)).execute(scene) == (1,)
    assert ObjectQuery((Occludes(),)).execute(scene) == (0,)
    assert set(ObjectQuery((Unoccluded(),)).execute(scene)) == {0, 2}
    assert ObjectQuery((OccludedBy(LAMP),)).execute(scene) == ()


@pytest.mark.parametrize("pixels", [10, 79])
def test_a_little_cover_is_unclear(pixels: int) -> None:
    scene = lay(
        thing("box"), thing("mug", seen=FULL - pixels), occluded_pixels={(1, 2): pixels}
    )
    for form in (
        ObjectQuery((OccludedBy(ObjectQuery((HasCategory("box"),))),)),
        ObjectQuery((OccludedBy(),)),
        ObjectQuery((Unoccluded(),)),
    ):
        with pytest.raises(AmbiguousError):
            form.execute(scene)


def test_uses_know_who_serves_and_whom_people_dispute() -> None:
    drink = ObjectQuery((HasAffordance("drink"),))
    assert drink.execute(lay(thing("mug"), thing("chair"))) == (0,)
    assert drink.execute(lay(thing("chair"))) == ()
    with pytest.raises(AmbiguousError):
        drink.execute(lay(thing("mug"), thing("bottle")))
    assert ObjectQuery((HasSupercategory("piece of cutlery"),)).execute(
        lay(thing("knife", x=0.1), thing("fork", x=0.9), thing("pan"))
    ) == (0, 1)


def test_the_table_of_the_setting_counts_as_a_table() -> None:
    on_table = lay(thing("mug"), setting="table")
    in_room = lay(thing("mug"))
    for form in (
        ObjectQuery((HasCategory("table"),)),
        ObjectQuery((HasAffordance("dine"),)),
        ObjectQuery((HasSupercategory("piece of furniture"),)),
        PartAffordanceQuery("lay"),
    ):
        assert form.execute(in_room) == ()
        with pytest.raises(AmbiguousError):
            form.execute(on_table)


def test_a_color_out_of_sight_is_unclear() -> None:
    scene = lay(thing("knife", "red", color_area=0), thing("knife", "blue"))
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasCategory("knife"), HasColor("red"))).execute(scene)


def test_cautious_colors_consider_other_colors_of_an_object() -> None:
    assert ObjectQuery((HasColor("green"),)).execute(lay(thing("apple", "red"))) == ()
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasColor("green", cautious=True),)).execute(
            lay(thing("apple", "red"))
        )
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasColor("red", cautious=True),)).execute(
            lay(thing("plant", "red"))
        )


def test_best_needs_a_clear_winner_among_two_or_more() -> None:
    far = lay(
        thing("mug", x=0.1, full=2000, seen=2000),
        thing("mug", x=0.4),
        thing("mug", x=0.9, full=500, seen=500),
    )
    assert ObjectQuery((HasCategory("mug"),), "leftmost").execute(far) == (0,)
    assert ObjectQuery((HasCategory("mug"),), "rightmost").execute(far) == (2,)
    assert ObjectQuery((HasCategory("mug"),), "largest").execute(far) == (0,)
    assert ObjectQuery((HasCategory("mug"),), "smallest").execute(far) == (2,)
    close = lay(thing("mug", x=0.1), thing("mug", x=0.12))
    for superlative in ("leftmost", "rightmost", "largest", "smallest"):
        with pytest.raises(AmbiguousError):
            ObjectQuery((HasCategory("mug"),), superlative).execute(close)  # type: ignore[arg-type]
        with pytest.raises(AmbiguousError):
            ObjectQuery((HasCategory("mug"),), superlative).execute(lay(thing("mug")))  # type: ignore[arg-type]


def test_larger_has_to_look_larger() -> None:
    """The larger one is so hidden that less of it is seen."""
    with pytest.raises(AmbiguousError):
        ObjectQuery((HasCategory("mug"),), "largest").execute(
            lay(thing("mug", full=2000, seen=300), thing("mug", seen=1000))
        )


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
    assert PartQuery(
        "handle", ObjectQuery((HasCategory("mug"), HasColor("blue")))
    ).execute(scene) == (5,)
    assert PartQuery("handle", MUG).execute(scene) == (2, 5)
    assert PartQuery("spout", MUG).execute(scene) == ()
    assert PartNameQuery("handle").execute(scene) == (2, 5, 8)
    assert PartAffordanceQuery("grip to slice").execute(scene) == (8,)
    assert PartAffordanceQuery("pour").execute(scene) == ()


def test_parts_out_of_the_frame_or_of_similar_name_are_unclear() -> None:
    with pytest.raises(AmbiguousError):
        PartQuery("handle", MUG).execute(lay(thing("mug"), part("body")))
    with pytest.raises(AmbiguousError):
        PartNameQuery("handle").execute(
            lay(thing("scissors"), part("blades"), part("handles"))
        )
    with pytest.raises(AmbiguousError):
        PartAffordanceQuery("grip to slice").execute(
            lay(thing("knife"), part("blade"), part("handle"), thing("scissors"))
        )


def test_both() -> None:
    scene = lay(thing("mug", x=0.9), thing("lamp", x=0.1))
    assert UnionQuery((MUG, LAMP)).execute(scene) == (1, 0)
    assert UnionQuery((MUG, MUG)).execute(scene) == (0,)


def test_made_of() -> None:
    scene = lay(thing("chair")._replace(material="wooden"), thing("chair"))
    assert ObjectQuery((HasCategory("chair"), HasMaterial("wooden"))).execute(
        scene
    ) == (0,)

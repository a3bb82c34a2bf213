"""Names of objects and parts, and the graph of a rendered scene."""

import numpy as np
import pytest

from maskwise.world import Scene
from maskwise.world.background import sample_background
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.random_streams import scene_streams
from maskwise.world.render import render
from maskwise.world.scene_graph import SAME_PLACE, SceneNode, name_nodes
from maskwise.world.scene_layout import sample_layout


def node(category: str, color: str, x: float, *, place: int, order: int) -> SceneNode:
    return SceneNode(
        category=category,
        color=color,
        material="plastic",
        part=None,
        whole=place,
        order=order,
        visible_area=100,
        amodal_area=100,
        visible_x=x,
        amodal_x=x,
        color_area=100,
    )


def names(*xs: float, color: str = "red") -> list[str]:
    """The names of mugs of one color at these places, from the front to the back."""
    mugs = [
        node("mug", color, x, place=place, order=place + 1)
        for place, x in enumerate(xs)
    ]
    return [mug.name for mug in name_nodes(mugs)]


def test_a_single_object_is_named_by_color_and_category() -> None:
    assert names(0.5) == ["red mug"]


def test_two_alike_are_told_apart_by_their_sides() -> None:
    assert names(0.7, 0.2) == ["right red mug", "left red mug"]


def test_two_alike_at_one_place_are_told_apart_by_depth() -> None:
    assert names(0.5, 0.5 + SAME_PLACE / 2) == ["front red mug", "back red mug"]


def test_three_alike_are_numbered_from_the_left() -> None:
    assert names(0.9, 0.1, 0.5) == [
        "number 3 red mug",
        "number 1 red mug",
        "number 2 red mug",
    ]


def test_parts_are_named_after_their_object() -> None:
    mug = node("mug", "red", 0.5, place=0, order=1)
    handle = mug._replace(part="handle")
    assert [named.name for named in name_nodes([mug, handle])] == [
        "red mug",
        "handle of the red mug",
    ]


def test_objects_of_other_colors_need_no_position() -> None:
    mugs = [
        node("mug", "red", 0.2, place=0, order=1),
        node("mug", "blue", 0.8, place=1, order=2),
    ]
    assert [mug.name for mug in name_nodes(mugs)] == ["red mug", "blue mug"]


def test_objects_come_from_the_front_each_followed_by_its_parts(
    scenes: list[Scene],
) -> None:
    for made in scenes:
        orders = [made.nodes[place].order for place in made.graph.objects()]
        assert orders == list(range(1, len(orders) + 1))
        for place, placed_node in enumerate(made.nodes):
            assert placed_node.whole <= place
            assert made.nodes[placed_node.whole].part is None
            assert made.nodes[placed_node.whole].order == placed_node.order


def test_parts_are_those_of_the_category_and_listed_once(scenes: list[Scene]) -> None:
    for made in scenes:
        for whole in made.graph.objects():
            parts = [made.nodes[place].part for place in made.graph.parts(whole)]
            category = CATEGORIES[made.nodes[whole].category]
            assert parts
            assert len(set(parts)) == len(parts)
            assert set(parts) <= set(category.parts)


def test_the_part_map_shows_the_visible_part_of_every_pixel(
    scenes: list[Scene],
) -> None:
    for made in scenes[::6]:
        visible, _ = made.dense
        part_map = made.graph.part_map
        assert ((part_map < 0) == (made.graph.object_map < 0)).all()
        for place, placed_node in enumerate(made.nodes):
            if placed_node.part is not None:
                assert ((part_map == place) == visible[place]).all()


def test_no_object_occludes_one_in_front_of_it(scenes: list[Scene]) -> None:
    for made in scenes:
        # Rows are the objects in front: nothing below the diagonal.
        assert not np.tril(made.graph.occluded_pixels).any()


def test_occlusion_rates_are_the_hidden_share(scenes: list[Scene]) -> None:
    for made in scenes[::6]:
        visible, amodal = made.dense
        for place, placed_node in enumerate(made.nodes):
            hidden = (amodal[place] & ~visible[place]).sum() / amodal[place].sum()
            assert placed_node.occlusion_rate == pytest.approx(hidden)


def test_the_color_area_counts_the_parts_that_carry_the_color(
    scenes: list[Scene],
) -> None:
    for made in scenes[::6]:
        for whole in made.graph.objects():
            category = CATEGORIES[made.nodes[whole].category]
            carriers = category.color_on or category.parts
            area = 0
            for place in made.graph.parts(whole):
                if made.nodes[place].part in carriers:
                    area += made.nodes[place].visible_area
            assert made.nodes[whole].color_area == area


# -- rendering ---------------------------------------------------------------------


@pytest.mark.parametrize("size", [48, 96])
def test_noise_changes_the_image_and_no_mask(size: int) -> None:
    streams = scene_streams(8, 0, 1)
    layout = sample_layout("train", "default", streams["layout"])
    background = sample_background(
        layout.setting, layout.horizon, streams["background"]
    )
    first, first_map, _ = render(layout, background, size, streams["noise"])
    second, second_map, _ = render(layout, background, size, streams["noise"])
    assert first.shape == (size, size, 3)
    assert first.dtype == np.uint8
    assert (first != second).any()
    assert (first_map == second_map).all()


def test_shadows_darken_the_ground_and_not_the_wall() -> None:
    streams = scene_streams(8, 0, 1)
    layout = sample_layout("train", "default", streams["layout"])
    background = sample_background(
        layout.setting, layout.horizon, streams["background"]
    )
    empty = layout._replace(objects=())
    seeds = scene_streams(8, 0, 1)["noise"]
    plain, plain_map, _ = render(empty, background, 96, seeds)
    seeds = scene_streams(8, 0, 1)["noise"]
    full, full_map, rasters = render(layout, background, 96, seeds)
    assert (plain_map == -1).all()
    assert len(rasters) == len(layout.objects)
    is_background = full_map == -1
    darker = plain.astype(int).sum(2) - full.astype(int).sum(2)
    ground = np.zeros_like(is_background)
    ground[round(layout.horizon * 96) + 2 :] = True
    # Anti-aliased edges of bright objects may lighten single pixels.
    assert (darker[is_background & ground] >= 0).mean() > 0.9
    assert (
        darker[is_background & ground].mean() > darker[is_background & ~ground].mean()
    )

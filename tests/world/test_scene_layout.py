"""Layouts: the numbers, kinds and positions of objects that the settings promise."""

from collections import Counter

import numpy as np
import pytest

from maskwise.world.catalogue import CATEGORIES, HELD_OUT, PRESETS, SPLITS
from maskwise.world.random_streams import scene_streams
from maskwise.world.scene_layout import SceneLayout, sample_layout
from maskwise.world.scenes import make_scene

CASES = [(split, preset) for split in SPLITS for preset in PRESETS]


def layouts(split: str, preset: str = "default", count: int = 60) -> list[SceneLayout]:
    made = []
    for index in range(count):
        streams = scene_streams(21, SPLITS[split].number, index)
        made.append(sample_layout(split, preset, streams["layout"]))
    return made


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str, list[SceneLayout]]:
    split, preset = request.param
    return split, preset, layouts(split, preset)


Case = tuple[str, str, list[SceneLayout]]


def test_the_number_of_objects_is_that_of_split_or_preset(case: Case) -> None:
    split, preset, made = case
    fewest, most = PRESETS[preset].objects or SPLITS[split].objects
    counts = {len(layout.objects) for layout in made}
    assert counts == set(range(fewest, most + 1))


def test_both_settings_occur_with_their_view(case: Case) -> None:
    _, _, made = case
    tables = [layout for layout in made if layout.setting == "table"]
    rooms = [layout for layout in made if layout.setting == "room"]
    # Six scenes of ten are tables.
    assert 0.4 < len(tables) / len(made) < 0.8
    assert all(0.36 <= layout.tilt <= 0.52 for layout in tables)
    assert all(0.26 <= layout.tilt <= 0.4 for layout in rooms)
    mean_table_tilt = np.mean([layout.tilt for layout in tables])
    assert mean_table_tilt > np.mean([layout.tilt for layout in rooms])


def test_objects_belong_to_their_setting(case: Case) -> None:
    _, preset, made = case
    for layout in made:
        for placed in layout.objects:
            category = CATEGORIES[placed.category]
            assert getattr(category, layout.setting) is not None
            assert placed.material in category.materials
            if PRESETS[preset].categories:
                assert placed.category in PRESETS[preset].categories


def test_categories_and_colors_do_not_repeat_too_often(case: Case) -> None:
    _, _, made = case
    for layout in made:
        kinds = Counter((placed.category, placed.color) for placed in layout.objects)
        categories = Counter(placed.category for placed in layout.objects)
        assert max(categories.values()) <= 3
        assert max(kinds.values()) <= 2


def test_some_scenes_repeat_a_category(case: Case) -> None:
    _, _, made = case
    repeats = 0
    for layout in made:
        categories = {placed.category for placed in layout.objects}
        repeats += len(categories) < len(layout.objects)
    assert 0.1 < repeats / len(made) < 0.95


def test_held_out_colors_are_only_in_test(case: Case) -> None:
    split, _, made = case
    held_out = []
    for layout in made:
        for placed in layout.objects:
            assert placed.color in CATEGORIES[placed.category].colors
            held_out.append(placed.color in HELD_OUT[placed.category])
    if split == "test":
        assert np.mean(held_out) == pytest.approx(0.4, abs=0.12)
    else:
        assert not any(held_out)


def test_objects_stand_on_the_ground(case: Case) -> None:
    _, _, made = case
    for layout in made:
        for placed in layout.objects:
            assert layout.horizon < placed.placement.y <= 1.0


def test_objects_fit_into_the_image_from_top_to_bottom(case: Case) -> None:
    _, _, made = case
    for layout in made:
        for placed in layout.objects:
            _, y, scale = placed.placement
            low = placed.shape.low[:, 1].min() * scale
            high = placed.shape.high[:, 1].max() * scale
            assert y - high >= -0.031
            assert y - low <= 1.0 + 1e-9


def test_most_of_every_object_is_inside_the_image(case: Case) -> None:
    _, _, made = case
    for layout in made:
        for placed in layout.objects:
            x, _, scale = placed.placement
            left = x + placed.shape.low[:, 0].min() * scale
            right = x + placed.shape.high[:, 0].max() * scale
            inside = min(right, 1.0) - max(left, 0.0)
            # 15 % of the width, and a cell of the grid for rounding.
            assert inside >= 0.85 * (right - left) - 0.05


def test_nearer_objects_of_a_kind_are_larger() -> None:
    """Over many scenes: the depth scales sizes from 0.86 to 1.14."""
    near = []
    far = []
    for layout in layouts("train", count=200):
        for rank, placed in enumerate(layout.objects):
            extent = (placed.shape.high.max(0) - placed.shape.low.min(0)).max()
            size = getattr(CATEGORIES[placed.category], layout.setting)
            relative_size = extent * placed.placement.scale / size
            depths = near if rank >= len(layout.objects) / 2 else far
            depths.append(relative_size)
    assert np.mean(near) > 1.08 * np.mean(far)


def test_the_preset_crowded_hides_more() -> None:
    def hidden_share(preset: str) -> float:
        """Of the objects of twenty scenes, how many are hidden by a third or more."""
        shares = []
        for index in range(20):
            graph = make_scene(6, index, "train", questions=0, preset=preset).graph
            for number, (_, parts) in enumerate(graph.extents):
                visible = int((graph.object_map == number).sum())
                shares.append(1 - visible / int((parts > 0).sum()))
        return float(np.mean(np.array(shares) > 1 / 3))

    assert hidden_share("crowded") > 1.3 * hidden_share("default")


def test_a_preset_scales_its_objects() -> None:
    def mean_size(preset: str) -> float:
        sizes = []
        for layout in layouts("train", preset):
            for placed in layout.objects:
                if placed.category in PRESETS["easy"].categories:
                    extent = placed.shape.high.max(0) - placed.shape.low.min(0)
                    sizes.append(extent.max() * placed.placement.scale)
        return float(np.mean(sizes))

    assert mean_size("easy") > 1.2 * mean_size("default")


def test_the_light_comes_from_above_and_from_both_sides(case: Case) -> None:
    _, _, made = case
    lights = [layout.light for layout in made]
    assert {np.sign(light.x) for light in lights} == {-1.0, 1.0}
    for light in lights:
        assert np.hypot(np.hypot(light.x, light.y), light.z) == pytest.approx(1.0)
        assert light.y > 0.3
        assert light.z > 0.3


def test_placements_in_pixels_are_in_proportion() -> None:
    (layout,) = layouts("val", count=1)
    placed = layout.objects[0]
    small = placed.in_pixels(80)
    large = placed.in_pixels(160)
    assert tuple(large) == pytest.approx(tuple(2 * value for value in small))

"""Scenes: the same every time, and exact to the pixel."""

import itertools

import numpy as np
import pytest

from maskwise.errors import UnknownNameError
from maskwise.masks import Masks
from maskwise.world import Scene, make_scene, stream_scenes
from maskwise.world.catalogue import CATEGORIES


def by_object(made: Scene) -> list[tuple[int, list[int]]]:
    return [(place, made.graph.parts(place)) for place in made.graph.objects()]


def test_a_scene_depends_on_seed_split_and_index_alone() -> None:
    first = make_scene(5, 3, "test")
    again = make_scene(5, 3, "test")
    assert (first.image == again.image).all()
    assert first.nodes == again.nodes
    assert first.samples == again.samples
    assert (make_scene(6, 3, "test").image != first.image).any()
    assert (make_scene(5, 4, "test").image != first.image).any()
    assert (make_scene(5, 3, "val").image != make_scene(5, 3, "train").image).any()


def test_streams_are_the_scenes_in_order() -> None:
    every_second = itertools.islice(stream_scenes(5, "val", start=1, step=2), 3)
    assert [made.id for made in every_second] == ["val-5-1", "val-5-3", "val-5-5"]
    assert (
        next(stream_scenes(5, "val", start=4)).image == make_scene(5, 4, "val").image
    ).all()


@pytest.mark.parametrize("size", [64, 96, 250])
def test_the_layout_does_not_depend_on_the_size(size: int) -> None:
    small = make_scene(5, 2, "train")
    other = make_scene(5, 2, "train", size)
    assert other.image.shape == (size, size, 3)
    assert [placed.category for placed in other.layout.objects] == [
        placed.category for placed in small.layout.objects
    ]
    assert [placed.placement for placed in other.layout.objects] == [
        placed.placement for placed in small.layout.objects
    ]
    first, second = (
        [node for node in made.nodes if node.part is None] for made in (small, other)
    )
    assert [node.name for node in first] == [node.name for node in second]
    for a, b in zip(first, second):
        assert a.amodal_x == pytest.approx(b.amodal_x, abs=0.02)
        assert a.amodal_area / 160**2 == pytest.approx(
            b.amodal_area / size**2, rel=0.25, abs=0.003
        )


def test_the_number_of_questions_does_not_change_the_image() -> None:
    none = make_scene(5, 2, questions=0)
    many = make_scene(5, 2, questions=12)
    assert not none.questions
    assert len(many.questions) > 6
    assert (none.image == many.image).all()


def test_an_unknown_split_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="test, train, val"):
        make_scene(0, 0, "dev")


def test_visible_objects_divide_the_foreground(scenes: list[Scene]) -> None:
    for made in scenes:
        visible, _ = made.dense
        objects = made.graph.objects()
        layers = visible[objects].sum(0, dtype=np.int64)
        assert layers.max() <= 1
        assert ((layers == 1) == (made.graph.object_map >= 0)).all()


def test_visible_is_inside_amodal(scenes: list[Scene]) -> None:
    for made in scenes:
        visible, amodal = made.dense
        assert not (visible & ~amodal).any()


def test_parts_divide_their_object(scenes: list[Scene]) -> None:
    for made in scenes:
        visible, amodal = made.dense
        for whole, parts in by_object(made):
            for masks in (visible, amodal):
                assert (masks[parts].sum(0, dtype=np.int64) == masks[whole]).all()
            for part in parts:
                assert (visible[part] == (amodal[part] & visible[whole])).all()


def test_only_objects_in_front_occlude(scenes: list[Scene]) -> None:
    """A pixel shows the frontmost object whose full shape occluded_pixels it."""
    for made in scenes:
        visible, amodal = made.dense
        covered = np.zeros(made.image.shape[:2], bool)
        for place in made.graph.objects():
            assert (visible[place] == (amodal[place] & ~covered)).all()
            covered |= amodal[place]


def test_nearer_objects_stand_lower(scenes: list[Scene]) -> None:
    for made in scenes:
        depths = [placed.placement.y for placed in made.layout.objects]
        assert all(a <= b + 0.12 for a, b in itertools.pairwise(depths))


def test_measures_agree_with_the_masks(scenes: list[Scene]) -> None:
    for made in scenes[::5]:
        visible, amodal = made.dense
        size = made.image.shape[1]
        for place, node in enumerate(made.nodes):
            assert node.visible_area == visible[place].sum()
            assert node.amodal_area == amodal[place].sum() > 0
            assert node.amodal_x == pytest.approx(
                (np.nonzero(amodal[place])[1].mean() + 0.5) / size
            )
            if node.visible_area:
                assert node.visible_x == pytest.approx(
                    (np.nonzero(visible[place])[1].mean() + 0.5) / size
                )
        for one, other in itertools.permutations(made.graph.objects(), 2):
            a = made.nodes[one].order - 1
            b = made.nodes[other].order - 1
            assert (
                made.graph.occluded_pixels[a, b] == (visible[one] & amodal[other]).sum()
            )
        for place in range(len(made.nodes)):
            own = made.nodes[place].order - 1
            hidden = amodal[place] & ~visible[place]
            seen_there = np.bincount(
                made.graph.object_map[hidden], minlength=len(made.graph.extents)
            )
            assert (
                np.delete(made.graph.occluders(place), own)
                == np.delete(seen_there, own)
            ).all()


def test_regions_carry_the_masks(scenes: list[Scene]) -> None:
    made = scenes[0]
    visible, amodal = made.dense
    assert (
        Masks.from_masks([region.visible for region in made.regions]).to_dense()
        == visible
    ).all()
    assert (
        Masks.from_masks([region.amodal for region in made.regions]).to_dense()
        == amodal
    ).all()
    ids = [region.id for region in made.regions]
    assert len(set(ids)) == len(ids)
    for region, node in zip(made.regions, made.nodes):
        assert region.name == node.name
        assert region.part_of == (
            None if node.part is None else made.regions[node.whole].id
        )
        assert region.order == node.order


def test_names_are_unique(scenes: list[Scene]) -> None:
    for made in scenes:
        names = [node.name for node in made.nodes]
        assert len(set(names)) == len(names)


def test_colors_are_what_the_image_shows(scenes: list[Scene]) -> None:
    """The reddest objects are red, the bluest blue: no placed is painted with another's color."""
    means: dict[str, list[np.ndarray]] = {}
    for made in scenes:
        visible, _ = made.dense
        for place in made.graph.objects():
            node = made.nodes[place]
            wears = [
                part
                for part in made.graph.parts(place)
                if made.nodes[part].part in _carriers(node.category)
            ]
            seen = visible[wears].any(0)
            if seen.sum() > 200:
                means.setdefault(node.color, []).append(made.image[seen].mean(0))
    average = {color: np.mean(values, 0) for color, values in means.items()}
    red = average["red"]
    green = average["green"]
    blue = average["blue"]
    assert red[0] > 1.5 * max(red[1:])
    assert green[1] > 1.2 * max(green[0], green[2])
    assert blue[2] > 1.3 * max(blue[:2])
    assert average["black"].max() < 80
    assert average["white"].min() > 150


def _carriers(category: str) -> tuple[str, ...]:
    return CATEGORIES[category].color_on or CATEGORIES[category].parts


def test_images_are_images_not_diagrams(scenes: list[Scene]) -> None:
    """DirectionalLight, texture and noise: hardly any two neighbouring pixels are equal, and the full range is used."""
    for made in scenes[::7]:
        pixels = made.image.astype(int)
        assert (pixels[:, 1:] == pixels[:, :-1]).all(2).mean() < 0.4
        assert pixels.max() - pixels.min() > 120


def test_how_much_is_hidden(scenes: list[Scene]) -> None:
    """About six objects in ten are partly hidden in train, more in test; next to none is lost from sight."""

    def rates(split: str) -> np.ndarray:
        return np.array(
            [
                made.nodes[place].occlusion_rate
                for made in scenes
                if made.split == split
                for place in made.graph.objects()
            ]
        )

    train = rates("train")
    test = rates("test")
    assert 0.4 < (train > 0.02).mean() < 0.75
    assert (test > 0.02).mean() > (train > 0.02).mean()
    assert test.mean() > train.mean()
    assert (np.concatenate([train, test]) > 0.9).mean() < 0.03

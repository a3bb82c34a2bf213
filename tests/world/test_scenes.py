"""Scenes: the same every time, and exact to the pixel."""

import itertools

import numpy as np
import pytest

from maskwise.errors import UnknownNameError
from maskwise.masks import Masks
from maskwise.world import Scene, scene, stream
from maskwise.world.catalogue import CATEGORIES


def by_object(made: Scene) -> list[tuple[int, list[int]]]:
    return [(place, made.inventory.parts(place)) for place in made.inventory.objects()]


def test_a_scene_depends_on_seed_split_and_index_alone() -> None:
    first, again = scene(5, 3, "test"), scene(5, 3, "test")
    assert (first.image == again.image).all()
    assert first.items == again.items
    assert first.samples == again.samples
    assert (scene(6, 3, "test").image != first.image).any()
    assert (scene(5, 4, "test").image != first.image).any()
    assert (scene(5, 3, "val").image != scene(5, 3, "train").image).any()


def test_streams_are_the_scenes_in_order() -> None:
    every_second = itertools.islice(stream(5, "val", start=1, step=2), 3)
    assert [made.id for made in every_second] == ["val-5-1", "val-5-3", "val-5-5"]
    assert (next(stream(5, "val", start=4)).image == scene(5, 4, "val").image).all()


@pytest.mark.parametrize("size", [64, 96, 250])
def test_any_size_shows_the_same_things_in_the_same_places(size: int) -> None:
    small, other = scene(5, 2, "train"), scene(5, 2, "train", size)
    assert other.image.shape == (size, size, 3)
    assert [thing.category for thing in other.layout.things] == [
        thing.category for thing in small.layout.things
    ]
    assert [thing.place for thing in other.layout.things] == [thing.place for thing in small.layout.things]
    first, second = ([item for item in made.items if item.part is None] for made in (small, other))
    assert [item.name for item in first] == [item.name for item in second]
    for a, b in zip(first, second):
        assert a.full_x == pytest.approx(b.full_x, abs=0.02)
        assert a.full / 160**2 == pytest.approx(b.full / size**2, rel=0.25, abs=0.003)


def test_the_number_of_questions_does_not_change_the_image() -> None:
    none, many = scene(5, 2, questions=0), scene(5, 2, questions=12)
    assert not none.questions
    assert len(many.questions) > 6
    assert (none.image == many.image).all()


def test_an_unknown_split_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="test, train, val"):
        scene(0, 0, "dev")


def test_visible_objects_divide_the_foreground(scenes: list[Scene]) -> None:
    for made in scenes:
        visible, _ = made.dense
        objects = made.inventory.objects()
        layers = visible[objects].sum(0, dtype=np.int64)
        assert layers.max() <= 1
        assert ((layers == 1) == (made.inventory.owner >= 0)).all()


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


def test_only_what_stands_in_front_hides(scenes: list[Scene]) -> None:
    """A pixel shows the frontmost object whose full shape covers it."""
    for made in scenes:
        visible, amodal = made.dense
        covered = np.zeros(made.image.shape[:2], bool)
        for place in made.inventory.objects():
            assert (visible[place] == (amodal[place] & ~covered)).all()
            covered |= amodal[place]


def test_nearer_things_stand_lower(scenes: list[Scene]) -> None:
    for made in scenes:
        depths = [thing.place.y for thing in made.layout.things]
        assert all(a <= b + 0.12 for a, b in itertools.pairwise(depths))


def test_measures_agree_with_the_masks(scenes: list[Scene]) -> None:
    for made in scenes[::5]:
        visible, amodal = made.dense
        size = made.image.shape[1]
        for place, item in enumerate(made.items):
            assert item.seen == visible[place].sum()
            assert item.full == amodal[place].sum() > 0
            assert item.full_x == pytest.approx((np.nonzero(amodal[place])[1].mean() + 0.5) / size)
            if item.seen:
                assert item.x == pytest.approx((np.nonzero(visible[place])[1].mean() + 0.5) / size)
        for one, other in itertools.permutations(made.inventory.objects(), 2):
            a, b = made.items[one].order - 1, made.items[other].order - 1
            assert made.inventory.covers[a, b] == (visible[one] & amodal[other]).sum()
        for place in range(len(made.items)):
            own = made.items[place].order - 1
            hidden = amodal[place] & ~visible[place]
            seen_there = np.bincount(made.inventory.owner[hidden], minlength=len(made.inventory.extents))
            assert (np.delete(made.inventory.hiders(place), own) == np.delete(seen_there, own)).all()


def test_regions_carry_the_masks(scenes: list[Scene]) -> None:
    made = scenes[0]
    visible, amodal = made.dense
    assert (Masks.from_masks([region.visible for region in made.regions]).to_dense() == visible).all()
    assert (Masks.from_masks([region.amodal for region in made.regions]).to_dense() == amodal).all()
    ids = [region.id for region in made.regions]
    assert len(set(ids)) == len(ids)
    for region, item in zip(made.regions, made.items):
        assert region.name == item.name
        assert region.part_of == (None if item.part is None else made.regions[item.whole].id)
        assert region.order == item.order


def test_names_are_unique(scenes: list[Scene]) -> None:
    for made in scenes:
        names = [item.name for item in made.items]
        assert len(set(names)) == len(names)


def test_colours_are_what_the_image_shows(scenes: list[Scene]) -> None:
    """The reddest things are red, the bluest blue: no thing is painted with another's colour."""
    means: dict[str, list[np.ndarray]] = {}
    for made in scenes:
        visible, _ = made.dense
        for place in made.inventory.objects():
            item = made.items[place]
            wears = [
                part
                for part in made.inventory.parts(place)
                if made.items[part].part in _carriers(item.category)
            ]
            seen = visible[wears].any(0)
            if seen.sum() > 200:
                means.setdefault(item.colour, []).append(made.image[seen].mean(0))
    average = {colour: np.mean(values, 0) for colour, values in means.items()}
    red, green, blue = average["red"], average["green"], average["blue"]
    assert red[0] > 1.5 * max(red[1:])
    assert green[1] > 1.2 * max(green[0], green[2])
    assert blue[2] > 1.3 * max(blue[:2])
    assert average["black"].max() < 80
    assert average["white"].min() > 150


def _carriers(category: str) -> tuple[str, ...]:
    return CATEGORIES[category].colour_on or CATEGORIES[category].parts


def test_images_are_images_not_diagrams(scenes: list[Scene]) -> None:
    """Light, texture and noise: hardly any two neighbouring pixels are equal, and the full range is used."""
    for made in scenes[::7]:
        pixels = made.image.astype(int)
        assert (pixels[:, 1:] == pixels[:, :-1]).all(2).mean() < 0.4
        assert pixels.max() - pixels.min() > 120


def test_how_much_is_hidden(scenes: list[Scene]) -> None:
    """About six objects in ten are partly hidden in train, more in test; next to none is lost from sight."""

    def rates(split: str) -> np.ndarray:
        return np.array(
            [
                made.items[place].hidden
                for made in scenes
                if made.split == split
                for place in made.inventory.objects()
            ]
        )

    train, test = rates("train"), rates("test")
    assert 0.4 < (train > 0.02).mean() < 0.75
    assert (test > 0.02).mean() > (train > 0.02).mean()
    assert test.mean() > train.mean()
    assert (np.concatenate([train, test]) > 0.9).mean() < 0.03

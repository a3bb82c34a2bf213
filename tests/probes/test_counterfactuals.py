"""Counterfactual twins: their truth is exact, and a model that invents targets is flagged."""

from pathlib import Path

import numpy as np
import pytest

from bench.evasion_faults import Clean, Hallucinating, TypeGuessing
from maskwise.masks import Mask
from maskwise.probes.absent_questions import ask_for_absent, list_names
from maskwise.probes.counterfactuals import LEAST_TWINS
from maskwise.probes.run_probes import probe
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.world.dataset import encode_image
from maskwise.world.edited_scenes import (
    number_in_layout,
    parse_scene_id,
    remove_objects,
)
from tests.probes.run_one import run

NAME = "counterfactual-twins"

ALL_KINDS = {NAME: {"cost": 5}}
"""Every kind of twin of every scene: the scenes of the tests are few."""


def test_a_model_that_invents_targets_is_flagged(scenes: Dataset) -> None:
    result = run(NAME, Hallucinating(), scenes, probe_options=ALL_KINDS)
    assert result.severity == "high"
    assert result.measures[0].value == 1
    assert "100%" in result.finding


def test_a_model_whose_mask_type_depends_on_the_image_is_flagged(
    scenes: Dataset,
) -> None:
    result = run(NAME, TypeGuessing(), scenes, probe_options=ALL_KINDS)
    flips = next(item for item in result.measures if item.name == "type_flips")
    assert flips.value is not None
    assert flips.value > 0.2
    assert result.severity in ("low", "medium", "high")


@pytest.mark.parametrize("seed", range(2))
def test_a_clean_model_is_not_flagged(seed: int, scenes: Dataset) -> None:
    result = run(NAME, Clean(seed), scenes, seed=seed, probe_options=ALL_KINDS)
    assert result.severity == "none", result.finding
    assert result.measures[0].value == 0


def test_twins_of_scenes_have_exact_masks(scenes: Dataset, tmp_path: Path) -> None:
    probe(Clean(), scenes, tmp_path, probes=NAME, progress=False)
    twins = Dataset.open(tmp_path / "changed" / NAME)
    kinds = set()
    for sample in twins:
        kind = sample.tags["change"]
        kinds.add(kind)
        control = scenes.sample(sample.tags["control"])
        if kind in ("removed", "replaced", "absent question"):
            assert sample.targets == ()
            continue
        assert sample.question == control.question
        (before,) = control.targets
        (after,) = sample.targets
        assert before.visible is not None
        assert after.visible is not None
        # The whole shape of a target does not depend on what stands in front of it.
        assert after.amodal == before.amodal
        if kind == "covered":
            assert after.visible.inside(before.visible)
            assert after.visible.area <= before.visible.area
        else:
            assert before.visible.inside(after.visible)
    assert kinds == {"removed", "replaced", "absent question", "covered", "uncovered"}
    assert len(twins.images) >= LEAST_TWINS


def test_a_scene_is_drawn_again_as_it_was(scenes: Dataset) -> None:
    key = parse_scene_id(scenes.images.id[3])
    assert key is not None
    scene = key.make(96, 3)
    again, _ = key.draw(scene.layout, 96)
    assert (again == scene.image).all()
    numbers = number_in_layout(scene)
    node = scene.nodes[scene.graph.objects()[0]]
    without = remove_objects(scene.layout, [numbers[node.order]])
    changed, graph = key.draw(without, 96)
    assert len(graph.objects()) == len(scene.graph.objects()) - 1
    assert (changed != scene.image).any()


@pytest.mark.parametrize(
    "id", ["", "photo-1", "test-1", "test-1-2-3", "test-99999999999-1"]
)
def test_ids_of_other_images_are_no_scenes(id: str) -> None:
    assert parse_scene_id(id) is None


MUG = Region(id="1", name="red mug", visible=Mask.from_dense(np.ones((4, 4), bool)))


@pytest.mark.parametrize(
    ("question", "changed"),
    [
        ("Segment the red mug.", "Segment the sofa."),
        ("Mark the mug on the left.", "Mark the sofa on the left."),
        ("Is there a mug?", "Is there a sofa?"),
        ("What stands before the mug?", None),
        ("The mug beside the mug", None),
        ("Something to drink from", None),
    ],
)
def test_the_name_of_a_target_is_replaced(question: str, changed: str | None) -> None:
    sample = Sample(id="s", image_id="i", question=question, targets=(MUG,))
    rng = np.random.default_rng(0)
    assert ask_for_absent(sample, [MUG], ["sofa"], rng) == changed
    # What is in the image, under any of its names, is not absent.
    couch = Region(id="2", name="couch", visible=MUG.visible)
    assert ask_for_absent(sample, [MUG, couch], ["sofa"], rng) is None


def write_photos(folder: Path) -> Dataset:
    """Twelve images with a square each, of alternating names: something to paste and to cover."""
    rng = np.random.default_rng(0)
    with DatasetWriter(folder, name="photos") as writer:
        for number in range(12):
            pixels = rng.integers(0, 80, (160, 160, 3)).astype(np.uint8)
            dense = np.zeros((160, 160), np.bool_)
            top = 30 + number
            dense[top : top + 60, 50:110] = True
            pixels[dense] = (200, 20 * number, 90)
            mask = Mask.from_dense(dense)
            name = "parcel" if number % 2 else "lantern"
            region = Region(id="1", name=name, visible=mask)
            image = ImageInfo(id=f"photo{number}", width=160, height=160)
            writer.add_image(image, [region], encode_image(pixels, "png"))
            sample = Sample(
                id=f"q{number}",
                image_id=image.id,
                question=f"Segment the {name}.",
                targets=(region,),
            )
            writer.add_sample(sample)
    return Dataset.open(folder)


def test_photographs_get_twins_by_pasting(tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "photos")
    assert list_names(photos, is_world=False) == ["lantern", "parcel"]
    probe(Clean(), photos, tmp_path / "probes", probes=NAME, progress=False)
    twins = Dataset.open(tmp_path / "probes" / "changed" / NAME)
    by_kind: dict[str, int] = {}
    for sample in twins:
        kind = sample.tags["change"]
        by_kind[kind] = by_kind.get(kind, 0) + 1
        if kind == "covered":
            control = twins.sample(sample.tags["control"])
            assert sample.targets[0].amodal == control.targets[0].amodal
            covered = sample.targets[0].visible
            complete = control.targets[0].visible
            assert covered is not None
            assert complete is not None
            assert covered.area < complete.area
        if kind == "removed":
            assert sample.targets == ()
            assert len(twins.sample(sample.tags["control"]).targets) == 1
    assert {"absent question", "covered", "removed", "original"} <= set(by_kind)

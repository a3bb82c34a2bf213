"""Scenes on disk: written whole, the same for any number of workers; the bundle is what its command makes."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import RecordError, StoreError, UnknownNameError
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log, read_manifest
from maskwise.world import Scene, bundled, bundled_predictions, make_scene, write_scenes
from maskwise.world.catalogue import PRESETS
from maskwise.world.dataset import encode_image


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "scenes"
    write_scenes(folder, 10, 4, split="test", size=96, questions=4)
    return folder


def test_a_folder_holds_images_regions_and_samples(written: Path) -> None:
    dataset = Dataset.open(written)
    dataset.verify()
    assert len(dataset.images) == 10
    for index in (0, 7):
        made = make_scene(4, index, "test", 96, questions=4)
        assert (np.asarray(dataset.open_image(made.id)) == made.image).all(), (
            "png keeps every pixel"
        )
        assert dataset.regions_of(made.id) == made.regions
        assert (
            tuple(sample for sample in dataset if sample.image_id == made.id)
            == made.samples
        )


def test_the_manifest_tells_how_to_make_it_again(written: Path) -> None:
    manifest = read_manifest(written)
    assert manifest.name == "world-test"
    assert (
        "--scenes 10 --seed 4 --split test --size 96 --questions 4"
        in manifest.about["command"]
    )


def test_workers_change_nothing(written: Path, tmp_path: Path) -> None:
    write_scenes(tmp_path / "two", 10, 4, split="test", size=96, questions=4, workers=2)
    for file in written.iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_jpeg_is_smaller_and_close() -> None:
    made = make_scene(4, 0)
    png = encode_image(made.image, "png")
    jpeg = encode_image(made.image, "jpeg")
    assert len(jpeg) < 0.5 * len(png)


def test_progress_counts_scenes(tmp_path: Path) -> None:
    calls: list[int] = []
    write_scenes(
        tmp_path / "three", 3, 4, size=64, questions=1, done=lambda: calls.append(1)
    )
    assert len(calls) == 3


@pytest.mark.parametrize("wrong", [{"scenes": 0}, {"size": 8}, {"workers": 0}])
def test_senseless_numbers_are_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    options = {"scenes": 2, "size": 64, "workers": 1} | wrong
    with pytest.raises(RecordError, match="expected"):
        write_scenes(
            tmp_path / "x",
            options["scenes"],
            0,
            size=options["size"],
            workers=options["workers"],
        )


def test_an_existing_folder_is_kept_without_overwrite(written: Path) -> None:
    with pytest.raises(StoreError):
        write_scenes(written, 1, 0)
    assert len(Dataset.open(written).images) == 10


def test_the_command_writes_a_dataset(tmp_path: Path) -> None:
    out = tmp_path / "made"
    words = [
        "world",
        "--scenes",
        "3",
        "--seed",
        "9",
        "--split",
        "val",
        "--size",
        "64",
        "--out",
        str(out),
        "--json",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    counts = json.loads(done.stdout)["counts"]
    assert counts["images"] == 3
    assert counts["samples"] == len(Dataset.open(out)) == 18


def test_the_command_refuses_an_unknown_split(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["world", "--scenes", "1", "--split", "dev", "--out", str(tmp_path / "x")]
    )
    assert done.exit_code == 2
    assert "train" in done.output


# -- the bundled benchmark -----------------------------------------------------------------------------------------


def test_the_bundle_is_complete_and_small() -> None:
    dataset = Dataset.open(bundled())
    dataset.verify()
    assert len(dataset.images) == 48
    assert len(dataset) == 240
    size = (
        sum(file.stat().st_size for file in bundled().iterdir())
        + bundled_predictions().stat().st_size
    )
    assert size < 3_000_000


@pytest.mark.parametrize("index", [0, 17, 47])
def test_the_bundle_can_be_made_again(index: int) -> None:
    """Other processors and libraries may round a pixel otherwise, so masks may differ there and images a little."""
    dataset = Dataset.open(bundled())
    made = make_scene(2506, index, "test", 224, questions=5)
    assert (
        np.abs(np.asarray(dataset.open_image(made.id)).astype(int) - made.image).mean()
        < 4
    )
    stored = dataset.regions_of(made.id)
    assert [region.name for region in stored] == [
        region.name for region in made.regions
    ]
    for ours, theirs in zip(made.regions, stored):
        assert ours.amodal is not None
        assert theirs.amodal is not None
        assert ours.amodal.iou(theirs.amodal) > 0.97
    samples = [sample for sample in dataset if sample.image_id == made.id]
    assert [sample.question for sample in samples] == [
        sample.question for sample in made.samples
    ]


def test_the_bundle_has_every_kind_of_question() -> None:
    samples = Dataset.open(bundled()).samples
    for tag, values in {
        "question_type": {
            "referring",
            "function",
            "part",
            "part function",
            "several",
            "none",
            "occlusion",
        },
        "targets": {"none", "one", "several"},
        "wording": {"seen", "held out"},
        "colors": {"seen", "held out"},
        "level": {"object", "part"},
        "hidden": {"none", "little", "much"},
    }.items():
        assert set(samples.tag(tag).names) == values


# -- example predictions -------------------------------------------------------------------------------------------


def test_bundled_predictions_answer_every_question_of_the_bundle() -> None:
    predictions = Log(bundled_predictions(), Prediction).read()
    assert [prediction.sample for prediction in predictions] == Dataset.open(
        bundled()
    ).samples.id
    assert any(prediction.no_target for prediction in predictions)
    assert any(len(prediction.regions) > 1 for prediction in predictions)
    wanted = [sample.mask_type for sample in Dataset.open(bundled())]
    chosen = [prediction.mask_type for prediction in predictions]
    assert 0.8 < np.mean([a == b for a, b in zip(wanted, chosen)]) < 1


# -- presets -------------------------------------------------------------------------------------------------------


def test_the_preset_easy_has_few_categories_and_two_or_three_large_objects() -> None:
    scenes = [make_scene(3, index, "train", preset="easy") for index in range(40)]
    plain = [make_scene(3, index, "train") for index in range(40)]
    assert {len(scene.layout.objects) for scene in scenes} == {2, 3}
    assert {
        placed.category for scene in scenes for placed in scene.layout.objects
    } <= set(PRESETS["easy"].categories)

    def mean_area(made: list[Scene]) -> float:
        return float(
            np.mean(
                [
                    node.amodal_area
                    for scene in made
                    for node in scene.nodes
                    if node.part is None
                ]
            )
        )

    assert mean_area(scenes) > 1.5 * mean_area(plain)
    occluded = [
        node.occlusion_rate > 0.1
        for scene in scenes
        for node in scene.nodes
        if node.part is None
    ]
    assert 0.2 < np.mean(occluded) < 0.6


def test_a_preset_is_named_in_ids_and_in_the_manifest(tmp_path: Path) -> None:
    arguments = [
        "--scenes",
        "2",
        "--size",
        "64",
        "--preset",
        "easy",
        "--out",
        str(tmp_path / "easy"),
    ]
    done = CliRunner().invoke(app, ["world", *arguments])
    assert done.exit_code == 0, done.output
    manifest = read_manifest(tmp_path / "easy")
    assert manifest.name == "world-easy-train"
    assert manifest.about["command"].endswith("--preset easy")
    assert Dataset.open(tmp_path / "easy").images.id == [
        "easy-train-0-0",
        "easy-train-0-1",
    ]


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownNameError, match="preset 'hard'; known: crowded, default, easy"
    ):
        make_scene(1, 0, preset="hard")

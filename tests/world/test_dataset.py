"""Scenes on disk: written whole, the same for any number of workers; the bundle is what its command makes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import RecordError, StoreError
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log, read_manifest
from maskwise.world import bundled, bundled_predictions, scene, write_scenes
from maskwise.world.dataset import encode_image
from maskwise.world.spoil import spoil_dataset


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
        made = scene(4, index, "test", 96, questions=4)
        assert (np.asarray(dataset.open_image(made.id)) == made.image).all(), "png keeps every pixel"
        assert dataset.regions_of(made.id) == made.regions
        assert tuple(sample for sample in dataset if sample.image_id == made.id) == made.samples


def test_the_manifest_tells_how_to_make_it_again(written: Path) -> None:
    manifest = read_manifest(written)
    assert manifest.name == "world-test"
    assert "--scenes 10 --seed 4 --split test --size 96 --questions 4" in manifest.about["command"]


def test_workers_change_nothing(written: Path, tmp_path: Path) -> None:
    write_scenes(tmp_path / "two", 10, 4, split="test", size=96, questions=4, workers=2)
    for file in written.iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_jpeg_is_smaller_and_close() -> None:
    made = scene(4, 0)
    png, jpeg = encode_image(made.image, "png"), encode_image(made.image, "jpeg")
    assert len(jpeg) < 0.5 * len(png)


def test_progress_counts_scenes(tmp_path: Path) -> None:
    calls: list[int] = []
    write_scenes(tmp_path / "three", 3, 4, size=64, questions=1, done=lambda: calls.append(1))
    assert len(calls) == 3


@pytest.mark.parametrize("wrong", [{"scenes": 0}, {"size": 8}, {"workers": 0}])
def test_senseless_numbers_are_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    options = {"scenes": 2, "size": 64, "workers": 1} | wrong
    with pytest.raises(RecordError, match="expected"):
        write_scenes(tmp_path / "x", options["scenes"], 0, size=options["size"], workers=options["workers"])


def test_an_existing_folder_is_kept_unless_told(written: Path) -> None:
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
    done = CliRunner().invoke(app, ["world", "--scenes", "1", "--split", "dev", "--out", str(tmp_path / "x")])
    assert done.exit_code == 2
    assert "train" in done.output


# -- the bundled benchmark -----------------------------------------------------------------------------------------


def test_the_bundle_is_complete_and_small() -> None:
    dataset = Dataset.open(bundled())
    dataset.verify()
    assert len(dataset.images) == 48
    assert len(dataset) == 240
    size = sum(file.stat().st_size for file in bundled().iterdir()) + bundled_predictions().stat().st_size
    assert size < 3_000_000


@pytest.mark.parametrize("index", [0, 17, 47])
def test_the_bundle_can_be_made_again(index: int) -> None:
    """Other processors and libraries may round a pixel otherwise, so masks may differ there and images a little."""
    dataset = Dataset.open(bundled())
    made = scene(2506, index, "test", 224, questions=5)
    assert np.abs(np.asarray(dataset.open_image(made.id)).astype(int) - made.image).mean() < 4
    stored = dataset.regions_of(made.id)
    assert [region.name for region in stored] == [region.name for region in made.regions]
    for ours, theirs in zip(made.regions, stored):
        assert ours.amodal is not None
        assert theirs.amodal is not None
        assert ours.amodal.iou(theirs.amodal) > 0.97
    samples = [sample for sample in dataset if sample.image_id == made.id]
    assert [sample.question for sample in samples] == [sample.question for sample in made.samples]


def test_the_bundle_has_every_kind_of_question() -> None:
    samples = Dataset.open(bundled()).samples
    for tag, values in {
        "question_type": {"referring", "function", "part", "part function", "several", "none", "occlusion"},
        "targets": {"none", "one", "several"},
        "wording": {"seen", "held out"},
        "colours": {"seen", "held out"},
        "level": {"object", "part"},
        "hidden": {"none", "little", "much"},
    }.items():
        assert set(samples.tag(tag).names) == values


# -- sample predictions --------------------------------------------------------------------------------------------


def test_bundled_predictions_answer_every_question_of_the_bundle() -> None:
    predictions = Log(bundled_predictions(), Prediction).read()
    assert [prediction.sample for prediction in predictions] == Dataset.open(bundled()).samples.id
    assert any(prediction.error for prediction in predictions)
    assert any(prediction.no_target for prediction in predictions)
    assert any(len(prediction.regions) > 1 for prediction in predictions)


def test_spoiling_is_fair_but_not_perfect(written: Path, tmp_path: Path) -> None:
    dataset = Dataset.open(written)
    spoil_dataset(dataset, tmp_path / "one.jsonl", seed=3)
    spoil_dataset(dataset, tmp_path / "two.jsonl", seed=3)
    spoil_dataset(dataset, tmp_path / "other.jsonl", seed=4)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert (tmp_path / "one.jsonl").read_bytes() != (tmp_path / "other.jsonl").read_bytes()
    overlaps, scores = [], []
    for sample, prediction in zip(dataset, Log(tmp_path / "one.jsonl", Prediction)):
        named = {region.name: region for region in prediction.regions}
        for target in sample.targets:
            if target.name in named:
                said = named[target.name]
                assert target.visible is not None
                assert said.visible is not None
                overlaps.append(target.visible.iou(said.visible))
                scores.append(said.score)
    assert 0.5 < np.mean(overlaps) < 0.97
    assert np.corrcoef(overlaps, scores)[0, 1] > 0.6


def test_answers_of_spoiled_predictions_name_their_regions(written: Path, tmp_path: Path) -> None:
    spoil_dataset(Dataset.open(written), tmp_path / "p.jsonl")
    for prediction in Log(tmp_path / "p.jsonl", Prediction):
        if prediction.answer is not None:
            for phrase, region in zip(prediction.answer.phrases, prediction.regions):
                assert prediction.answer.text[phrase.start : phrase.stop] == f"the {region.name}"


def test_spoiling_has_a_command(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    subprocess.run(
        [sys.executable, "-m", "maskwise.world.spoil", str(written), str(out)], check=True, timeout=120
    )
    assert len(Log(out, Prediction).read()) == len(Dataset.open(written))

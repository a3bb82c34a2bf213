"""A whole training run on drawn images, with a stand-in for MobileSAM."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import OccludeOptions
from maskwise.errors import MaskwiseError
from maskwise.masks import Mask
from maskwise.models.photo.completion import OnnxCompletionNetwork
from maskwise.models.photo.window import CROP_SIZE, FEATURE_SIZE
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset, DatasetWriter
from maskwise.training.completion import pipeline
from maskwise.training.completion.batches import augmented_example, plain_example
from maskwise.training.completion.composites import (
    ObjectCrop,
    crop_objects,
    read_crops,
    split_rows,
    write_crops,
)
from maskwise.training.completion.covered_pairs import cover_objects
from maskwise.training.completion.neighbours import draw_neighbour
from maskwise.training.trainers import find_trainer
from tests.models.photo.scene import FakeSam

SIZE = 160


def write_dataset(path: Path, images: int = 3) -> Path:
    """Images with two discs each, apart from each other."""
    random = np.random.default_rng(0)
    with DatasetWriter(path, name="discs") as writer:
        for number in range(images):
            image = Image.new("RGB", (SIZE, SIZE), "green")
            regions = []
            for item, (x, y) in enumerate([(50, 60), (115, 100)]):
                box = (x - 25, y - 25, x + 25, y + 25)
                ImageDraw.Draw(image).ellipse(
                    box, fill=tuple(random.integers(0, 255, 3).tolist())
                )
                plane = Image.new("L", image.size)
                ImageDraw.Draw(plane).ellipse(box, fill=255)
                regions.append(
                    Region(
                        id=str(item),
                        name="disc",
                        visible=Mask.from_dense(np.asarray(plane) > 0),
                    )
                )
            file = path.parent / f"{number}.png"
            image.save(file)
            writer.add_image(
                ImageInfo(id=str(number), width=SIZE, height=SIZE),
                regions,
                file.read_bytes(),
            )
    return path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("discs") / "data")


def make_config(tmp_path: Path, dataset: Path) -> Path:
    path = tmp_path / "completion.toml"
    path.write_text(
        f'model = "completion"\ndatasets = ["{dataset}"]\nheld_out = 3\nencoded_seeds = [0]\nseeds = [1]\n'
        "threads = 1\n[schedule]\nsteps = 2\nbatch_size = 2\nlearning_rate = 1e-3\nwarmup_steps = 1\n"
        "checkpoint_every = 1\n"
    )
    return path


def test_train_export_and_dry_run(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "load_sam", lambda **_: FakeSam())
    trainer = find_trainer("completion")
    config = trainer.read_config(make_config(tmp_path, dataset))
    plan = trainer.dry_run(config)
    assert plan.sources[0].images == 3
    (path,) = trainer.train(config, tmp_path / "run")
    assert path.stat().st_size < 10e6
    crops = np.zeros((3, 6, CROP_SIZE, CROP_SIZE), np.float32)
    amodal, front = OnnxCompletionNetwork(path, threads=1).complete(
        crops, np.zeros((256, FEATURE_SIZE, FEATURE_SIZE), np.float32)
    )
    assert amodal.shape == (3, CROP_SIZE, CROP_SIZE)
    assert front.shape == (3,)
    assert ((front >= 0) & (front <= 1)).all()
    (again,) = trainer.export_run(tmp_path / "run", tmp_path / "exported")
    assert again.read_bytes() == path.read_bytes()
    with pytest.raises(MaskwiseError, match="another config"):
        trainer.train(
            trainer.read_config(make_config(tmp_path / "run", dataset / "..")),
            tmp_path / "run",
        )


def region(left: int, right: int, *, amodal: int) -> Region:
    visible = np.zeros((100, 100), bool)
    whole = np.zeros((100, 100), bool)
    visible[30:70, left:right] = True
    whole[30:70, left:amodal] = True
    return Region(
        id=f"{left}",
        name="box",
        visible=Mask.from_dense(visible),
        amodal=Mask.from_dense(whole),
    )


def crops() -> list[ObjectCrop]:
    regions = (region(20, 50, amodal=60), region(50, 80, amodal=80))
    sam: Any = FakeSam()
    return crop_objects(Image.new("RGB", (100, 100), "red"), regions, sam)


def test_crops_hold_masks_of_the_object_and_of_others(tmp_path: Path) -> None:
    occluded, front = crops()
    assert abs(occluded.rate - 0.25) < 0.02
    assert front.rate == 0
    assert (occluded.neighbours[occluded.amodal & ~occluded.visible] == 1).mean() > 0.9
    write_crops(tmp_path / "crops.npz", [occluded, front])
    read = read_crops(tmp_path / "crops.npz")
    assert all(np.array_equal(*pair) for pair in zip(read[0], occluded))


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "crops.npz").write_bytes(b"nothing")
    with pytest.raises(MaskwiseError, match="delete it"):
        read_crops(tmp_path / "crops.npz")


def test_every_nth_image_is_held_out(dataset: Path) -> None:
    assert split_rows(Dataset.open(dataset), 2) == ([1], [0, 2])


def test_a_covered_object_continues_behind_the_cut_out(dataset: Path) -> None:
    cutouts = CutoutSource(Dataset.open(dataset))
    found = list(cover_objects(cutouts, 0, OccludeOptions(per_image=2, seed=3)))
    assert found
    for behind, front in zip(found[::2], found[1::2]):
        hidden = behind.amodal & ~behind.visible
        assert 0.05 < behind.rate < 0.65
        assert (behind.neighbours[hidden] == 1).mean() > 0.9
        assert front.rate == 0
        assert not len(behind.features)


def test_neighbours_do_not_cover_the_object_and_often_hide_it() -> None:
    random = np.random.default_rng(0)
    occluded, _ = crops()
    drawn = [draw_neighbour(occluded, random) for _ in range(100)]
    assert all(one.any() and not (one & occluded.visible).any() for one in drawn)
    in_front = [
        (one & occluded.amodal).sum() > 0.02 * occluded.amodal.sum() for one in drawn
    ]
    assert 0.4 < np.mean(in_front) < 0.95


def test_examples_show_what_inference_shows() -> None:
    example = plain_example(crops()[0])
    assert example.crops.shape == (2, 6, CROP_SIZE, CROP_SIZE), (
        "the annotated neighbour, and everything else"
    )
    assert example.features.shape == (256, FEATURE_SIZE, FEATURE_SIZE)
    assert (example.amodal >= (example.crops[0, 3] > 0)).all()


def test_augmentation_keeps_the_visible_mask_inside_the_amodal_one() -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        example = augmented_example(crops()[0], random)
        assert example.crops.shape == (1, 6, CROP_SIZE, CROP_SIZE)
        assert (example.amodal >= (example.crops[0, 3] > 0)).all()
        assert np.abs(example.crops[:, :3]).max() <= 1

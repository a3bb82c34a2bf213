"""The images of a dataset, opened when they are needed."""

import pickle
from pathlib import Path

import pytest

from maskwise.builder.source_images import SourceFolder, SourceImages
from tests.builder.sources import box, scene, table_scene, thing, write_dataset


def test_images_are_known_by_id_up_to_the_count(tmp_path: Path) -> None:
    other = scene(thing("a", "cup", box(10, 10, 40, 40)), id="other")
    dataset = write_dataset(tmp_path / "data", [table_scene(), other])
    images = SourceImages(dataset, 1)
    assert list(images) == ["scene"]
    assert len(images) == 1
    assert [region.id for region in images["scene"].regions][:2] == ["table", "plate"]
    with pytest.raises(KeyError):
        images["other"]


def test_an_image_is_read_once_while_it_is_in_use(tmp_path: Path) -> None:
    images = SourceImages(write_dataset(tmp_path / "data", [table_scene()]), 1)
    assert images["scene"] is images["scene"]


def test_measurements_of_an_image(tmp_path: Path) -> None:
    image = SourceImages(write_dataset(tmp_path / "data", [table_scene()]), 1)["scene"]
    assert [part.id for part in image.parts["knife"]] == ["knife.blade", "knife.handle"]
    assert image.occlusion["plate"] == pytest.approx(100 / 480)
    assert image.occlusion["cup"] == 0


def test_a_folder_is_opened_by_other_processes(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [table_scene()])
    folder = pickle.loads(pickle.dumps(SourceFolder.of(dataset)))
    assert folder.open().images.id == dataset.images.id
    assert folder.open() is folder.open()

"""Files that `write_dataset` wrote and somebody changed: one bad record costs that record."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskwise.errors import FormatError
from maskwise.formats import write_dataset
from maskwise.formats.exported_dataset import export_images, split_name
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from tests.formats.reading import read, reasons
from tests.formats.test_format_writer import encode_image

HEIGHT = 5
WIDTH = 7


def make_mask(columns: int) -> Mask:
    pixels = np.zeros((HEIGHT, WIDTH), bool)
    pixels[:, :columns] = True
    return Mask.from_dense(pixels)


CUP = Region(id="cup", name="cup", visible=make_mask(2), amodal=make_mask(4))
PAN = Region(id="pan", name="pan", visible=make_mask(3))


def make_dataset(
    path: Path, ids: tuple[str, ...] = ("a", "b"), **about: str
) -> Dataset:
    """Every image has a cup and a pan, and a question about each."""
    with DatasetWriter(path, name="kitchen", about=about) as writer:
        for id in ids:
            image = ImageInfo(id=id, width=WIDTH, height=HEIGHT)
            writer.add_image(image, (CUP, PAN), encode_image())
            for region in (CUP, PAN):
                writer.add_sample(
                    Sample(
                        id=f"{id}/{region.id}",
                        image_id=id,
                        question=f"Where is the {region.name}?",
                        targets=(region,),
                    )
                )
    return Dataset.open(path)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return make_dataset(tmp_path / "dataset", split="val")


def edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def written(dataset: Dataset, name: str, tmp_path: Path) -> Path:
    write_dataset(dataset, name, tmp_path / name)
    return tmp_path / name


def test_a_coco_annotation_without_its_region_is_skipped(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "coco", tmp_path)
    path = folder / "annotations/instances_val.json"
    edit(path, lambda content: content["annotations"][0].pop("region"))
    scenes, diagnostics = read("coco", folder)
    assert [region.id for region in scenes[0].regions] == ["pan"]
    assert [sample.id for sample in scenes[0].samples] == ["a/pan"]
    assert scenes[1].regions == (CUP, PAN)
    assert reasons(diagnostics) == [
        "fields of another type",
        "question about a skipped region",
    ]


def test_an_image_of_a_coco_file_without_its_own_id_has_that_of_coco(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "coco", tmp_path)
    path = folder / "annotations/instances_val.json"
    edit(path, lambda content: content["images"][0].pop("maskwise_id"))
    scenes, diagnostics = read("coco", folder)
    assert [scene.image.id for scene in scenes] == ["1", "b"]
    assert reasons(diagnostics) == []


def test_a_fiftyone_folder_of_another_program_is_refused(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "fiftyone", tmp_path)
    edit(folder / "dataset.json", lambda content: content.pop("maskwise"))
    with pytest.raises(FormatError, match="`maskwise read coco` reads other COCO"):
        read("fiftyone", folder)


def test_the_label_files_of_fiftyone_hold_one_mask_type_each(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "fiftyone", tmp_path)
    visible = json.loads((folder / "labels.json").read_text())["annotations"]
    amodal = json.loads((folder / "labels_amodal.json").read_text())["annotations"]
    assert [label["region_id"] for label in visible] == ["cup", "pan"] * 2
    assert [label["region_id"] for label in amodal] == ["cup"] * 2
    assert [label["area"] for label in visible[:2]] == [10, 15]
    assert amodal[0]["occlude_rate"] == 0.5


@pytest.mark.parametrize("content", [None, b"not a PNG"])
def test_a_png_mask_that_cannot_be_read_costs_its_region(
    content: bytes | None, dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "png", tmp_path)
    path = folder / "masks/0/0_visible.png"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    scenes, diagnostics = read("png", folder)
    assert [region.id for region in scenes[0].regions] == ["pan"]
    assert scenes[1].regions == (CUP, PAN)
    assert "invalid mask" in reasons(diagnostics)


def test_a_png_mask_outside_the_folder_is_not_read(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "png", tmp_path)
    (tmp_path / "secret.png").write_bytes(b"")

    def leave(content: Any) -> None:
        content["images"][0]["regions"][0]["visible"] = "../secret.png"

    edit(folder / "index.json", leave)
    scenes, diagnostics = read("png", folder)
    assert [region.id for region in scenes[0].regions] == ["pan"]
    assert "invalid mask" in reasons(diagnostics)


def test_of_label_studio_annotations_the_last_that_was_kept_counts(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "labelstudio", tmp_path)

    def annotate(tasks: Any) -> None:
        first = tasks[0]["annotations"][0]
        tasks[0]["annotations"] += [
            {"result": first["result"][:1]},
            {"result": [], "was_cancelled": True},
        ]

    edit(folder / "tasks.json", annotate)
    scenes, _ = read("labelstudio", folder)
    cup = scenes[0].regions[0]
    assert (cup.visible, cup.amodal) == (CUP.visible, None)


def test_a_brush_of_another_size_costs_its_mask(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "labelstudio", tmp_path)

    def stretch(tasks: Any) -> None:
        tasks[0]["annotations"][0]["result"][0]["original_width"] = 70

    edit(folder / "tasks.json", stretch)
    scenes, diagnostics = read("labelstudio", folder)
    cup = scenes[0].regions[0]
    assert (cup.visible, cup.amodal) == (None, CUP.amodal)
    assert reasons(diagnostics) == ["invalid mask"]


@pytest.mark.parametrize(
    "url", ["/data/upload/images/a.png", "images/a.png", "https://host/x/images/a.png"]
)
def test_label_studio_may_have_changed_the_address_of_an_image(
    url: str, dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "labelstudio", tmp_path)
    edit(folder / "tasks.json", lambda tasks: tasks[0]["data"].update(image=url))
    scenes, diagnostics = read("labelstudio", folder)
    assert scenes[0].image.path == "images/a.png"
    assert reasons(diagnostics) == []


def test_parquet_of_another_program_names_the_reader_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "theirs" / "data"
    folder.mkdir(parents=True)
    table = pa.table({"id": ["a"]})
    pq.write_table(table, folder / "val-00000-of-00001.parquet")
    with pytest.raises(FormatError, match="`maskwise read records` and a mapping"):
        read("huggingface", tmp_path / "theirs")


def test_a_parquet_row_with_another_image_size_is_skipped(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = written(dataset, "huggingface", tmp_path)
    path = folder / "data/val-00000-of-00001.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["width"] = 70
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    scenes, diagnostics = read("huggingface", folder)
    assert [scene.image.id for scene in scenes] == ["b"]
    assert "expected 70 x 5" in str(diagnostics[0].found)


def test_file_names_differ_also_without_case(tmp_path: Path) -> None:
    """Some file systems take A.png and a.png for the same file."""
    ids = ("cup", "CUP", "a/b", "..", "Cup")
    dataset = make_dataset(tmp_path / "dataset", ids)
    names = [name for name, _ in export_images(dataset, with_images=True)]
    assert names == [
        "cup.png",
        "image-1.png",
        "image-2.png",
        "image-3.png",
        "image-4.png",
    ]
    names = [name for name, _ in export_images(dataset, with_images=False)]
    assert names[0] == "cup.img"


def test_the_split_of_file_names(tmp_path: Path) -> None:
    assert split_name(make_dataset(tmp_path / "known", split="val")) == "val"
    assert split_name(make_dataset(tmp_path / "unknown")) == "data"
    assert split_name(make_dataset(tmp_path / "odd", split="../val")) == "data"

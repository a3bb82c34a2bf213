"""What is written in another format and read again is equal: regions, masks, samples, answers, tags and image bytes."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco_mask

from maskwise.errors import FormatError, ImageError, StoreError, UnknownNameError
from maskwise.formats import (
    convert_annotations,
    find_format,
    list_writers,
    write_dataset,
)
from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.world import bundled

FORMATS = sorted(name for name, item in list_writers().items() if not item.lossy)
SIZE = (5, 7)

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    min_size=1,
    max_size=8,
)
planes = st.integers(0, 2 ** (SIZE[0] * SIZE[1]) - 1)


def to_mask(bits: int) -> Mask:
    flat = np.array([bits >> k & 1 for k in range(SIZE[0] * SIZE[1])], np.uint8)
    return Mask.from_dense(flat.reshape(SIZE) > 0)


masks = planes.map(to_mask)


def encode_image(color: int = 40) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (SIZE[1], SIZE[0]), (color, 90, 200)).save(buffer, "PNG")
    return buffer.getvalue()


@st.composite
def image_regions(draw: Any) -> tuple[Region, ...]:
    ids = draw(st.lists(texts, unique=True, max_size=3))
    regions = []
    for number, id in enumerate(ids):
        kinds = draw(
            st.sampled_from([("visible",), ("amodal",), ("visible", "amodal")])
        )
        regions.append(
            Region(
                id=id,
                name=draw(
                    st.text(
                        st.characters(
                            exclude_categories=["Cs"], exclude_characters="\0"
                        ),
                        max_size=6,
                    )
                ),
                part_of=draw(st.sampled_from([None, *ids[:number]])),
                order=draw(st.none() | st.integers(0, 9)),
                crowd=draw(st.booleans()),
                overlap=draw(st.none() | masks),
                **{kind: draw(masks) for kind in kinds},
            )
        )
    return tuple(regions)


@st.composite
def datasets(draw: Any) -> list[tuple[ImageInfo, tuple[Region, ...], list[Sample]]]:
    content = []
    for number, id in enumerate(
        draw(st.lists(texts, unique=True, min_size=1, max_size=3))
    ):
        regions = draw(image_regions())
        samples = []
        for item in range(draw(st.integers(0, 2))):
            targets = (
                draw(st.lists(st.sampled_from(regions), unique=True)) if regions else []
            )
            answer = None
            if draw(st.booleans()):
                phrases = (
                    (Phrase(start=0, stop=3, regions=tuple(range(len(targets)))),)
                    if targets
                    else ()
                )
                answer = Answer(text="the thing", phrases=phrases)
            samples.append(
                Sample(
                    id=f"{number}/{item}",
                    image_id=id,
                    question=draw(texts),
                    mask_type=draw(st.sampled_from(["visible", "amodal", "both"])),
                    targets=tuple(targets),
                    answer=answer,
                    ignore=draw(st.none() | masks),
                    tags=draw(st.dictionaries(texts, texts, max_size=2)),
                    other_targets=draw(
                        st.sampled_from([(), ((),), (regions[:1], regions)])
                    ),
                )
            )
        image = ImageInfo(
            id=id,
            width=SIZE[1],
            height=SIZE[0],
            license=draw(st.none() | texts),
            attribution=draw(st.none() | texts),
        )
        content.append((image, regions, samples))
    return content


def store(
    path: Path, content: list[tuple[ImageInfo, tuple[Region, ...], list[Sample]]]
) -> Dataset:
    with DatasetWriter(
        path, name="made up", about={"split": "val", "license": "none"}
    ) as writer:
        for number, (image, regions, samples) in enumerate(content):
            writer.add_image(image, regions, encode_image(number))
            for sample in samples:
                writer.add_sample(sample)
    return Dataset.open(path)


def read_again(name: str, folder: Path, out: Path, **options: Any) -> Dataset:
    summary = convert_annotations(
        find_format(name), folder, out, strict=True, **options
    )
    assert summary.skipped == {}
    return Dataset.open(out)


def assert_equal(one: Dataset, two: Dataset, *, images: bool = True) -> None:
    assert one.images.id == two.images.id
    for id in one.images.id:
        assert one.regions_of(id) == two.regions_of(id)
        assert (one.image(id).license, one.image(id).attribution) == (
            two.image(id).license,
            two.image(id).attribution,
        )
        if images:
            assert (
                np.asarray(one.open_image(id)) == np.asarray(two.open_image(id))
            ).all()
    assert list(one) == list(two)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=datasets())
def test_what_is_written_and_read_again_is_equal(
    name: str, content: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    dataset = store(folder / "dataset", content)
    write_dataset(dataset, name, folder / "out")
    assert_equal(dataset, read_again(name, folder / "out", folder / "again"))


@pytest.mark.parametrize("name", FORMATS)
def test_the_bundled_benchmark_survives_every_format(name: str, tmp_path: Path) -> None:
    dataset = Dataset.open(bundled())
    write_dataset(dataset, name, tmp_path / "out")
    again = read_again(name, tmp_path / "out", tmp_path / "again")
    assert_equal(dataset, again)
    assert again.manifest.about["command"] == dataset.manifest.about["command"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_view_is_written_with_the_images_it_asks_about(
    name: str, tmp_path: Path
) -> None:
    view = Dataset.open(bundled())[3:9]
    write_dataset(view, name, tmp_path / "out")
    again = read_again(name, tmp_path / "out", tmp_path / "again")
    assert list(again) == list(view)
    assert len(again.images) == 2


@pytest.mark.parametrize("name", FORMATS)
def test_annotations_can_be_written_without_images(name: str, tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "dataset", name="no images") as writer:
        region = Region(id="1", name="cup", visible=to_mask(6))
        writer.add_image(
            ImageInfo(id="a", width=SIZE[1], height=SIZE[0], path="x/a.jpg"), (region,)
        )
        writer.add_sample(Sample(id="1", image_id="a", question="?", targets=(region,)))
    dataset = Dataset.open(tmp_path / "dataset")
    with pytest.raises(
        ImageError, match=r"no known folder; give --images or use --no-images"
    ):
        write_dataset(dataset, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    write_dataset(dataset, name, tmp_path / "out", with_images=False)
    again = read_again(name, tmp_path / "out", tmp_path / "again", with_images=False)
    assert_equal(dataset, again, images=False)


def test_images_given_by_path_keep_their_path(tmp_path: Path) -> None:
    (tmp_path / "photos/val").mkdir(parents=True)
    (tmp_path / "photos/val/a.png").write_bytes(encode_image())
    with DatasetWriter(
        tmp_path / "dataset", name="by path", image_root=tmp_path / "photos"
    ) as writer:
        for id in ("1@1", "1@2"):
            writer.add_image(
                ImageInfo(id=id, width=SIZE[1], height=SIZE[0], path="val/a.png")
            )
    write_dataset(Dataset.open(tmp_path / "dataset"), "coco", tmp_path / "out")
    files = sorted(path.name for path in (tmp_path / "out/images").rglob("*.*"))
    assert files == ["a.png"], "one file, although two images share it"
    assert (
        Dataset.open(tmp_path / "dataset").images.id
        == read_again("coco", tmp_path / "out", tmp_path / "again").images.id
    )


def test_unknown_formats_list_those_that_can_be_written(tmp_path: Path) -> None:
    message = "unknown format to write 'kins'; known: coco, fiftyone, gcg_json, huggingface, labelstudio"
    with pytest.raises(UnknownNameError, match=message):
        write_dataset(Dataset.open(bundled()), "kins", tmp_path / "out")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        write_dataset(Dataset.open(bundled()), "png", tmp_path / "out")


def test_coco_files_are_what_pycocotools_reads(tmp_path: Path) -> None:
    dataset = Dataset.open(bundled())[:5]
    write_dataset(dataset, "coco", tmp_path / "out", with_images=False)
    (path,) = (tmp_path / "out/annotations").glob("instances_*.json")
    content = json.loads(path.read_text())
    region = dataset.regions_of(dataset[0].image_id)[0]
    first = content["annotations"][0]
    assert region.amodal is not None
    assert region.visible is not None
    assert (coco_mask.decode(first["segmentation"]) == region.amodal.to_dense()).all()
    assert (coco_mask.decode(first["visible_mask"]) == region.visible.to_dense()).all()
    hidden = region.amodal - region.visible
    assert (coco_mask.decode(first["invisible_mask"]) == hidden.to_dense()).all()
    assert first["occlude_rate"] == pytest.approx(hidden.area / region.amodal.area)
    assert first["bbox"] == coco_mask.toBbox(first["segmentation"]).tolist()
    assert first["area"] == region.amodal.area
    names = {category["id"]: category["name"] for category in content["categories"]}
    assert names[first["category_id"]] == region.name


def test_amodal_coco_files_are_read_as_cocoa_cls_too(tmp_path: Path) -> None:
    dataset = Dataset.open(bundled())[:5]
    write_dataset(dataset, "coco", tmp_path / "out")
    (path,) = (tmp_path / "out/annotations").glob("*.json")
    summary = convert_annotations(find_format("cocoa_cls"), path, tmp_path / "again")
    assert summary.skipped == {}
    again = Dataset.open(tmp_path / "again")
    for mine, other in zip(
        dataset.regions_of(dataset[0].image_id), again.regions_of("1")
    ):
        assert (mine.visible, mine.amodal, mine.name) == (
            other.visible,
            other.amodal,
            other.name,
        )


def test_hugging_face_datasets_loads_the_folder(tmp_path: Path) -> None:
    hub = pytest.importorskip(
        "datasets", reason="the library datasets is not installed"
    )
    dataset = Dataset.open(bundled())
    write_dataset(dataset, "huggingface", tmp_path / "out")
    rows = hub.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))[
        "test"
    ]
    assert len(rows) == 48
    row = rows[0]
    sample = dataset[0]
    assert row["image"].size == (224, 224)
    assert row["samples"][0]["question"] == sample.question
    region = next(
        region for region in row["regions"] if region["id"] == sample.targets[0].id
    )
    visible = sample.targets[0].visible
    assert visible is not None
    assert (tuple(region["visible"]["size"]), region["visible"]["counts"]) == (
        visible.size,
        visible.counts,
    )


def test_the_features_that_datasets_needs_are_in_the_parquet_schema(
    tmp_path: Path,
) -> None:
    write_dataset(Dataset.open(bundled())[:5], "huggingface", tmp_path / "out")
    (path,) = (tmp_path / "out/data").glob("test-00000-of-00001.parquet")
    schema = pq.read_schema(path)
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert list(features) == schema.names
    assert features["image"] == {"_type": "Image"}
    assert schema.field("image").type == pa.struct(
        [("bytes", pa.binary()), ("path", pa.string())]
    )


def test_a_damaged_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    write_dataset(Dataset.open(bundled())[:5], "huggingface", tmp_path / "out")
    (path,) = (tmp_path / "out/data").glob("*.parquet")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(FormatError, match=r"parquet is not a valid Parquet file"):
        read_again("huggingface", tmp_path / "out", tmp_path / "again")


@pytest.mark.parametrize("name", ["png", "coco", "fiftyone"])
def test_a_later_version_is_refused(name: str, tmp_path: Path) -> None:
    write_dataset(Dataset.open(bundled())[:5], name, tmp_path / "out")
    for path in (tmp_path / "out").rglob("*.json"):
        content = json.loads(path.read_text())
        for key in ("maskwise", "dataset"):
            if key in content:
                content[key]["version"] = 99
        path.write_text(json.dumps(content))
    with pytest.raises(
        FormatError, match="written with version 99; this version reads 1"
    ):
        read_again(name, tmp_path / "out", tmp_path / "again")


def test_an_edited_label_studio_task_changes_the_regions(tmp_path: Path) -> None:
    kept = Region(id="a", name="cup", visible=to_mask(0b111), amodal=to_mask(0b1111))
    gone = Region(id="b", name="pan", visible=to_mask(0b1000))
    with DatasetWriter(tmp_path / "dataset", name="edited") as writer:
        writer.add_image(
            ImageInfo(id="1", width=SIZE[1], height=SIZE[0]),
            (kept, gone),
            encode_image(),
        )
    write_dataset(Dataset.open(tmp_path / "dataset"), "labelstudio", tmp_path / "out")
    tasks = json.loads((tmp_path / "out/tasks.json").read_text())
    results = tasks[0]["annotations"][0]["result"]
    drawn = next(result for result in results if result["from_name"] == "amodal")
    extra = msgspec.to_builtins(drawn) | {"id": "new"}
    tasks[0]["annotations"][0]["result"] = [drawn, extra]
    (tmp_path / "out/export.json").write_text(json.dumps(tasks))
    convert_annotations(
        find_format("labelstudio"), tmp_path / "out/export.json", tmp_path / "again"
    )
    first, second = Dataset.open(tmp_path / "again").regions_of("1")
    assert (first.id, first.visible, first.amodal) == ("a", None, kept.amodal)
    assert (second.id, second.name, second.visible, second.amodal) == (
        "new",
        "cup",
        None,
        kept.amodal,
    )

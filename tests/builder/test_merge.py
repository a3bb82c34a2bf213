"""Merging datasets: ids, splits and licenses are kept; collisions are resolved and reported."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from maskwise.builder.merge import merge_datasets
from maskwise.builder.pipeline import build_dataset
from maskwise.builder.recipes import find_recipe
from maskwise.errors import StoreError
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import IGNORED_PIXELS, MERGED
from tests.builder.sources import HEIGHT, WIDTH, box, table_scene, thing
from tests.cli.commands import run

CUP = thing("cup", "cup", box(40, 40, 60, 60))
DOG = thing("dog", "dog", box(5, 5, 35, 50))


def png(color: tuple[int, int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), color).save(file, "PNG")
    return file.getvalue()


def write(
    path: Path,
    *regions: Region,
    name: str = "",
    color: tuple[int, int, int] = (9, 9, 9),
    image: str = "1",
    sample: str = "1",
    question: str = "Which one?",
    tags: dict[str, str] | None = None,
    license: str | None = None,
    by_path: bool = False,
    **about: str,
) -> Dataset:
    """A dataset with one image and one question about its first region."""
    root = path.with_name(f"{path.name}_images") if by_path else None
    if root is not None:
        root.mkdir()
        (root / "photo.png").write_bytes(png(color))
    with DatasetWriter(
        path, name=name or path.name, about=about, image_root=root
    ) as writer:
        info = ImageInfo(
            id=image,
            width=WIDTH,
            height=HEIGHT,
            license=license,
            path="photo.png" if by_path else None,
        )
        writer.add_image(info, regions, None if by_path else png(color))
        writer.add_sample(
            Sample(
                id=sample,
                image_id=image,
                question=question,
                targets=regions[:1],
                tags=tags or {},
            )
        )
    return Dataset.open(path)


def collisions(path: Path) -> list[tuple[str, str, str, str | None]]:
    lines = (path / "collisions.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [
        (record["kind"], record["action"], record["id"], record["new_id"])
        for record in records
    ]


def test_ids_splits_and_licenses_are_kept(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a", CUP, image="x", sample="s", split="train", license="CC BY"
    )
    second = write(
        tmp_path / "b", DOG, image="y", sample="t", split="val", tags={"split": "test"}
    )
    merge_datasets([first, second], tmp_path / "both")
    both = Dataset.open(tmp_path / "both")
    both.verify()
    assert both.images.id == ["x", "y"]
    assert both.images.license == ["CC BY", None]
    assert both.sample("s").tags == {"source": "a", "split": "train"}
    # What a sample says itself wins over the manifest.
    assert both.sample("t").tags == {"source": "b", "split": "test"}
    assert both.sample("t").targets == (DOG,)
    assert collisions(tmp_path / "both") == []


def test_the_same_image_is_written_once_with_the_questions_of_both(
    tmp_path: Path,
) -> None:
    first = write(tmp_path / "a", CUP)
    second = write(tmp_path / "b", CUP, DOG, question="Which other?")
    summary = merge_datasets([first, second], tmp_path / "both")
    both = Dataset.open(tmp_path / "both")
    assert [region.id for region in both.regions_of("1")] == ["cup", "dog"]
    assert [sample.id for sample in both] == ["1", "b/1"]
    assert {sample.image_id for sample in both} == {"1"}
    assert collisions(tmp_path / "both") == [
        ("image", "joined", "1", None),
        ("sample", "renamed", "1", "b/1"),
    ]
    assert (summary.sources[1].joined, summary.sources[1].renamed) == (1, 1)


def test_equal_samples_are_written_once(tmp_path: Path) -> None:
    datasets = [write(tmp_path / name, CUP) for name in "abc"]
    summary = merge_datasets(datasets, tmp_path / "all")
    assert (summary.images, summary.samples) == (1, 1)
    assert [source.dropped for source in summary.sources] == [0, 1, 1]


@pytest.mark.parametrize(
    ("regions", "color"),
    [
        ([CUP], (200, 9, 9)),
        ([DOG], (9, 9, 9)),
        ([thing("cup", "mug", box(0, 0, 9, 9))], (9, 9, 9)),
    ],
    ids=["another file", "other regions", "another region of the same id"],
)
def test_another_image_of_the_same_id_is_renamed(
    tmp_path: Path, regions: list[Region], color: tuple[int, int, int]
) -> None:
    first = write(tmp_path / "a", CUP)
    second = write(tmp_path / "b", *regions, color=color, tags={"pair": "1#0"})
    merge_datasets([first, second], tmp_path / "both")
    both = Dataset.open(tmp_path / "both")
    assert both.images.id == ["1", "b/1"]
    assert both.sample("b/1").image_id == "b/1"
    assert both.sample("b/1").targets == tuple(regions[:1])
    # The two images of a pair of `occlude` still belong together, and to nothing else.
    assert both.sample("b/1").tags["pair"] == "b/1#0"


def test_a_new_id_that_is_taken_is_not_used(tmp_path: Path) -> None:
    datasets = [
        write(tmp_path / "a", CUP),
        write(tmp_path / "b", CUP, color=(1, 2, 3)),
        write(tmp_path / "c", DOG, image="b/1", sample="b/1"),
    ]
    merge_datasets(datasets, tmp_path / "all")
    merged = Dataset.open(tmp_path / "all")
    assert merged.images.id == ["1", "b/1'", "b/1"]
    assert merged.sample("b/1").targets == (DOG,)


def test_images_given_by_path_are_found_below_the_common_folder(tmp_path: Path) -> None:
    first = write(tmp_path / "a", CUP, by_path=True, color=(200, 0, 0))
    second = write(tmp_path / "b", DOG, by_path=True, color=(0, 200, 0), image="2")
    merge_datasets([first, second], tmp_path / "both")
    both = Dataset.open(tmp_path / "both")
    assert both.open_image("1").getpixel((0, 0)) == (200, 0, 0)
    assert both.open_image("2").getpixel((0, 0)) == (0, 200, 0)
    merge_datasets([first, second], tmp_path / "whole", embed=True)
    (tmp_path / "a_images" / "photo.png").unlink()
    assert Dataset.open(tmp_path / "whole").open_image("1").size == (WIDTH, HEIGHT)


def test_facts_that_differ_name_their_sources(tmp_path: Path) -> None:
    datasets = [
        write(tmp_path / "a", CUP, license="x", format="coco", protocol="mmr"),
        write(tmp_path / "b", DOG, image="2", format="coco", protocol="mmr"),
        write(
            tmp_path / "c", DOG, image="3", format="kins", **{IGNORED_PIXELS: MERGED}
        ),
    ]
    merge_datasets(datasets, tmp_path / "all")
    about = Dataset.open(tmp_path / "all").manifest.about
    assert about["format"] == "a, b: coco; c: kins"
    assert about[IGNORED_PIXELS] == MERGED
    # An official protocol holds for all questions or for none.
    assert "protocol" not in about


def test_a_source_is_not_overwritten(tmp_path: Path) -> None:
    first = write(tmp_path / "a", CUP)
    second = write(tmp_path / "b", DOG)
    with pytest.raises(StoreError, match="are the same folder"):
        merge_datasets([first, second], tmp_path / "a", overwrite=True)
    with pytest.raises(StoreError, match="two datasets or more"):
        merge_datasets([first], tmp_path / "both")
    assert Dataset.open(tmp_path / "a").sample("1").targets == (CUP,)


def test_questions_about_a_merged_dataset_say_source_and_split(tmp_path: Path) -> None:
    for name, split in (("a", "train"), ("b", "val")):
        with DatasetWriter(
            tmp_path / name, name=name, about={"split": split}
        ) as writer:
            info = ImageInfo(id=name, width=WIDTH, height=HEIGHT)
            writer.add_image(info, table_scene().regions, png((90, 120, 150)))
    run("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "both")
    build_dataset(
        find_recipe("r2sm"), Dataset.open(tmp_path / "both"), tmp_path / "built"
    )
    built = Dataset.open(tmp_path / "built")
    tags = {sample.image_id: sample.tags for sample in built}
    assert (tags["a"]["source"], tags["a"]["split"]) == ("a", "train")
    assert (tags["b"]["source"], tags["b"]["split"]) == ("b", "val")
    several = (tmp_path / "a", tmp_path / "b")
    run("build", "r2sm", *several, "--out", tmp_path / "c")
    assert len(Dataset.open(tmp_path / "c")) == len(built)


def test_the_command_prints_what_came_from_where(tmp_path: Path) -> None:
    write(tmp_path / "a", CUP)
    write(tmp_path / "b", CUP, question="Which other?")
    text = run("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "c").stdout
    assert "2 ids were taken" in text
    summary = json.loads(
        run(
            "merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "d", "--json"
        ).stdout
    )
    assert [source["samples"] for source in summary["sources"]] == [1, 1]

"""Dataset folders keep every field, share memory, and open only when they are complete."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from maskwise.errors import ImageError, MaskwiseError, RecordError, StoreError
from maskwise.masks import Mask, Masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store import MASK_TYPES, Dataset, DatasetWriter
from maskwise.store import writer as writer_module
from maskwise.world import bundled


def mask(*rows: str) -> Mask:
    return Mask.from_dense(
        np.array([[letter == "#" for letter in row] for row in rows])
    )


CAT = Region(
    id="cat",
    name="a cat",
    visible=mask("##..", "##..", "...."),
    amodal=mask("###.", "###.", "...."),
    order=2,
)
TAIL = Region(
    id="tail", name="tail", visible=mask("#...", "....", "...."), part_of="cat"
)
BOX = Region(
    id="box", name="box", amodal=mask("..##", "..##", "..##"), order=1, crowd=True
)
GHOST = Region(
    id="ghost",
    name="ghost",
    visible=mask("....", "....", "...."),
    amodal=mask("...#", "....", "...."),
    overlap=mask("...#", "....", "...."),
)
IMAGES = [
    ImageInfo(id="p0", width=4, height=3, path="a/0.png"),
    ImageInfo(id="p1", width=4, height=3),
]
REGIONS = {"p0": [TAIL, CAT, BOX], "p1": [CAT]}
SAMPLES = [
    Sample(
        id="s0",
        image_id="p0",
        question="What is hidden?",
        mask_type="amodal",
        targets=(CAT, BOX),
    ),
    Sample(
        id="s1",
        image_id="p1",
        question="Et là ?",
        targets=(GHOST, CAT),
        tags={"split": "val"},
    ),
    Sample(
        id="s2",
        image_id="p0",
        question="Which part?",
        mask_type="both",
        targets=(TAIL,),
        answer=Answer(
            text="The tail.", phrases=(Phrase(start=4, stop=8, regions=(0,)),)
        ),
        ignore=mask("....", "....", "####"),
        tags={"split": "test", "level": "part"},
    ),
    Sample(
        id="s3",
        image_id="p1",
        question="Any dog?",
        answer=Answer(text="No."),
        other_targets=((), (CAT, GHOST)),
    ),
]


def write(path: Path, samples: Iterable[Sample] = SAMPLES, **options: str) -> Path:
    with DatasetWriter(path, name="tiny", **options) as writer:
        for image in IMAGES:
            writer.add_image(image, REGIONS[image.id])
        for sample in samples:
            writer.add_sample(sample)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny")


@pytest.fixture(params=["arrow", "many batches", "parquet"])
def dataset(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Dataset:
    """The same records stored three ways."""
    if request.param == "many batches":
        monkeypatch.setattr(writer_module, "FLUSH_ROWS", 2)
    opened = Dataset.open(write(tmp_path / "tiny"))
    if request.param == "parquet":
        opened.to_parquet(tmp_path / "parquet")
        return Dataset.open(tmp_path / "parquet")
    return opened


# -- records -----------------------------------------------------------------------------------------------------------


def test_samples_are_read_as_written(dataset: Dataset) -> None:
    assert len(dataset) == 4
    assert list(dataset) == SAMPLES
    assert [dataset[index] for index in range(4)] == SAMPLES
    assert dataset[-1] == SAMPLES[-1]
    assert dataset.sample("s2") == SAMPLES[2]
    assert dataset.name == "tiny"


def test_index_past_the_end(dataset: Dataset) -> None:
    for index in (4, -5):
        with pytest.raises(IndexError, match="of 4"):
            dataset[index]
    with pytest.raises(StoreError, match="no sample 'nobody' among 4"):
        dataset.sample("nobody")


def test_images_and_their_regions(dataset: Dataset) -> None:
    assert dataset.image("p1") == dataset.image(1) == IMAGES[1]
    assert dataset.regions_of("p0") == (TAIL, CAT, BOX)
    assert dataset.regions_of(1) == (CAT, GHOST)
    for key in ("p9", 2, -1):
        with pytest.raises(StoreError, match=r"no image .*2"):
            dataset.image(key)


def test_groups_hold_all_samples_of_an_image(dataset: Dataset) -> None:
    groups = [
        (image.id, [sample.id for sample in samples])
        for image, samples in dataset.groups()
    ]
    assert groups == [("p0", ["s0", "s2"]), ("p1", ["s1", "s3"])]


def test_slices_are_views(dataset: Dataset) -> None:
    assert list(dataset[1:3]) == SAMPLES[1:3]
    assert list(dataset[1:99][1:2]) == SAMPLES[2:3]
    assert list(dataset[-1:4]) == SAMPLES[3:]
    assert list(dataset[3:1]) == []
    view = dataset[1:3]
    assert view.samples.targets.offsets.tolist() == [0, 2, 3]
    assert view.samples.ignore.present.tolist() == [False, True]
    assert view.samples.tag_names == ["level", "split"]
    assert view.samples.tag("split").names == ("val", "test")
    assert dataset[0:1].samples.tag_names == []


def test_slices_with_a_step(dataset: Dataset) -> None:
    assert list(dataset[::2]) == SAMPLES[::2]
    assert list(dataset[::-1]) == SAMPLES[::-1]
    with pytest.raises(StoreError, match="by number or slice, not by str"):
        dataset["s0"]  # type: ignore[call-overload]


def test_filter_combines_conditions(dataset: Dataset) -> None:
    assert list(dataset.filter()) == SAMPLES
    assert list(dataset.filter(mask_type="amodal")) == SAMPLES[:1]
    assert list(dataset.filter(split="test", level="part")) == SAMPLES[2:3]
    assert list(dataset.filter(lambda sample: len(sample.targets) == 2)) == SAMPLES[:2]
    assert (
        list(dataset.filter(lambda sample: len(sample.targets) == 2, split="val"))
        == SAMPLES[1:2]
    )
    assert list(dataset.filter(split="nowhere")) == []


def test_filter_names_unknown_conditions(dataset: Dataset) -> None:
    with pytest.raises(
        StoreError, match="no sample has the tag 'color'; known tags: level, split"
    ):
        dataset.filter(color="red")
    with pytest.raises(StoreError, match="mask_type must be one of"):
        dataset.filter(mask_type="hidden")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="filter expects a function"):
        dataset.filter("amodal")  # type: ignore[arg-type]


def test_displays_are_short(dataset: Dataset) -> None:
    assert repr(dataset).startswith("Dataset('tiny', 4 samples, 2 images, ")
    page = dataset._repr_html_()
    assert "What is hidden?" in page
    assert len(page) < 2000


def test_samples_know_their_image(tmp_path: Path) -> None:
    Image.new("RGB", (4, 3), "red").save(tmp_path / "red.png")
    with DatasetWriter(tmp_path / "out", name="out") as writer:
        writer.add_image(IMAGES[1], [CAT], (tmp_path / "red.png").read_bytes())
        writer.add_sample(
            Sample(id="s", image_id="p1", question="Where?", targets=(CAT,))
        )
    sample = Dataset.open(tmp_path / "out")[0]
    assert sample.image.getpixel((0, 0)) == (255, 0, 0)
    assert sample.plot().width >= 640
    png = sample._repr_png_()
    assert png is not None
    assert png.startswith(b"\x89PNG")
    assert sample == Sample(id="s", image_id="p1", question="Where?", targets=(CAT,))


def test_shards_split_by_image(dataset: Dataset) -> None:
    shards = [[sample.id for sample in dataset.shard(index, 2)] for index in range(2)]
    assert shards == [["s0", "s2"], ["s1", "s3"]]
    assert [len(dataset.shard(index, 5)) for index in range(5)] == [2, 2, 0, 0, 0]
    assert dataset.shard(0, 2)[1] == SAMPLES[2]
    with pytest.raises(StoreError, match="shard 2 of 2"):
        dataset.shard(2, 2)


def test_a_view_becomes_parquet(folder: Path, tmp_path: Path) -> None:
    Dataset.open(folder, image_root=tmp_path)[0:2].to_parquet(tmp_path / "view")
    view = Dataset.open(tmp_path / "view")
    view.verify()
    assert list(view) == SAMPLES[:2]
    assert view.manifest.counts == {"images": 2, "regions": 5, "samples": 2, "masks": 9}
    assert view.image_root == tmp_path.resolve()
    with pytest.raises(StoreError, match="exists already"):
        view.to_parquet(tmp_path / "view")


def test_the_manifest_counts(folder: Path) -> None:
    manifest = Dataset.open(folder).manifest
    assert manifest.counts == {"images": 2, "regions": 5, "samples": 4, "masks": 10}
    assert set(manifest.files) == {"images.arrow", "regions.arrow", "samples.arrow"}
    assert manifest.created_by.startswith("maskwise ")


def test_an_empty_dataset(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "empty", name="nothing"):
        pass
    dataset = Dataset.open(tmp_path / "empty")
    dataset.verify()
    assert list(dataset) == list(dataset.groups()) == []
    assert len(dataset.regions.masks("visible").masks) == 0
    assert dataset.samples.targets.offsets.tolist() == [0]
    assert (
        dataset.samples.mask_type.tolist() == dataset.regions.name.codes.tolist() == []
    )
    assert dataset.samples.size.shape == (0, 2)
    assert len(dataset.shard(0, 3)) == 0


sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def records(
    draw: st.DrawFn,
) -> tuple[dict[str, tuple[ImageInfo, list[Region]]], list[Sample]]:
    images: dict[str, tuple[ImageInfo, list[Region]]] = {}
    for number in range(draw(st.integers(1, 4))):
        height, width = draw(sizes)

        def a_mask(height: int = height, width: int = width) -> Mask:
            bits = draw(
                st.lists(
                    st.booleans(), min_size=height * width, max_size=height * width
                )
            )
            return Mask.from_dense(np.array(bits).reshape(height, width))

        regions = [
            Region(
                id=f"r{row}",
                name=draw(texts),
                visible=a_mask() if (kinds := draw(st.integers(1, 3))) & 1 else None,
                amodal=a_mask() if kinds & 2 else None,
                overlap=a_mask() if draw(st.booleans()) else None,
                part_of=f"r{row - 1}" if row and draw(st.booleans()) else None,
                order=draw(st.none() | st.integers(-9, 9)),
                crowd=draw(st.booleans()),
            )
            for row in range(draw(st.integers(0, 4)))
        ]
        images[f"p{number}"] = (
            ImageInfo(
                id=f"p{number}",
                width=width,
                height=height,
                path=draw(st.sampled_from([None, "x/y.png"])),
            ),
            regions,
        )
    samples = []
    for number in range(draw(st.integers(0, 8))):
        key = draw(st.sampled_from(sorted(images)))
        image, regions = images[key]
        targets = (
            tuple(draw(st.lists(st.sampled_from(regions), max_size=4)))
            if regions
            else ()
        )
        text = draw(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=2, max_size=9)
        )
        phrases = (
            (Phrase(start=0, stop=1, regions=(len(targets) - 1,)),) if targets else ()
        )
        samples.append(
            Sample(
                id=f"s{number}",
                image_id=key,
                question=draw(texts),
                mask_type=draw(st.sampled_from(MASK_TYPES)),
                targets=targets,
                answer=draw(
                    st.sampled_from(
                        [None, Answer(text=text), Answer(text=text, phrases=phrases)]
                    )
                ),
                ignore=Mask.empty(image.height, image.width)
                if draw(st.booleans())
                else None,
                tags=draw(st.dictionaries(texts, texts, max_size=3)),
            )
        )
    return images, samples


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(records(), st.integers(1, 5))
def test_any_records_are_read_as_written(
    tmp_path: Path, drawn: tuple[dict, list[Sample]], batch: int
) -> None:
    images, samples = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "FLUSH_ROWS", batch)
        with DatasetWriter(tmp_path / "any", name="any", overwrite=True) as writer:
            for image, regions in images.values():
                writer.add_image(image, regions)
            for sample in samples:
                writer.add_sample(sample)
    dataset = Dataset.open(tmp_path / "any")
    dataset.verify()
    assert list(dataset) == samples
    for row, (image, regions) in enumerate(images.values()):
        assert dataset.image(row) == image
        assert list(dataset.regions_of(row)) == regions
    shards = [sample.id for index in range(3) for sample in dataset.shard(index, 3)]
    assert sorted(shards) == sorted(sample.id for sample in samples)
    offsets, values = dataset.samples.targets
    assert [values[a:b].tolist() for a, b in pairwise(offsets)] == [
        [
            dataset.regions.of_image.offsets[dataset.images.row[sample.image_id]]
            + int(region.id[1:])
            for region in sample.targets
        ]
        for sample in samples
    ]


# -- columns -----------------------------------------------------------------------------------------------------------


def test_columns_of_samples(dataset: Dataset) -> None:
    samples = dataset.samples
    assert samples.id == ["s0", "s1", "s2", "s3"]
    assert samples.question[1] == "Et là ?"
    assert samples.image.tolist() == [0, 1, 0, 1]
    assert samples.size.tolist() == [[3, 4]] * 4
    assert [MASK_TYPES[code] for code in samples.mask_type] == [
        "amodal",
        "visible",
        "both",
        "visible",
    ]
    assert samples.targets.offsets.tolist() == [0, 2, 4, 5, 5]
    assert samples.targets.values.tolist() == [1, 2, 4, 3, 0]
    assert samples.ignore.present.tolist() == [False, False, True, False]
    assert samples.ignore.masks[2] == SAMPLES[2].ignore
    assert samples.tag_names == ["level", "split"]
    split = samples.tag("split")
    assert [split.names[code] for code in split.codes] == [None, "val", "test", None]
    assert samples.tag("unheard of").names == (None,)


def test_columns_of_regions_and_images(dataset: Dataset) -> None:
    regions = dataset.regions
    assert regions.id == ["tail", "cat", "box", "cat", "ghost"]
    assert [regions.name.names[code] for code in regions.name.codes] == [
        "tail",
        "a cat",
        "box",
        "a cat",
        "ghost",
    ]
    assert regions.image.tolist() == [0, 0, 0, 1, 1]
    assert regions.part_of.present.tolist() == [True, False, False, False, False]
    assert regions.part_of.values[0] == 1
    assert regions.order.present.tolist() == [False, True, True, True, False]
    assert regions.order.values[1:4].tolist() == [2, 1, 2]
    assert regions.crowd.tolist() == [False, False, True, False, False]
    visible = regions.masks("visible")
    assert visible.present.tolist() == [True, True, False, True, True]
    assert visible.masks.area().tolist() == [1, 4, 0, 4, 0]
    assert visible.masks.size[2].tolist() == [0, 0]
    assert regions.masks("overlap").present.tolist() == [
        False,
        False,
        False,
        False,
        True,
    ]
    assert dataset.images.path == ["a/0.png", None]
    assert dataset.images.size.tolist() == [[3, 4], [3, 4]]


def test_unions_of_targets_without_a_loop(dataset: Dataset) -> None:
    targets = dataset.samples.targets
    amodal = dataset.regions.masks("amodal")
    whole = amodal.present[targets.values]
    assert whole.tolist() == [True, True, True, True, False]
    offsets = np.concatenate([[0], np.cumsum(whole)])[targets.offsets]
    union = amodal.masks[targets.values[whole]].merge(offsets, dataset.samples.size)
    assert union[0] == CAT.amodal | BOX.amodal
    assert union[1] == GHOST.amodal | CAT.amodal
    assert union.area()[2:].tolist() == [0, 0]


@pytest.mark.parametrize("rows", [2, 1000])
def test_masks_lie_in_the_mapped_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """With one batch of rows or many, no byte of a mask is copied: its address is inside the file's mapping."""
    monkeypatch.setattr(writer_module, "FLUSH_ROWS", rows)
    dataset = Dataset.open(write(tmp_path / "tiny"))
    mapped = dataset.regions.mapped
    assert dataset.regions.table["visible"].num_chunks == (3 if rows == 2 else 1)
    first = mapped.ctypes.data
    last = mapped.ctypes.data + len(mapped)
    for kind in ("visible", "amodal"):
        masks = dataset.regions.masks(kind).masks
        assert first <= masks.data.ctypes.data + masks.start.min()
        assert masks.data.ctypes.data + masks.stop.max() <= last
    assert dataset.regions.masks("visible").masks[[0, 1]] == Masks.from_masks(
        [TAIL.visible, CAT.visible]
    )
    allocated = pa.total_allocated_bytes()
    assert (
        Dataset.open(tmp_path / "tiny").regions.masks("visible").masks.area().sum() == 9
    )
    assert pa.total_allocated_bytes() - allocated < 10_000


@pytest.mark.parametrize("rows", [2, 100])
@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_masks_of_some_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, suffix: str
) -> None:
    """Whichever rows are taken, first or last, in whatever order, they are those of the whole column."""
    monkeypatch.setattr(writer_module, "FLUSH_ROWS", rows)
    folder = write(tmp_path / "tiny")
    if suffix == "parquet":
        Dataset.open(folder).to_parquet(tmp_path / "parquet")
        folder = tmp_path / "parquet"
    count = len(Dataset.open(folder).regions)
    whole = Dataset.open(folder).regions
    for taken in ([], [0], [count - 1], [1, 0], [2, 2], range(1, count), range(count)):
        wanted = np.array(taken, np.int32)
        for kind in ("visible", "amodal", "overlap"):
            column = Dataset.open(folder).regions.take_masks(kind, wanted)
            assert column.masks == whole.masks(kind).masks[wanted]
            assert np.array_equal(column.present, whole.masks(kind).present[wanted])


def test_columns_of_one_batch_share_memory(folder: Path) -> None:
    dataset = Dataset.open(folder)
    mapped = dataset.samples.mapped
    for array in (dataset.samples.image, dataset.samples.targets.values):
        assert (
            mapped.ctypes.data <= array.ctypes.data < mapped.ctypes.data + len(mapped)
        )
        assert not array.flags.writeable


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def writer(tmp_path: Path) -> Iterable[DatasetWriter]:
    with DatasetWriter(tmp_path / "out", name="out") as opened:
        opened.add_image(IMAGES[0], [TAIL, CAT])
        yield opened


def test_duplicate_and_unknown_ids_are_refused(writer: DatasetWriter) -> None:
    with pytest.raises(RecordError, match="image 'p0' was already added"):
        writer.add_image(IMAGES[0])
    with pytest.raises(RecordError, match="image 'p1': region 'cat' was already added"):
        writer.add_image(IMAGES[1], [CAT, CAT])
    with pytest.raises(
        RecordError, match="sample 's1' asks about image 'p9', which was not added"
    ):
        writer.add_sample(Sample(id="s1", image_id="p9", question="?"))
    writer.add_sample(Sample(id="s1", image_id="p0", question="?"))
    with pytest.raises(RecordError, match="sample 's1' was already added"):
        writer.add_sample(Sample(id="s1", image_id="p0", question="?"))


def test_masks_of_another_size_are_refused(writer: DatasetWriter) -> None:
    small = Region(id="small", name="small", visible=mask("#"))
    with pytest.raises(
        RecordError, match=r"region 'small' .*\(1, 1\), but image 'p2' has \(3, 4\)"
    ):
        writer.add_image(ImageInfo(id="p2", width=4, height=3), [small])
    with pytest.raises(RecordError, match="region 'small'"):
        writer.add_sample(Sample(id="s", image_id="p0", question="?", targets=(small,)))
    with pytest.raises(RecordError, match="sample 's': its ignore mask"):
        writer.add_sample(Sample(id="s", image_id="p0", question="?", ignore=mask("#")))


def test_a_part_needs_its_parent(writer: DatasetWriter) -> None:
    image = ImageInfo(id="p2", width=4, height=3)
    with pytest.raises(
        RecordError, match="'tail' is a part of 'cat', which is unknown"
    ):
        writer.add_image(image, [TAIL])
    ring = [
        Region(id=name, name=name, visible=CAT.visible, part_of=of)
        for name, of in [("a", "b"), ("b", "c"), ("c", "a")]
    ]
    with pytest.raises(RecordError, match="'a' is indirectly a part of itself"):
        writer.add_image(image, ring)


def test_a_target_must_equal_the_region_of_its_id(writer: DatasetWriter) -> None:
    other = Region(id="cat", name="another cat", visible=CAT.visible)
    with pytest.raises(
        RecordError,
        match="target 'cat' differs from the region of that id in image 'p0'",
    ):
        writer.add_sample(Sample(id="s", image_id="p0", question="?", targets=(other,)))
    twins = (BOX, Region(id="box", name="another box", amodal=BOX.amodal))
    with pytest.raises(RecordError, match="target 'box' differs"):
        writer.add_sample(Sample(id="s", image_id="p0", question="?", targets=twins))


def test_a_refused_record_is_not_written(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out", name="out") as writer:
        with pytest.raises(RecordError):
            writer.add_image(IMAGES[0], [TAIL])
        writer.add_image(IMAGES[0], [CAT])
        with pytest.raises(RecordError):
            writer.add_sample(
                Sample(
                    id="s",
                    image_id="p0",
                    question="?",
                    targets=(BOX, BOX, GHOST, replace_cat()),
                )
            )
        writer.add_sample(Sample(id="s", image_id="p0", question="?", targets=(CAT,)))
    dataset = Dataset.open(tmp_path / "out")
    assert (len(dataset.images), len(dataset.regions), len(dataset)) == (1, 1, 1)


def replace_cat() -> Region:
    return Region(id="cat", name="another cat", visible=CAT.visible)


@pytest.mark.parametrize("path", ["/etc/passwd", "../up.png", "a/../../b.png"])
def test_image_paths_stay_below_the_root(writer: DatasetWriter, path: str) -> None:
    with pytest.raises(ImageError, match="must be relative"):
        writer.add_image(ImageInfo(id="p2", width=1, height=1, path=path))


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    first = write(tmp_path / "a")
    second = write(tmp_path / "b")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_an_error_while_writing_leaves_no_folder(tmp_path: Path) -> None:
    def fail() -> None:
        with DatasetWriter(tmp_path / "out", name="out") as writer:
            writer.add_image(IMAGES[0], [CAT])
            raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.posix
def test_a_killed_writer_leaves_no_folder_that_opens(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import os, signal
        from maskwise.schema import ImageInfo
        from maskwise.store import DatasetWriter, writer
        writer.FLUSH_ROWS = 1
        with DatasetWriter({str(tmp_path / "out")!r}, name="out") as opened:
            opened.add_image(ImageInfo(id="p", width=4, height=3))
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert (
        subprocess.run([sys.executable, "-c", script], check=False).returncode
        == -signal.SIGKILL
    )
    assert not (tmp_path / "out").exists()
    for left in tmp_path.iterdir():
        with pytest.raises(StoreError, match="not finished"):
            Dataset.open(left)
    assert len(Dataset.open(write(tmp_path / "out"))) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with (
        DatasetWriter(tmp_path / "out", name="first") as first,
        pytest.raises(StoreError, match="being written by another"),
        DatasetWriter(tmp_path / "out", name="second"),
    ):
        pass
    assert first.name == Dataset.open(tmp_path / "out").name == "first"


def test_existing_folders_are_not_replaced_by_default(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="exists already"):
        write(folder)
    assert len(Dataset.open(folder)) == 4
    with DatasetWriter(folder, name="again", overwrite=True) as writer:
        writer.add_image(IMAGES[1])
    assert len(Dataset.open(folder)) == 0
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.txt").write_text("all my work")
    with (
        pytest.raises(StoreError, match="choose another folder"),
        DatasetWriter(tmp_path / "thesis", name="x", overwrite=True),
    ):
        pass
    assert (tmp_path / "thesis" / "draft.txt").exists()


# -- opening -----------------------------------------------------------------------------------------------------------


def change_manifest(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_folders_without_a_valid_manifest_are_refused(
    tmp_path: Path, folder: Path
) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Dataset.open(tmp_path / "absent")
    with pytest.raises(
        StoreError, match=r"not finished or not a dataset: it has no manifest\.json"
    ):
        Dataset.open(tmp_path)
    for text in (b"{", b"[]", b'{"name": "\xff"}', b"[" * 100_000):
        (folder / "manifest.json").write_bytes(text)
        with pytest.raises(StoreError, match="is not a manifest"):
            Dataset.open(folder)


def test_another_schema_version_is_refused(folder: Path) -> None:
    change_manifest(folder, schema_version=99, shape="unheard of")
    with pytest.raises(StoreError, match=r"has schema version 99; maskwise .* reads 2"):
        Dataset.open(folder)


def test_counts_are_compared(folder: Path) -> None:
    change_manifest(
        folder, counts={"images": 2, "regions": 5, "samples": 7, "masks": 9}
    )
    with pytest.raises(StoreError, match="4 samples, but the manifest counts 7"):
        Dataset.open(folder)


def test_missing_and_shortened_files_are_refused(folder: Path) -> None:
    table = folder / "regions.arrow"
    whole = table.read_bytes()
    table.write_bytes(whole[:-1])
    with pytest.raises(
        StoreError, match=r"regions\.arrow has \d+ bytes; the manifest says"
    ):
        Dataset.open(folder)
    table.unlink()
    with pytest.raises(StoreError, match=r"regions\.arrow is missing"):
        Dataset.open(folder)


def test_a_changed_byte_is_found_by_verify(folder: Path) -> None:
    table = folder / "samples.arrow"
    data = bytearray(table.read_bytes())
    place = data.index(b"What is hidden?")
    data[place : place + 4] = b"When"
    table.write_bytes(data)
    dataset = Dataset.open(folder)
    assert dataset[0].question == "When is hidden?"
    with pytest.raises(
        StoreError, match=r"samples\.arrow changed after it was written"
    ):
        dataset.verify()


def test_files_outside_the_folder_are_not_tables(folder: Path) -> None:
    facts = {"bytes": 1, "sha256": "0"}
    change_manifest(folder, files={"../images.arrow": facts})
    with pytest.raises(StoreError, match="lists"):
        Dataset.open(folder)


def reseal(folder: Path) -> None:
    """Make the manifest agree with whatever the files hold now, as a hostile author would."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": "0" * 64}
        for path in folder.glob("*.arrow")
    }
    change_manifest(folder, files=files)


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(st.data())
def test_damaged_tables_raise_or_read(folder: Path, data: st.DataObject) -> None:
    """Bytes changed anywhere never crash the process; the error is ours and names the table."""
    table = folder / data.draw(
        st.sampled_from(["images.arrow", "regions.arrow", "samples.arrow"])
    )
    whole = table.read_bytes()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(
            st.integers(0, 255)
        )
    table.write_bytes(damaged)
    reseal(folder)
    try:
        dataset = Dataset.open(folder)
        list(dataset)
        list(dataset.groups())
        dataset.regions.masks("visible").masks.area()
    except MaskwiseError:
        pass
    finally:
        table.write_bytes(whole)


def test_a_damaged_name_of_a_column_is_refused(folder: Path) -> None:
    table = folder / "images.arrow"
    table.write_bytes(table.read_bytes().replace(b"attribution", b"\x80ttribution"))
    reseal(folder)
    with pytest.raises(StoreError, match=r"images\.arrow is not a table"):
        Dataset.open(folder)


# -- images ----------------------------------------------------------------------------------------------------------


def test_embedded_images_are_read(tmp_path: Path) -> None:
    Image.new("RGB", (4, 3), "red").save(tmp_path / "red.png")
    data = (tmp_path / "red.png").read_bytes()
    with DatasetWriter(tmp_path / "out", name="out") as writer:
        writer.add_image(IMAGES[1], [CAT], data)
        writer.add_image(ImageInfo(id="p2", width=4, height=3))
    dataset = Dataset.open(tmp_path / "out")
    assert dataset.open_image("p1").getpixel((0, 0)) == (255, 0, 0)
    with pytest.raises(ImageError, match="'p2' has neither a path nor embedded bytes"):
        dataset.open_image("p2")


def test_images_by_path(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="give their folder"):
        Dataset.open(folder).open_image("p0")
    (tmp_path / "root" / "a").mkdir(parents=True)
    Image.new("RGB", (4, 3), "blue").save(tmp_path / "root" / "a" / "0.png")
    dataset = Dataset.open(folder, image_root=tmp_path / "root")
    assert dataset.open_image(0).getpixel((3, 2)) == (0, 0, 255)
    assert dataset[0:1].open_image("p0").size == (4, 3)
    Image.new("RGB", (3, 4)).save(tmp_path / "root" / "a" / "0.png")
    with pytest.raises(
        ImageError, match="'p0' is 3 x 4 on disk, but its masks are for 4 x 3"
    ):
        dataset.open_image("p0")


def test_images_inside_the_folder_move_with_it(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out", name="out", image_root="images") as writer:
        (writer.folder / "images" / "a").mkdir(parents=True)
        Image.new("RGB", (4, 3), "lime").save(writer.folder / "images" / "a" / "0.png")
        writer.add_image(IMAGES[0])
    (tmp_path / "out").rename(tmp_path / "moved")
    assert Dataset.open(tmp_path / "moved").open_image("p0").getpixel((1, 1)) == (
        0,
        255,
        0,
    )


@pytest.mark.posix
def test_a_hostile_path_in_a_table_is_refused(folder: Path, tmp_path: Path) -> None:
    table = folder / "images.arrow"
    table.write_bytes(table.read_bytes().replace(b"a/0.png", b"../../x"))
    reseal(folder)
    with pytest.raises(ImageError, match="must be relative"):
        Dataset.open(folder, image_root=tmp_path).open_image("p0")
    os.symlink("/", tmp_path / "a")
    table.write_bytes(table.read_bytes().replace(b"../../x", b"a/etc/x"))
    with pytest.raises(ImageError, match="through a link"):
        Dataset.open(folder, image_root=tmp_path).open_image("p0")


def test_older_folders_have_no_licenses(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(bundled(), folder)
    file = folder / "images.arrow"
    table = pa.ipc.open_file(file.read_bytes()).read_all()
    older = table.drop_columns(["license", "attribution"])
    with pa.ipc.new_file(file, older.schema) as writer:
        writer.write_table(older)
    reseal(folder)
    dataset = Dataset.open(folder)
    assert set(dataset.images.license) == set(dataset.images.attribution) == {None}
    dataset.to_parquet(tmp_path / "copy")
    assert Dataset.open(tmp_path / "copy").image(0) == dataset.image(0)


def test_targets_of_further_annotators_reach_the_ground_truth(
    dataset: Dataset,
) -> None:
    truth = GroundTruth.from_dataset(dataset)
    expected = GroundTruth.from_samples(SAMPLES, [(3, 4)] * len(SAMPLES))
    assert len(truth.others) == 2
    for other, reference in zip(truth.others, expected.others, strict=True):
        assert other.known.tolist() == reference.known.tolist()
        assert other.offsets.tolist() == reference.offsets.tolist()
        assert list(other.visible.masks) == list(reference.visible.masks)
    # A view keeps the annotators of its own samples.
    last = GroundTruth.from_dataset(dataset[3:])
    assert [other.known.tolist() for other in last.others] == [[True], [True]]
    assert not GroundTruth.from_dataset(dataset[:3]).others


def test_a_folder_without_other_targets_opens(folder: Path) -> None:
    path = folder / "samples.arrow"
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    older = table.drop_columns(["other_targets", "turns"])
    with pa.ipc.new_file(str(path), older.schema) as file:
        file.write_table(older)
    reseal(folder)
    assert [sample.other_targets for sample in Dataset.open(folder)] == [()] * 4


def test_a_file_that_changes_after_it_was_opened_is_checked_again(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    region = Region(id="r", name="cup", visible=Mask.empty(4, 4))
    with DatasetWriter(folder, name="data") as writer:
        writer.add_image(ImageInfo(id="p", width=4, height=4, path="p.png"), (region,))
    Dataset.open(folder)
    table = folder / "regions.arrow"
    content = bytearray(table.read_bytes())
    place = content.index(b"cup")
    content[place] = 0xFF  # not UTF-8
    table.write_bytes(content)
    with pytest.raises(StoreError):
        Dataset.open(folder)

"""RefCOCO and its relatives: splits, partitions, sentences, false expressions, overlapping parts, hub copies."""

import io
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from maskwise.benchmarks.refcoco import matches_split
from maskwise.errors import FormatError
from tests.formats import layouts
from tests.formats.reading import read, reasons

OVERLAPPING = [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0, 1.0, 5.0], [3.0, 3.0, 8.0, 3.0, 8.0, 8.0]]


def write_family(root: Path, folder: str, file: str, references: list[Any]) -> Path:
    layouts.write_image(root / "train2014/COCO_train2014_1.jpg")
    instances = [
        {"id": 7, "image_id": 1, "category_id": 1, "segmentation": OVERLAPPING},
        {
            "id": 8,
            "image_id": 1,
            "category_id": 2,
            "segmentation": [layouts.rle(layouts.FRONT)],
        },
        {"id": 9, "image_id": 1, "category_id": 2, "segmentation": []},
    ]
    content = {
        "images": layouts.images("COCO_train2014_1.jpg"),
        "annotations": instances,
        "categories": layouts.CATEGORIES,
    }
    layouts.write_json(root / folder / "instances.json", content)
    path = root / folder / file
    path.write_bytes(pickle.dumps(references, 2))
    return path


def reference(ref_id: int, ann_id: Any, split: str, *texts: Any) -> dict[str, Any]:
    sentences = []
    for number, text in enumerate(texts):
        fields = text if isinstance(text, dict) else {"sent": text}
        sentences.append(
            {"sent_id": 10 * ref_id + number, "raw": "x", "tokens": []} | fields
        )
    return {
        "ref_id": ref_id,
        "ann_id": ann_id,
        "category_id": 1,
        "image_id": 1,
        "file_name": "COCO_train2014_1_7.jpg",
        "split": split,
        "sent_ids": [],
        "sentences": sentences,
    }


REFERENCES = [
    reference(1, 7, "val", " The Cat ", "cat on the left"),
    reference(2, 8, "val", "dog"),
    reference(3, 8, "testA", "pup"),
    reference(4, 9, "testB", "nothing"),
    reference(5, 7, "testAB", "both"),
]


def samples(*args: Any, **options: Any) -> list[tuple[str, str, list[str]]]:
    (scene,), _ = read(*args, **options)
    return [
        (sample.id, sample.question, [region.id for region in sample.targets])
        for sample in scene.samples
    ]


def test_all_sentences_or_the_first_of_each_reference(tmp_path: Path) -> None:
    write_family(tmp_path, "refcoco", "refs(unc).p", REFERENCES)
    assert samples("refcoco", tmp_path, split="val") == [
        ("1/10", "the cat", ["7"]),
        ("1/11", "cat on the left", ["7"]),
        ("2/20", "dog", ["8"]),
    ]
    first = samples("refcoco", tmp_path, split="val", options={"sentences": "first"})
    assert [question for _, question, _ in first] == ["the cat", "dog"]


def test_splits_are_matched_by_their_letter(tmp_path: Path) -> None:
    write_family(tmp_path, "refer_seg/refcoco+", "refs(unc).p", REFERENCES)
    options = {"images": tmp_path}
    names = [
        [id for id, _, _ in samples("refcoco+", tmp_path, split=split, **options)]
        for split in ("testA", "testB")
    ]
    assert names == [["3/30", "5/50"], ["4/40", "5/50"]]
    assert matches_split("testC", "test")
    assert not matches_split("training", "train")


def test_empty_and_run_length_masks_are_read(tmp_path: Path) -> None:
    write_family(tmp_path, "refclef", "refs(unc).p", REFERENCES)
    (scene,), diagnostics = read(
        "refclef", tmp_path, split="testB", images=tmp_path / "train2014"
    )
    assert not diagnostics
    assert {region.id: region.visible.area for region in scene.regions}["9"] == 0


def test_overlapping_parts_are_a_union_or_as_in_lisa(tmp_path: Path) -> None:
    write_family(tmp_path, "refcocog", "refs(umd).p", REFERENCES)
    (scene,), _ = read("refcocog", tmp_path, split="val")
    assert all(region.overlap is None for region in scene.regions)
    (lisa,), _ = read("refcocog", tmp_path, split="val", options={"parts": "sum"})
    assert lisa.regions[0].visible == scene.regions[0].visible
    assert lisa.regions[0].overlap is not None
    assert 0 < lisa.regions[0].overlap.area < lisa.regions[0].visible.area


def test_partitions_are_chosen_by_name(tmp_path: Path) -> None:
    write_family(tmp_path, "refcocog", "refs(umd).p", REFERENCES)
    google = [reference(1, 7, "val", "google's cat")]
    (tmp_path / "refcocog/refs(google).p").write_bytes(pickle.dumps(google))
    options = {"partition": "google"}
    [(_, question, _)] = samples("refcocog", tmp_path, split="val", options=options)
    assert question == "google's cat"
    with pytest.raises(FormatError, match=r"refs\(google\)\.p, refs\(umd\)\.p"):
        read("refcocog", tmp_path, split="val", options={"partition": "unc"})


@pytest.mark.parametrize(
    ("name", "file", "fields"),
    [
        (
            "fp-refcoco",
            "fprefcoco/refs(berkeley_exclude_unified).p",
            {"is_false_premise": True, "gt_sent": "cat"},
        ),
        ("r-refcocog", "R-refcocog/refs(umd).p", {"exist": False}),
    ],
)
def test_false_expressions_have_no_target(
    name: str, file: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    folder, file_name = file.split("/")
    references = [reference(1, 7, "val", "cat", {"sent": "a cow"} | fields)]
    write_family(tmp_path, folder, file_name, references)
    found = samples(name, tmp_path, split="val")
    assert [targets for _, _, targets in found] == [["7"], []]


def test_ref_zom_has_none_one_and_many_targets(tmp_path: Path) -> None:
    references = [
        reference(1, [7, 8], "test", "both") | {"source": "multi"},
        reference(2, 7, "test", "cow") | {"source": "zero"},
        reference(3, 8, "test", "dog") | {"source": "one"},
    ]
    write_family(tmp_path, "refzom", "Ref_ZOM.p", references)
    found = samples("ref-zom", tmp_path, split="test")
    assert [targets for _, _, targets in found] == [["7", "8"], [], ["8"]]


def test_bad_references_are_skipped(tmp_path: Path) -> None:
    broken = reference(9, 7, "val", "x") | {"sentences": "text"}
    unknown = reference(10, 7, "val", "x") | {"image_id": 99}
    references = [*REFERENCES, broken, unknown, 5, reference(11, 99, "val", "gone")]
    write_family(tmp_path, "refcoco", "refs(unc).p", references)
    (scene,), diagnostics = read("refcoco", tmp_path, split="val")
    assert len(scene.samples) == 3
    assert set(reasons(diagnostics)) == {
        "fields of another type",
        "reference to an unknown image",
        "question about a skipped region",
    }


def test_a_hostile_pickle_is_refused(tmp_path: Path) -> None:
    path = write_family(tmp_path, "refcoco", "refs(unc).p", REFERENCES)
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(FormatError, match=r"names the global os\.system"):
        read("refcoco", tmp_path, split="val")


# -- copies on the hub


def encode_image() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (layouts.WIDTH, layouts.HEIGHT)).save(out, "PNG")
    return out.getvalue()


def mirror_reference(number: int) -> dict[str, Any]:
    return {
        "ref_id": number,
        "ann_id": 7,
        "image_id": 1,
        "sentences": [
            {"sent": "The cat", "sent_id": 2 * number, "raw": "", "tokens": []},
            {"sent": "a cat", "sent_id": 2 * number + 1, "raw": "", "tokens": []},
        ],
    }


IMAGE_INFO = {
    "file_name": "COCO_train2014_1.jpg",
    "height": layouts.HEIGHT,
    "width": layouts.WIDTH,
}


def write_rows(root: Path, split: str, rows: list[Any]) -> None:
    path = root / "data" / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_mirrors_of_references_are_read(tmp_path: Path) -> None:
    rows = []
    for number in (1, 2):
        texts = {
            "raw_anns": json.dumps({"segmentation": OVERLAPPING, "id": 7}),
            "raw_image_info": json.dumps(IMAGE_INFO),
        }
        rows.append(mirror_reference(number) | texts)
    write_rows(tmp_path, "test", rows)
    found = samples("refcoco-mirror", tmp_path, with_images=False)
    assert [id for id, _, _ in found] == ["1/2", "1/3", "2/4", "2/5"]


def test_mirrors_of_images_are_read(tmp_path: Path) -> None:
    row = {
        "image": {"bytes": encode_image(), "path": "x.png"},
        "image_info": IMAGE_INFO,
        "ref_list": [
            {"ref_info": mirror_reference(1), "ann_info": {"segmentation": OVERLAPPING}}
        ],
    }
    write_rows(tmp_path, "refcoco_unc_testA", [row])
    options = {"sentences": "first", "parts": "sum"}
    (scene,), _ = read("refcoco-mirror", tmp_path, options=options)
    assert scene.data is not None
    assert len(scene.samples) == 1
    assert scene.regions[0].overlap is not None


def test_mirrors_with_flat_masks_say_that_parts_are_joined(tmp_path: Path) -> None:
    row = {
        "question_id": "q1",
        "image": {"bytes": encode_image(), "path": "x.png"},
        "segmentation": OVERLAPPING[0],
        "bbox": [1.0, 1.0, 4.0, 4.0],
        "answer": ["the cat", "cat"],
    }
    write_rows(tmp_path, "val", [row])
    (scene,), diagnostics = read("refcoco-mirror", tmp_path)
    assert [sample.question for sample in scene.samples] == ["the cat", "cat"]
    assert reasons(diagnostics, kept=True) == ["parts of a mask may be joined"]


def test_other_parquet_files_are_refused(tmp_path: Path) -> None:
    write_rows(tmp_path, "val", [{"a": 1}])
    with pytest.raises(FormatError, match="found: a"):
        read("refcoco-mirror", tmp_path)

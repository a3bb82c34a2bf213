"""Records of no published format: what the mapping says is read, what it does not say is not guessed."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from maskwise.benchmarks import find_benchmark
from maskwise.benchmarks.amodalreasonseg import MAPPING as ARS_MAPPING
from maskwise.benchmarks.r2sm import MAPPING as R2SM_MAPPING
from maskwise.errors import FormatError
from maskwise.formats import convert_annotations
from maskwise.formats.field_mapping import FieldMapping
from maskwise.store import Dataset
from maskwise.yaml_files import read_yaml
from tests.formats import layouts
from tests.formats.reading import read, reasons


def mapping_file(root: Path, base: Path, **changes: Any) -> Path:
    path = root / "mine.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(base.read_text()) | changes))
    return path


def test_r2sm_takes_the_mask_of_the_type_asked_for(tmp_path: Path) -> None:
    layouts.r2sm(tmp_path)
    (scene,), _ = read("r2sm", tmp_path)
    modal, amodal = scene.samples
    assert (modal.mask_type, amodal.mask_type) == ("visible", "amodal")
    assert modal.targets[0].visible is not None
    assert (modal.targets[0].visible.area, modal.targets[0].amodal) == (6, None)
    assert amodal.targets[0].amodal is not None
    assert (amodal.targets[0].amodal.area, amodal.targets[0].visible) == (12, None)


def test_amodalreasonseg_wants_both_masks(tmp_path: Path) -> None:
    layouts.amodalreasonseg(tmp_path)
    (scene,), _ = read("amodalreasonseg", tmp_path)
    (sample,) = scene.samples
    assert sample.mask_type == "both"
    assert [
        (region.name, region.occluded and region.occluded.area)
        for region in sample.targets
    ] == [
        ("pizza", 6),
        ("knife", 0),
    ]
    assert sample.answer is not None
    assert sample.answer.text == "The pizza is cut with a knife."
    words = [
        sample.answer.text[phrase.start : phrase.stop]
        for phrase in sample.answer.phrases
    ]
    assert words == ["pizza", "knife"]


def test_one_token_for_several_objects_leaves_phrases_open(tmp_path: Path) -> None:
    path = layouts.amodalreasonseg(tmp_path)
    records = json.loads(path.read_text())
    records[0]["answer"] = "The two things [SEG]."
    layouts.write_json(path, records)
    (scene,), diagnostics = read("amodalreasonseg", tmp_path)
    assert scene.samples[0].answer is not None
    assert scene.samples[0].answer.phrases == ()
    assert reasons(diagnostics, kept=True) == ["answer does not fit its targets"]


def test_a_missing_field_names_mapping_and_fields(tmp_path: Path) -> None:
    path = layouts.r2sm(tmp_path)
    layouts.write_json(path, [{"image": "1.jpg", "text": "the cup", "rle": {}}])
    with pytest.raises(
        FormatError,
        match=r"r2sm\.yaml: no field 'mask_type'; the record has: image, rle, text",
    ):
        read("r2sm", tmp_path)


def test_a_field_missing_later_costs_one_record(tmp_path: Path) -> None:
    path = layouts.r2sm(tmp_path)
    records = json.loads(path.read_text())
    bad = [
        {"image": "1.jpg"},
        {"query": "x"},
        records[0] | {"mask_type": "unclear"},
        records[0] | {"query": 7},
        records[0] | {"image": ["1.jpg"]},
        "text",
    ]
    layouts.write_json(path, [*records, *bad])
    (scene,), diagnostics = read("r2sm", tmp_path)
    assert len(scene.samples) == 2
    assert len(reasons(diagnostics)) == len(bad)


def test_dots_reach_inside(tmp_path: Path) -> None:
    layouts.write_image(tmp_path / "a/1.jpg")
    record = {
        "meta": {"file": "a/1.jpg", "size": [10, 12]},
        "qa": [{"q": "What?", "kind": "whole"}],
        "gt": {"rle": layouts.rle(layouts.FRONT)},
    }
    layouts.write_json(tmp_path / "val.json", {"set": {"items": [record]}})
    mapping = mapping_file(
        tmp_path,
        R2SM_MAPPING,
        records="set.items",
        image="meta.file",
        height="meta.size.0",
        width="meta.size.1",
        question="qa.0.q",
        mask_type="qa.0.kind",
        mask_types={"whole": "amodal"},
        target={"mask": "gt.rle"},
        tags={"kind": "qa.0.kind"},
    )
    (scene,), diagnostics = read("r2sm", tmp_path, mapping=mapping)
    (sample,) = scene.samples
    assert (sample.question, sample.mask_type, sample.tags) == (
        "What?",
        "amodal",
        {"split": "val", "kind": "whole"},
    )
    assert diagnostics == []
    wrong = mapping_file(tmp_path, R2SM_MAPPING, records="set.gone")
    with pytest.raises(FormatError, match=r"no field 'set\.gone'.*it has: items"):
        read("r2sm", tmp_path, mapping=wrong)


def test_json_lines(tmp_path: Path) -> None:
    path = layouts.r2sm(tmp_path)
    records = json.loads(path.read_text())
    path.unlink()
    lines = [json.dumps(record) for record in records]
    (tmp_path / "val.jsonl").write_text(
        "\n".join([lines[0], "", "{broken", lines[1]]) + "\n"
    )
    (scene,), diagnostics = read("r2sm", tmp_path)
    assert [sample.id for sample in scene.samples] == ["line 1", "line 4"]
    assert [diagnostic.record for diagnostic in diagnostics] == ["line 3"]


def png(color: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (12, 10), (color, 0, 0)).save(out, "PNG")
    return out.getvalue()


def test_parquet_with_images_inside(tmp_path: Path) -> None:
    """As the hub keeps datasets: shards, images as bytes, run lengths as structs of bytes."""
    mask = layouts.rle(layouts.FRONT)
    rows = [
        {
            "image": {"bytes": png(number // 2), "path": f"{number}.png"},
            "query": f"question {number}",
            "mask_type": "modal",
            "mask": {"size": mask["size"], "counts": mask["counts"].encode()},
        }
        for number in range(4)
    ]
    (tmp_path / "in/data").mkdir(parents=True)
    for shard in range(2):
        table = pa.Table.from_pylist(rows[2 * shard : 2 * shard + 2])
        pq.write_table(table, tmp_path / f"in/data/val-0000{shard}-of-00002.parquet")
    summary = convert_annotations(
        find_benchmark("r2sm"), tmp_path / "in", tmp_path / "out"
    )
    assert summary.kept == {"images": 2, "regions": 2, "questions": 4, "targets": 4}
    dataset = Dataset.open(tmp_path / "out")
    assert dataset.open_image(dataset[0].image_id).size == (12, 10)
    assert [sample.question for sample in dataset] == [
        f"question {number}" for number in range(4)
    ]
    # One of the files stands for its split.
    file = tmp_path / "in/data/val-00000-of-00002.parquet"
    convert_annotations(find_benchmark("r2sm"), file, tmp_path / "of_file")
    of_file = Dataset.open(tmp_path / "of_file")
    assert of_file.samples.id == dataset.samples.id
    assert of_file.name == dataset.name


def test_a_parquet_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "val.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(FormatError, match="not a valid Parquet file"):
        read("r2sm", tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"surprise": 1},
        {"mask_types": {"a": "hidden"}},
        {"default_mask_type": "none"},
        {"image": None},
        {"target": 3},
    ],
)
def test_a_mapping_that_is_none(changes: dict[str, Any], tmp_path: Path) -> None:
    layouts.r2sm(tmp_path)
    with pytest.raises(FormatError, match=r"mine\.yaml does not follow its format"):
        read("r2sm", tmp_path, mapping=mapping_file(tmp_path, R2SM_MAPPING, **changes))


def test_one_mask_cannot_answer_for_both_types(tmp_path: Path) -> None:
    layouts.r2sm(tmp_path)
    mapping = mapping_file(
        tmp_path, R2SM_MAPPING, mask_types={"modal": "both", "amodal": "both"}
    )
    with pytest.raises(FormatError, match="both masks needs `visible` and `amodal`"):
        read("r2sm", tmp_path, mapping=mapping)


def test_the_defaults_declare_every_field() -> None:
    for path in (ARS_MAPPING, R2SM_MAPPING):
        read_yaml(path, FieldMapping)
        declared = yaml.safe_load(path.read_text())
        assert set(declared) == set(FieldMapping.__struct_fields__)

"""Boolean-matrix Parquet: masks come from Arrow's buffers, whatever the list type; merged pixels are named."""

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import maskwise as mw
from maskwise.errors import FormatError, MaskError
from maskwise.formats.matrix_columns import decode_matrix, is_matrix_type
from maskwise.schema import PredictedRegion, Prediction
from maskwise.store.folder import IGNORED_PIXELS, MERGED
from tests.formats.reading import read, reasons

PLANES = np.random.default_rng(0).random((3, 9, 13)) > 0.5


def encode_image(color: int, size: tuple[int, int] = (13, 9)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (color, 0, 0)).save(out, "PNG")
    return out.getvalue()


def make_row(number: int, mask: Any, **fields: Any) -> dict[str, Any]:
    return {
        "image": {"bytes": encode_image(number), "path": None},
        "text": f"question {number}",
        "mask": mask,
        "image_id": f"image{number}",
        "ann_id": str(number),
        "img_height": 9,
        "img_width": 13,
    } | fields


def write_rows(root: Path, rows: list[Any], split: str = "test", **types: Any) -> Path:
    table = pa.Table.from_pylist(rows)
    for name, type in types.items():
        values = pa.array([row[name] for row in rows], type)
        table = table.set_column(table.schema.get_field_index(name), name, values)
    path = root / "data" / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=2)
    return path


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.list_(pa.bool_())),
        pa.large_list(pa.large_list(pa.bool_())),
        pa.list_(pa.list_(pa.uint8())),
        pa.list_(pa.list_(pa.int64())),
        pa.list_(pa.list_(pa.bool_(), 13), 9),
    ],
    ids=str,
)
def test_matrices_of_every_list_type_are_decoded(type: pa.DataType) -> None:
    is_boolean = "bool" in str(type)
    planes = PLANES if is_boolean else PLANES.astype(int)
    column = pa.array([None, *planes.tolist()], type)
    assert is_matrix_type(type)
    # Slices share the buffers, so offsets matter; 9 * 13 bits are no whole bytes.
    for array in (column, column[1:]):
        shift = len(array) - len(PLANES)
        for number, plane in enumerate(PLANES):
            mask = decode_matrix(array, number + shift)
            assert mask is not None
            assert (mask.to_dense() == plane).all()
    assert decode_matrix(column, 0) is None


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[True, False], [True]], "different lengths"),
        ([[True, None]], "without a value"),
        ([None, [True]], "without pixels"),
        ([], "empty"),
        ([[]], "empty"),
    ],
)
def test_invalid_matrices_are_errors(matrix: Any, message: str) -> None:
    column = pa.array([matrix], pa.list_(pa.list_(pa.bool_())))
    with pytest.raises(MaskError, match=message):
        decode_matrix(column, 0)


def test_other_numbers_and_polygons_are_no_matrices() -> None:
    numbers = pa.array([[[10, 12, 30, 40]]], pa.list_(pa.list_(pa.int64())))
    with pytest.raises(MaskError, match="0 and 1"):
        decode_matrix(numbers, 0)
    assert not is_matrix_type(pa.list_(pa.list_(pa.float64())))
    assert not is_matrix_type(pa.list_(pa.int64()))


def test_rows_become_questions_and_merged_pixels_are_named(tmp_path: Path) -> None:
    rows = [make_row(number, plane.tolist()) for number, plane in enumerate(PLANES)]
    rows.append(make_row(3, np.zeros((9, 13), bool).tolist()))
    rows.append(make_row(3, PLANES[0].tolist()) | {"image": rows[3]["image"]})
    write_rows(tmp_path, rows)
    summary = mw.read_dataset("hub-matrices", tmp_path, tmp_path / "out")
    assert summary.split == "test"
    assert summary.kept == {"images": 4, "regions": 4, "questions": 5, "targets": 4}
    assert list(summary.warnings) == ["ignored pixels are merged into the targets"]
    dataset = mw.load_dataset(tmp_path / "out")
    assert dataset.manifest.about[IGNORED_PIXELS] == MERGED
    assert "as the copy calls it" in dataset.manifest.about["split_name"]
    assert (dataset[1].targets[0].visible.to_dense() == PLANES[1]).all()
    assert dataset[1].image.size == (13, 9)


def test_lisa_warns_about_merged_pixels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_rows(tmp_path, [make_row(0, PLANES[0].tolist())])
    mw.read_dataset("hub-matrices", tmp_path, tmp_path / "out")
    dataset = mw.load_dataset(tmp_path / "out")
    sample = dataset[0]
    region = PredictedRegion(visible=sample.targets[0].visible)
    predictions = [Prediction(sample=sample.id, regions=(region,))]
    with caplog.at_level(logging.WARNING):
        mw.score(predictions, dataset, protocols=["segzero"])
        assert not caplog.records
        mw.score(predictions, dataset, protocols=["lisa", "segzero"])
    assert "scores under lisa are not those of the original" in caplog.text


@pytest.mark.parametrize(
    "fields", [{"bbox": [0, 0, 5, 5]}, {"ann_id": [1, 2], "file_name": "a.jpg"}]
)
def test_copies_without_ignored_pixels_do_not_claim_them(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    write_rows(tmp_path, [make_row(0, PLANES[0].tolist(), **fields)], "train")
    (scene,), diagnostics = read("hub-matrices", tmp_path)
    assert not diagnostics
    assert scene.samples[0].tags["split"] == "train"
    _, diagnostics = read("hub-matrices", tmp_path, options={"ignored": "merged"})
    assert len(diagnostics) == 1


def test_bad_rows_are_skipped(tmp_path: Path) -> None:
    rows = [
        make_row(0, PLANES[0].tolist()),
        make_row(1, [[True], [True, False]]),
        make_row(2, None),
        make_row(3, PLANES[0].tolist(), text=None),
        make_row(4, PLANES[0].tolist(), image={"bytes": b"no image", "path": None}),
        make_row(5, PLANES[0, :5].tolist()),
    ]
    write_rows(tmp_path, rows)
    scenes, diagnostics = read("hub-matrices", tmp_path)
    assert sum(len(scene.samples) for scene in scenes) == 1
    assert sorted(reasons(diagnostics)) == [
        "fields of another type",
        "invalid mask",
        "invalid mask",
        "invalid mask",
        "question about a skipped region",
        "unreadable image",
    ]


def test_polygons_are_refused(tmp_path: Path) -> None:
    write_rows(tmp_path, [make_row(0, [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0]])])
    with pytest.raises(FormatError, match="matrix of bools"):
        read("hub-matrices", tmp_path)


def test_records_refuse_an_integer_matrix_as_polygons(tmp_path: Path) -> None:
    rows = [make_row(0, PLANES[0].astype(int).tolist())]
    path = write_rows(tmp_path, rows)
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("image: image\nquestion: text\ntarget: {mask: mask}\n")
    with pytest.raises(FormatError, match="hub-matrices"):
        read("records", path, mapping=mapping)

"""The tables of a run: made from scores, written, read, and turned into arrays again."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from maskwise.errors import StoreError
from maskwise.runs import Run
from maskwise.runs.tables import (
    MAIN_METRICS,
    SCORE_COLUMNS,
    column_codes,
    column_numbers,
    column_texts,
    read_table,
    select_rows,
    table_to_rows,
    write_table,
)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = pa.table({"sample": ["a", "b"], "value": [0.5, None]})
    write_table(tmp_path / "t.arrow", table)
    again = read_table(tmp_path / "t.arrow", ["sample"])
    assert again.equals(table)
    assert [path.name for path in tmp_path.iterdir()] == ["t.arrow"]


def test_a_missing_table_or_column_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"t\.arrow cannot be read.*score the run"):
        read_table(tmp_path / "t.arrow", [])
    write_table(tmp_path / "t.arrow", pa.table({"a": [1]}))
    with pytest.raises(StoreError, match="no column 'b'; score the run again"):
        read_table(tmp_path / "t.arrow", ["a", "b"])


def test_bytes_that_are_no_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.arrow").write_bytes(b"PK\x03\x04" * 50)
    with pytest.raises(StoreError, match="cannot be read"):
        read_table(tmp_path / "t.arrow", [])


def test_a_damaged_name_of_a_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    write_table(path, pa.table({"protocol": [1]}))
    path.write_bytes(path.read_bytes().replace(b"protocol", b"\x80rotocol"))
    with pytest.raises(StoreError, match=r"t\.arrow cannot be read"):
        read_table(path, ["protocol"])


def test_codes_are_in_order_of_first_appearance_and_null_is_a_name() -> None:
    for column in (
        pa.chunked_array([["b", "a"], ["b", None]]),
        pa.chunked_array([pa.array(["b", "a", "b", None]).dictionary_encode()]),
    ):
        codes = column_codes(column)
        assert codes.names == ("b", "a", None)
        assert codes.codes.tolist() == [0, 1, 0, 2]


def test_an_empty_column_has_no_codes() -> None:
    codes = column_codes(pa.chunked_array([pa.array([], pa.string())]))
    assert codes.names == ()
    assert len(codes.codes) == 0


def test_null_numbers_are_nan_and_texts_are_a_list() -> None:
    numbers = column_numbers(pa.chunked_array([[1.5, None]]))
    assert numbers[0] == 1.5
    assert np.isnan(numbers[1])
    assert column_texts(pa.chunked_array([["a"], ["b"]])) == ["a", "b"]


def test_the_score_table_has_one_row_per_protocol_and_sample(run: Run) -> None:
    table = run.score_table
    assert set(SCORE_COLUMNS) <= set(table.column_names)
    assert table.num_rows == len(run) * len(run.ids)
    for protocol in run:
        part = select_rows(table, protocol)
        assert column_texts(part["sample"]) == run.ids
    assert select_rows(table, "nothing").num_rows == 0


def test_the_rows_of_a_protocol_are_its_columns(run: Run) -> None:
    rows = table_to_rows(select_rows(run.score_table, "strict"))
    count = len(run.ids)
    for values in (rows.value, rows.numerator, rows.weight):
        assert values.shape == (count,)
        assert values.dtype == np.float64
    assert rows.intersection.dtype == rows.union.dtype == np.int64
    assert (rows.intersection <= rows.union).all()
    assert (rows.scored == ~np.isnan(rows.value)).all()
    assert set(rows.slices) >= {"mask_type", "targets", "kind"}
    statuses = np.array(rows.status.names)[rows.status.codes]
    assert ((statuses == "scored") == rows.scored).all()
    reasons = np.array(rows.reason.names, object)[rows.reason.codes]
    assert all(
        (reason is None) == scored for reason, scored in zip(reasons, rows.scored)
    )


def test_the_metric_table_has_the_terms_that_the_score_table_has_not(run: Run) -> None:
    names = run.metric_table.column_names
    assert run.metric_table.num_rows == len(run.ids)
    for protocol, scores in run.scores.protocols.items():
        for metric in scores.metrics:
            listed = f"{protocol}/{metric}/numerator" in names
            assert listed == (metric not in MAIN_METRICS)

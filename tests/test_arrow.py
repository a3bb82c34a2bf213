"""Conversions between Arrow and numpy: those of pyarrow, without its import of pandas."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from maskwise.arrow import (
    arrow_to_numpy,
    nulls_to_zeros,
    numpy_to_arrow,
    text_to_arrow,
)
from maskwise.world import write_scenes

ARRAYS = [
    pa.array([1, 2, 3], pa.int32()),
    pa.array([], pa.int64()),
    pa.array([0.5, 2.0]),
    pa.array([True, False, True, True]),
    pa.array([1, None, 3], pa.int32()),
    pa.array([True, None]),
]


@pytest.mark.parametrize("array", ARRAYS)
def test_arrays_equal_those_of_pyarrow(array: pa.Array) -> None:
    for part in (array, array[1:], array[:-1]):
        expected = part.to_numpy(zero_copy_only=False)
        assert arrow_to_numpy(part).dtype == expected.dtype
        np.testing.assert_array_equal(arrow_to_numpy(part), expected)
    chunks = pa.chunked_array([array, array])
    np.testing.assert_array_equal(arrow_to_numpy(chunks), chunks.to_numpy())


def test_a_null_is_zero_whatever_the_memory_under_it_holds() -> None:
    values = np.array([7, 8, 9, 10], np.int64)
    array = numpy_to_arrow(values, np.array([False, True, False, True]))
    assert array.to_pylist() == [7, None, 9, None]
    assert nulls_to_zeros(array).tolist() == [7, 0, 9, 0]
    assert nulls_to_zeros(array[1:]).tolist() == [0, 9, 0]
    assert nulls_to_zeros(array[2:3]).tolist() == [9]
    assert nulls_to_zeros(pa.chunked_array([array, array[:1]])).tolist() == [
        *[7, 0, 9, 0],
        7,
    ]


@pytest.mark.parametrize("text", ["", "key", "Schlüssel"])
def test_texts(text: str) -> None:
    assert text_to_arrow(text).as_py() == text


def test_scoring_does_not_import_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    write_scenes(tmp_path / "scenes", 2, 0)
    code = (
        "import sys\n"
        "from maskwise.store import Dataset\n"
        "from maskwise.protocols import GroundTruth\n"
        "truth = GroundTruth.from_dataset(Dataset.open(sys.argv[1]))\n"
        "assert len(truth) and dict(truth.tags)\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "scenes")], check=True)

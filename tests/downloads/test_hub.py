"""Datasets of the hub: streamed through a seam into the data folder; without a connection there is a clear error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import maskwise as mw
from maskwise.cli.main import app
from maskwise.downloads import hub as hub_module
from maskwise.downloads.hub import DatasetsHub, read_hub_dataset
from maskwise.errors import DownloadError, FormatError, MissingDependencyError
from tests.benchmarks.test_hub_matrices import PLANES, make_row

ROWS = [make_row(number, plane.tolist()) for number, plane in enumerate(PLANES)]


class FakeHub:
    """A hub with one dataset."""

    def __init__(self, rows: list[Any] = ROWS) -> None:
        self.rows = rows
        self.asked: list[tuple[str, str]] = []

    def splits(self, name: str) -> list[str]:
        return ["test"] if name == "lab/copy" else ["train", "val"]

    def batches(self, name: str, split: str) -> Iterator[pa.Table]:
        self.asked.append((name, split))
        schema = pa.Table.from_pylist(self.rows).schema if self.rows else None
        for row in self.rows:
            yield pa.Table.from_pylist([row], schema=schema)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_dataset_is_streamed_once_and_then_opened(data: Path) -> None:
    hub = FakeHub()
    for _ in range(2):
        dataset = mw.load_dataset("hf:lab/copy", hub=hub)
        assert len(dataset) == 3
    assert hub.asked == [("lab/copy", "test")]
    assert (dataset[1].targets[0].visible.to_dense() == PLANES[1]).all()
    assert dataset[1].image.size == (13, 9)
    assert dataset.manifest.about["ignored_pixels"] == "merged into the targets"
    assert [path.name for path in (data / "hub").iterdir()] == ["lab--copy--test"]


def test_several_splits_have_to_be_chosen() -> None:
    with pytest.raises(FormatError, match="choose a split; found: train, val"):
        mw.load_dataset("hf:lab/other", hub=FakeHub())


def test_unknown_columns_are_listed(data: Path) -> None:
    with pytest.raises(FormatError, match="no reader fits the columns a, b"):
        mw.load_dataset("hf:lab/copy", hub=FakeHub([{"a": 1, "b": 2}]))
    assert not list((data / "hub").iterdir())
    with pytest.raises(FormatError, match="no rows"):
        mw.load_dataset("hf:lab/copy", hub=FakeHub([]))


def test_a_split_is_for_the_hub_only() -> None:
    with pytest.raises(mw.MaskwiseError, match="split is for datasets of the hub"):
        mw.load_dataset("world", split="test")


def test_the_library_streams_a_local_folder(tmp_path: Path) -> None:
    """The same code as for the hub: `datasets` takes a folder of Parquet files as a name."""
    pytest.importorskip("datasets")
    folder = tmp_path / "copy" / "data"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "test-00000-of-00001.parquet")
    assert DatasetsHub().splits(str(folder.parent)) == ["test"]
    spec = f"hf:{folder.parent}"
    done = CliRunner().invoke(app, ["read", spec, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "3 questions" in done.output
    assert len(mw.load_dataset(tmp_path / "out")) == 3


def test_a_released_dataset_comes_back(tmp_path: Path) -> None:
    world = mw.load_dataset("world")[:4]
    mw.write_dataset(world, "huggingface", tmp_path / "written")
    (path,) = (tmp_path / "written/data").glob("*.parquet")
    table = pq.read_table(path)

    class Released(FakeHub):
        def batches(self, name: str, split: str) -> Iterator[pa.Table]:
            yield from (table.slice(row, 1) for row in range(len(table)))

    again = mw.load_dataset("hf:lab/copy", hub=Released())
    assert [sample.id for sample in again] == [sample.id for sample in world]
    assert again[0].targets == world[0].targets


def test_without_a_connection_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    datasets = pytest.importorskip("datasets")

    def fail(*args: Any, **options: Any) -> None:
        raise ConnectionError("offline mode is enabled")

    monkeypatch.setattr(datasets, "get_dataset_split_names", fail)
    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(DownloadError, match="cannot be read from the hub: Connection"):
        mw.load_dataset("hf:lab/copy")
    with pytest.raises(DownloadError, match="download the files elsewhere"):
        mw.load_dataset("hf:lab/copy", split="test")


def test_a_missing_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match=r"maskwise\[hub\]"):
        read_hub_dataset("hf:lab/copy", tmp_path / "out")


def test_names_need_the_prefix() -> None:
    with pytest.raises(DownloadError, match="hf:OWNER/NAME"):
        hub_module.parse_spec("lab/copy")


def test_get_streams_datasets_of_the_hub(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = FakeHub()
    monkeypatch.setattr(hub_module, "DatasetsHub", lambda: hub)
    command = ["get", "reasonseg_val_copy", "--accept-license"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, DownloadError)
    assert "--accept-unverified" in str(refused.exception)
    done = CliRunner().invoke(app, [*command, "--accept-unverified"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert hub.asked == [("Ricky06662/ReasonSeg_val", "test")]
    assert len(mw.load_dataset("reasonseg_val_copy")) == 3

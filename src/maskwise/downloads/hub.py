"""Datasets of the Hugging Face hub, streamed into a dataset folder: `hf:owner/name`.

    data = load_dataset("hf:Ricky06662/ReasonSeg_val", split="test")
    maskwise read hf:Ricky06662/ReasonSeg_val --split test --out reasonseg_copy

Rows come as Arrow tables, one or a few at a time, so that neither images nor masks become Python objects. They are
written to a temporary Parquet file, and the reader that fits their columns converts that file. `Hub` is the seam: the
default uses the package `datasets`; another one can be given, for example for a mirror or for tests.
"""

import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from maskwise.benchmarks import find_reader
from maskwise.downloads.local_files import data_folder
from maskwise.errors import DownloadError, FormatError, MissingDependencyError
from maskwise.formats import ReadSummary, convert_annotations
from maskwise.formats.exported_dataset import VERSION, DatasetFields
from maskwise.formats.huggingface import FACTS
from maskwise.formats.matrix_columns import is_matrix_type

PREFIX = "hf:"

READERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("huggingface", frozenset({"id", "width", "height", "regions", "samples"})),
    ("refcoco-mirror", frozenset({"raw_anns", "raw_image_info", "sentences"})),
    ("refcoco-mirror", frozenset({"ref_list", "image_info"})),
    ("pbench", frozenset({"image", "expression", "masks"})),
    ("vrt-bench", frozenset({"image", "question", "objects_info_json"})),
    ("refcoco-m", frozenset({"image", "samples"})),
    ("refcoco-mirror", frozenset({"image", "segmentation", "answer"})),
    ("weatherreasonseg", frozenset({"image", "text", "mask"})),
)
"""Readers by the columns they need, the first that fits. A matrix as `mask` is checked before."""


ROWS_AT_ONCE = 16
"""Rows of a dataset in memory that become one batch: some megabytes of images."""


class Hub(Protocol):
    """Where rows come from."""

    def splits(self, name: str) -> list[str]:
        """The splits of a dataset `owner/name`."""

    def batches(self, name: str, split: str) -> Iterator[pa.Table]:
        """The rows of a split in order, a few at a time; images as structs of bytes and path."""


class DatasetsHub:
    """The hub through the package `datasets`, which also takes the path of a local folder as a name."""

    def splits(self, name: str) -> list[str]:
        """The splits of a dataset."""
        library = _import_datasets(name)
        return [str(split) for split in _call(name, library.get_dataset_split_names)]

    def batches(self, name: str, split: str) -> Iterator[pa.Table]:
        """The rows of a split, streamed."""
        return stream_rows(name, split)


def stream_rows(
    name: str, split: str, *, first: int = 0, at_once: int = 1
) -> Iterator[pa.Table]:
    """The rows of a split from `first` on, `at_once` at a time, through the package `datasets`. Nothing is stored."""
    library = _import_datasets(name)
    rows = _call(name, library.load_dataset, split=split, streaming=True)
    # In the format arrow nothing is decoded: images stay bytes, matrices stay buffers.
    batches = iter(rows.skip(first).with_format("arrow").iter(batch_size=at_once))
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        # Reading may fail at any row, with exceptions of many libraries.
        except Exception as error:
            raise DownloadError(_explain(name, error)) from error


@runtime_checkable
class OpenRows(Protocol):
    """A `datasets.Dataset`, known by its attributes: `datasets` need not be imported to recognize one."""

    _fingerprint: str
    split: Any

    def with_format(self, type: str) -> Any:
        """The same rows in another form."""


class RowsInMemory:
    """An open `datasets.Dataset` in the place of the hub: one split."""

    def __init__(self, rows: OpenRows) -> None:
        self.rows = rows

    def splits(self, name: str) -> list[str]:
        """The split that the rows say they are, else `data`."""
        return [str(self.rows.split or "data")]

    def batches(self, name: str, split: str) -> Iterator[pa.Table]:
        """The rows, a few at a time, images as bytes."""
        yield from self.rows.with_format("arrow").iter(batch_size=ROWS_AT_ONCE)


def load_open_rows(rows: OpenRows) -> Path:
    """The dataset folder of a `datasets.Dataset`, in the data folder; equal rows are converted once."""
    return load_hub_dataset(
        f"{PREFIX}memory-{rows._fingerprint}", hub=RowsInMemory(rows)
    )


def load_hub_dataset(
    spec: str, *, split: str | None = None, hub: Hub | None = None
) -> Path:
    """The dataset folder of `hf:owner/name` in the data folder; it is made on first use."""
    name = parse_spec(spec)
    source = hub or DatasetsHub()
    chosen_split = split or _only_split(name, source)
    title = re.sub(r"[^\w.-]+", "--", f"{name} {chosen_split}")
    out = data_folder() / "hub" / title
    if not out.is_dir():
        read_hub_dataset(spec, out, split=chosen_split, hub=source)
    return out


def read_hub_dataset(
    spec: str,
    out: Path,
    *,
    split: str | None = None,
    hub: Hub | None = None,
    reader: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> ReadSummary:
    """Stream a split of `hf:owner/name` and write it as the dataset folder `out`.

    reader: the name of the reader, if not the one that fits the columns.
    """
    name = parse_spec(spec)
    source = hub or DatasetsHub()
    chosen_split = split or _only_split(name, source)
    out.parent.mkdir(parents=True, exist_ok=True)
    return convert_rows(
        name,
        chosen_split,
        source.batches(name, chosen_split),
        out,
        reader=reader,
        strict=strict,
        overwrite=overwrite,
        progress=progress,
    )


def convert_rows(
    name: str,
    split: str,
    batches: Iterator[pa.Table],
    out: Path,
    *,
    reader: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> ReadSummary:
    """Write rows of a hub dataset, all or some, as the dataset folder `out`, with their images if they have any."""
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".hub-") as folder:
        path = Path(folder) / "data" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir()
        schema = _write_rows(path, name, batches)
        return convert_annotations(
            find_reader(reader or choose_reader(name, schema)),
            Path(folder),
            out,
            split=split,
            # Images that are not in the rows cannot be found here.
            with_images="image" in schema.names,
            strict=strict,
            embed="image" in schema.names,
            overwrite=overwrite,
            progress=progress,
        )


def parse_spec(spec: str) -> str:
    """`owner/name` of `hf:owner/name`; the path of a folder is taken as it is."""
    name = spec.removeprefix(PREFIX)
    if not spec.startswith(PREFIX) or not name:
        raise DownloadError(f"expected hf:OWNER/NAME, found {spec!r}")
    return name


def choose_reader(name: str, schema: pa.Schema) -> str:
    """The name of the reader that fits the columns; FormatError lists the columns if there is none."""
    columns = set(schema.names)
    if {"image", "text", "mask"} <= columns and is_matrix_type(
        schema.field("mask").type
    ):
        return "hub-matrices"
    for reader, needed in READERS:
        if needed <= columns:
            return reader
    raise FormatError(
        f"{PREFIX}{name}: no reader fits the columns {', '.join(schema.names)}; download the files and read them with "
        "`maskwise read records PATH --mapping FILE`"
    )


def _write_rows(path: Path, name: str, batches: Iterator[pa.Table]) -> pa.Schema:
    """Write all rows as one Parquet file, a row group per batch; returns the schema."""
    first = next(batches, None)
    if first is None:
        raise FormatError(f"{PREFIX}{name}: the split has no rows")
    # A dataset that maskwise released has lost the metadata that its reader needs.
    facts = msgspec.json.encode(DatasetFields(version=VERSION, name=name))
    schema = first.schema.with_metadata({FACTS: facts})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in itertools.chain([first], batches):
            if not batch.schema.equals(schema):
                raise FormatError(
                    f"{PREFIX}{name}: the columns of its files differ: {batch.schema} and {schema}"
                )
            writer.write_table(batch.replace_schema_metadata(schema.metadata))
    return schema


def _only_split(name: str, hub: Hub) -> str:
    splits = hub.splits(name)
    if len(splits) != 1:
        raise FormatError(
            f"{PREFIX}{name}: choose a split; found: {', '.join(splits) or 'none'}"
        )
    return splits[0]


def _import_datasets(name: str) -> Any:
    try:
        import datasets  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            f"{PREFIX}{name}", "datasets", extra="hub"
        ) from None
    return datasets


def _call(name: str, function: Callable[..., Any], **arguments: Any) -> Any:
    try:
        return function(name, **arguments)
    # Without a connection, without the dataset or without permission: each library has its own exceptions.
    except Exception as error:
        raise DownloadError(_explain(name, error)) from error


def _explain(name: str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:300]
    return (
        f"{PREFIX}{name} cannot be read from the hub: {type(error).__name__}: {reason}. Check the name and the "
        "connection, or download the files elsewhere and read the folder with `maskwise read NAME PATH`"
    )

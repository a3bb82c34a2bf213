"""A folder that Hugging Face `datasets.load_dataset(folder)` loads: Parquet with image bytes and declared features.

    README.md                                    the dataset card with the configuration
    data/SPLIT-00000-of-00001.parquet            one row per image

A row has `image` (an Image feature), `file_name`, `id`, `width`, `height`, `license`, `attribution`, `regions` and
`samples`. If the images are not in the file, `file_name` is their path below the image folder. A mask is a COCO RLE:
`size` (height, width) and `counts`. Tags are a list of names and values. `datasets` needs the features in the metadata
of the Parquet schema; they are written here, so `datasets` itself is not needed to write or read the folder.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from maskwise.errors import FormatError, ImageError
from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    AnnotatedImage,
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.exported_dataset import (
    DatasetFields,
    check_version,
    export_images,
    name_records,
    split_name,
    to_builtins,
    to_dataset_fields,
    to_question,
    without_masks,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext
from maskwise.images import check_relative, image_size
from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo
from maskwise.store import Dataset

FACTS = b"maskwise"
"""Key of the dataset's own facts in the metadata of the Parquet schema."""

DATA = "data"
"""Folder of the Parquet files."""

BATCH_BYTES = 2**26
BATCH_ROWS = 256
"""A row group is written when this many bytes of images, or this many rows, have gathered."""

SHARD_BYTES = 2**29
"""A file is about this large at most."""

Row = dict[str, Any]


def _value(dtype: str) -> Row:
    return {"dtype": dtype, "_type": "Value"}


_STRING = _value("string")
_INTEGER = _value("int32")
_MASK: Row = {"size": [_INTEGER], "counts": _STRING}

FEATURES: Row = {
    "image": {"_type": "Image"},
    "file_name": _STRING,
    "id": _STRING,
    "width": _INTEGER,
    "height": _INTEGER,
    "license": _STRING,
    "attribution": _STRING,
    "regions": [
        {
            "id": _STRING,
            "name": _STRING,
            "part_of": _STRING,
            "order": _INTEGER,
            "crowd": _value("bool"),
            "visible": _MASK,
            "amodal": _MASK,
            "overlap": _MASK,
        }
    ],
    "samples": [
        {
            "id": _STRING,
            "question": _STRING,
            "mask_type": _STRING,
            "targets": [_STRING],
            "answer": {
                "text": _STRING,
                "phrases": [
                    {"start": _INTEGER, "stop": _INTEGER, "regions": [_INTEGER]}
                ],
            },
            "ignore": _MASK,
            "tags": [{"name": _STRING, "value": _STRING}],
            "other_targets": [[_STRING]],
            "turns": [{"question": _STRING, "answer": _STRING}],
        }
    ],
}
"""The features as `datasets` declares them; a list of one feature is a list of such values."""


class HuggingFaceRegion(RegionAnnotation, frozen=True, kw_only=True):
    """A region with its masks."""

    visible: Mask | None = None
    amodal: Mask | None = None


class HuggingFaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    id: str
    width: int
    height: int
    image: dict[str, Any] | None = None
    file_name: str | None = None
    license: str | None = None
    attribution: str | None = None
    regions: list[HuggingFaceRegion] = []
    samples: list[QuestionAnnotation] = []


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> None:
    """Write the Parquet file and the card."""
    split = split_name(dataset)
    with ParquetSplits(folder / DATA, to_dataset_fields(dataset)) as files:
        for file_name, exported in export_images(dataset, with_images=with_images):
            files.add(split, file_name, exported)
        files.add_split(split)
    card = f"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: {split}\n    path: data/{split}-*\n---\n"
    (folder / "README.md").write_text(
        f"{card}\n# {dataset.name}\n\nWritten by maskwise.\n", encoding="utf-8"
    )


class ParquetSplits:
    """Writes images as Parquet files, one or more per split: `SPLIT-00000-of-00002.parquet`.

    A further file is begun when one holds about `shard_bytes` of images. Files get their names when the block ends.
    """

    def __init__(
        self, folder: Path, fields: DatasetFields, *, shard_bytes: int = SHARD_BYTES
    ) -> None:
        self.folder = folder
        self.shard_bytes = shard_bytes
        metadata = {
            b"huggingface": msgspec.json.encode({"info": {"features": FEATURES}}),
            FACTS: msgspec.json.encode(fields, order="deterministic"),
        }
        self._schema = pa.schema(
            [(name, _to_arrow(feature)) for name, feature in FEATURES.items()], metadata
        )
        self._shards: dict[str, list[_Shard]] = {}

    def __enter__(self) -> "ParquetSplits":
        self.folder.mkdir()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for split, shards in self._shards.items():
            for number, shard in enumerate(shards):
                shard.close()
                shard.path.rename(
                    self.folder / f"{split}-{number:05d}-of-{len(shards):05d}.parquet"
                )

    def add(self, split: str, file_name: str, exported: AnnotatedImage) -> None:
        """Add an image to a split."""
        shards = self.add_split(split)
        if shards[-1].bytes >= self.shard_bytes:
            shards[-1].close()
            shards.append(self._begin(split, len(shards)))
        shards[-1].add(_to_row(file_name, exported), len(exported.data or b""))

    def add_split(self, split: str) -> "list[_Shard]":
        """Make sure that the split has a file, also if it has no image; returns its files."""
        if split not in self._shards:
            self._shards[split] = [self._begin(split, 0)]
        return self._shards[split]

    def _begin(self, split: str, number: int) -> "_Shard":
        return _Shard(self.folder / f"{split}-{number:05d}.partial", self._schema)


class _Shard:
    """One Parquet file, written in row groups."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.bytes = 0
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._rows: list[Row] = []
        self._weight = 0

    def add(self, row: Row, weight: int) -> None:
        """Add a row with an image of `weight` bytes."""
        self._rows.append(row)
        self._weight += weight
        self.bytes += weight
        if self._weight >= BATCH_BYTES or len(self._rows) >= BATCH_ROWS:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows. A second call does nothing."""
        if self._writer.is_open:
            self._flush()
            self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(
                pa.Table.from_pylist(self._rows, schema=self._schema)
            )
            self._rows = []
            self._weight = 0


def _to_arrow(feature: Any) -> pa.DataType:
    """The Arrow type of a feature."""
    if isinstance(feature, list):
        return pa.list_(_to_arrow(feature[0]))
    if feature.get("_type") == "Image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    if feature.get("_type") == "Value":
        return {"string": pa.string(), "int32": pa.int32(), "bool": pa.bool_()}[
            feature["dtype"]
        ]
    return pa.struct([(name, _to_arrow(inner)) for name, inner in feature.items()])


def _to_row(file_name: str, exported: AnnotatedImage) -> Row:
    image = exported.image
    embedded = None
    if exported.data is not None:
        embedded = {"bytes": exported.data, "path": file_name}
    return {
        "image": embedded,
        "file_name": image.path if embedded is None else file_name,
        "id": image.id,
        "width": image.width,
        "height": image.height,
        "license": image.license,
        "attribution": image.attribution,
        "regions": [
            to_builtins(without_masks(region))
            | {
                "crowd": region.crowd,
                "visible": _to_rle(region.visible),
                "amodal": _to_rle(region.amodal),
            }
            for region in exported.regions
        ],
        "samples": [
            to_builtins(to_question(sample))
            | {
                "mask_type": sample.mask_type,
                "answer": None if sample.answer is None else _to_answer(sample.answer),
                "tags": [
                    {"name": name, "value": value}
                    for name, value in sample.tags.items()
                ],
            }
            for sample in exported.samples
        ],
    }


def _to_answer(answer: Answer) -> Row:
    return {
        "text": answer.text,
        "phrases": [msgspec.structs.asdict(phrase) for phrase in answer.phrases],
    }


def _to_rle(mask: Mask | None) -> Row | None:
    return None if mask is None else {"size": list(mask.size), "counts": mask.counts}


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their regions and samples; images are embedded."""
    files = sorted(context.annotations.parent.glob(f"{context.split}-*.parquet")) or [
        context.annotations
    ]
    return read_parquet(context, files)


def read_parquet(context: ReadContext, paths: Sequence[Path]) -> AnnotatedImages:
    """The images of one or more Parquet files."""
    try:
        files = [pq.ParquetFile(path) for path in paths]
    except (pa.ArrowException, OSError) as error:
        raise FormatError(
            f"{context.annotations} is not a valid Parquet file: {error}"
        ) from None
    fields = _read_fields(files[0], context.annotations)
    annotations = decode_annotations(
        _image_annotations(context, files), context.diagnostics, exact=True
    )
    return AnnotatedImages(
        sum(file.metadata.num_rows for file in files), annotations, fields.about
    )


def _read_fields(file: pq.ParquetFile, path: Path) -> DatasetFields:
    """What the file says about its dataset."""
    facts = (file.schema_arrow.metadata or {}).get(FACTS)
    if facts is None:
        raise FormatError(
            f"{path} was not written by maskwise: its schema has no metadata {FACTS.decode()!r}. "
            "Read other Parquet files with `maskwise read records` and a mapping"
        )
    try:
        fields = msgspec.json.decode(facts, type=DatasetFields)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{path}: invalid metadata {FACTS.decode()!r}: {error}"
        ) from None
    check_version(fields, path)
    return fields


def _image_annotations(
    context: ReadContext, files: list[pq.ParquetFile]
) -> Iterator[ImageAnnotation]:
    for number, row in enumerate(_rows(context, files)):
        record = f"row {number}"
        try:
            entry = _convert(row)
            image, data = _open_image(entry)
        except (msgspec.ValidationError, ImageError, TypeError, KeyError) as error:
            context.skip(
                "fields of another type",
                record,
                expected="HuggingFaceRow",
                found=str(error),
            )
            continue
        regions = tuple(
            msgspec.structs.replace(region, record=f"{record}, region {region.id}")
            for region in entry.regions
        )
        questions = name_records(entry.samples, f"{record}, ")
        yield ImageAnnotation(image, context.file, regions, questions, data=data)


def _rows(context: ReadContext, files: list[pq.ParquetFile]) -> Iterator[Row]:
    try:
        for file in files:
            for batch in file.iter_batches(batch_size=16):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{context.annotations} is not a valid Parquet file: {error}"
        ) from None


def _convert(row: Row) -> HuggingFaceRow:
    """A row with its types checked; empty fields take their defaults."""
    samples = []
    for sample in row.get("samples") or []:
        tags = {tag["name"]: tag["value"] for tag in sample.get("tags") or []}
        samples.append(_known(sample) | {"tags": tags})
    regions = [_known(region) for region in row.get("regions") or []]
    return msgspec.convert(
        _known(row) | {"regions": regions, "samples": samples}, HuggingFaceRow
    )


def _known(fields: Row) -> Row:
    """The fields without nulls. Parquet has no missing struct inside a list, so an answer without text is none."""
    kept = {name: value for name, value in fields.items() if value is not None}
    for name in ("visible", "amodal", "overlap", "ignore", "answer"):
        if name in kept and all(value is None for value in kept[name].values()):
            del kept[name]
    return kept


def _open_image(entry: HuggingFaceRow) -> tuple[ImageInfo, bytes | None]:
    data = (entry.image or {}).get("bytes")
    if isinstance(data, bytes):
        width, height = image_size(data)
        if (width, height) != (entry.width, entry.height):
            raise ImageError(
                f"the image is {width} x {height}, expected {entry.width} x {entry.height}"
            )
    path = entry.file_name if data is None else None
    if path is not None:
        check_relative(path)
    image = ImageInfo(
        id=entry.id,
        width=entry.width,
        height=entry.height,
        path=path,
        license=entry.license,
        attribution=entry.attribution,
    )
    return image, data


HUGGINGFACE = AnnotationFormat(
    name="huggingface",
    title="Hugging Face datasets: Parquet with embedded images, as written by `maskwise write huggingface`",
    layout=FileLayout(
        annotations=("data/{split}-*-of-*.parquet",),
        images=(".",),
        notes="datasets.load_dataset(FOLDER) loads it; other Parquet files are read with `maskwise read records`.",
    ),
    read=read,
    write=write,
)

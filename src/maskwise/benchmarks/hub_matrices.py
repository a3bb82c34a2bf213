"""Copies of benchmarks on the hub with masks as boolean matrices: Seg-Zero and the projects that follow it.

One row is one question: `image`, `text`, `mask` (a list of lines of bools, [height][width]), `image_id`, `ann_id`,
`img_height` and `img_width`. About twenty sets have this form: Ricky06662/ReasonSeg_val and _test, its copies of
RefCOCO and gRefCOCO, sj9909's copies of MMR and MUSE, ReasonSeg_refine (ReasonSeg-R) and ReasonSegX.

What a reader of these copies should know:

- The converter of ReasonSeg counts ignored pixels as target. They cannot be told apart any more, so LISA's rule gives
  other scores here than on the original files. The dataset says so (`ignored_pixels` in its manifest), and so does
  scoring under such a rule.
- Only the first text of a ReasonSeg image is kept, and `is_sentence` is not.
- Copies of MMR and MUSE have one row per question, with the union of its targets.
- Split names mislead: ReasonSeg_val holds a split `test`, MMR_test_obj a split `train`. They are kept as they are.
- An all-false matrix is a question without a target.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import FormatError, MaskError
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.embedded_images import locate_embedded_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.matrix_columns import decode_matrix, is_matrix_type
from maskwise.formats.parquet_rows import (
    PARQUET_FILES,
    check_columns,
    decode_fields,
    iterate_batches,
    open_parquet,
)
from maskwise.formats.read_context import ReadContext
from maskwise.masks import Mask
from maskwise.store.folder import IGNORED_PIXELS, MERGED

TEXT_TAGS = ("reasoning_type", "file_name")
"""Columns that become tags. ReasonSegX has the first, copies of MMR the second."""

MERGED_WARNING = (
    "the copy has no ignored pixels: the converter of ReasonSeg made them target pixels"
)

Ignored = Literal["auto", "merged", "none"]


class MatrixRow(NamedTuple):
    """One row, without its mask."""

    number: int
    image: bytes
    text: str
    image_id: str
    annotation_id: str
    tags: dict[str, str]


def read(context: ReadContext, *, ignored: Ignored = "auto") -> AnnotatedImages:
    """Images with their questions.

    ignored: whether ignored pixels were merged into the targets. Files do not say it; `auto` takes rows with a `bbox`
    (copies of RefCOCO) or with a list as `ann_id` (copies of MMR) as sets that never had ignored pixels.
    """
    files = open_parquet(context)
    check_columns(context, files[0], ("image", "text", "mask"))
    schema = files[0].schema_arrow
    _check_schema(context, schema)
    about = {"split_name": f"{context.split}: as the copy calls it, see its card"}
    if ignored == "merged" or (ignored == "auto" and _may_be_reasonseg(schema)):
        about[IGNORED_PIXELS] = MERGED
        context.warn(
            "ignored pixels are merged into the targets",
            "all rows",
            expected="ignored pixels apart, as in the original files",
            found=MERGED_WARNING,
        )
    total = sum(file.metadata.num_rows for file in files)
    annotations = _image_annotations(context, files)
    return AnnotatedImages(
        total, decode_annotations(annotations, context.diagnostics), about
    )


def _check_schema(context: ReadContext, schema: pa.Schema) -> None:
    mask_type = schema.field("mask").type
    if not is_matrix_type(mask_type):
        raise FormatError(
            f"{context.annotations}: expected the column mask to hold a matrix of bools or of 0 and 1, "
            f"found {mask_type}; polygons and RLE are read with `maskwise read records`"
        )


def _may_be_reasonseg(schema: pa.Schema) -> bool:
    if "bbox" in schema.names:
        return False
    index = schema.get_field_index("ann_id")
    return index < 0 or not pa.types.is_list(schema.field(index).type)


def _image_annotations(
    context: ReadContext, files: list[pq.ParquetFile]
) -> Iterator[ImageAnnotation]:
    """One annotation per image. Neighboring rows with the same image are its questions."""
    used_ids: set[str] = set()
    pending: list[tuple[MatrixRow, Mask | None]] = []
    digest = b""
    for row, mask in _rows(context, files):
        row_digest = hashlib.sha256(row.image).digest()
        if pending and row_digest != digest:
            yield from _to_image(context, pending, used_ids)
            pending = []
        digest = row_digest
        pending.append((row, mask))
    if pending:
        yield from _to_image(context, pending, used_ids)


def _rows(
    context: ReadContext, files: list[pq.ParquetFile]
) -> Iterator[tuple[MatrixRow, Mask | None]]:
    """The rows with their masks; None for a mask without pixels. Rows that cannot be used are skipped."""
    names = [
        name
        for name in ("image", "text", "mask", "image_id", "ann_id", *TEXT_TAGS)
        if name in files[0].schema_arrow.names
    ]
    for number, batch in enumerate(iterate_batches(context, files, names)):
        record = f"row {number}"
        try:
            mask = decode_matrix(batch.column("mask"), 0)
            if mask is None:
                raise MaskError("no matrix")
        except MaskError as error:
            context.skip(
                "invalid mask",
                record,
                expected="a matrix of bools",
                found=error.message,
            )
            continue
        fields = decode_fields(context, batch.drop_columns(["mask"]), record)
        row = None if fields is None else _to_row(context, number, fields)
        if row is not None:
            yield row, mask if mask.area else None


def _to_row(
    context: ReadContext, number: int, fields: dict[str, Any]
) -> MatrixRow | None:
    image = fields.get("image")
    data = image.get("bytes") if isinstance(image, dict) else image
    text = fields.get("text")
    if not isinstance(data, bytes) or not isinstance(text, str):
        context.skip(
            "fields of another type",
            f"row {number}",
            expected="image bytes and text",
            found=f"{type(data).__name__} and {type(text).__name__}",
        )
        return None
    annotation_id = fields.get("ann_id")
    if isinstance(annotation_id, list):
        annotation_id = "_".join(str(id) for id in annotation_id)
    tags = {
        name: str(fields[name]) for name in TEXT_TAGS if fields.get(name) is not None
    }
    return MatrixRow(
        number=number,
        image=data,
        text=text,
        image_id=str(fields.get("image_id") or f"row-{number}"),
        annotation_id=str(annotation_id or ""),
        tags={"split": context.split} | tags,
    )


def _to_image(
    context: ReadContext,
    rows: list[tuple[MatrixRow, Mask | None]],
    used_ids: set[str],
) -> Iterator[ImageAnnotation]:
    first = rows[0][0]
    id = first.image_id
    if id in used_ids:
        # The same image elsewhere in the file, or another image of the same name.
        id = f"{id}#{first.number}"
    used_ids.add(id)
    image = locate_embedded_image(
        context, first.image, None, id=id, record=f"row {first.number}"
    )
    if image is None:
        return
    regions = []
    questions = []
    for row, mask in rows:
        target = f"row-{row.number}"
        if mask is not None:
            regions.append(
                RegionAnnotation(target, "target", f"row {row.number}", visible=mask)
            )
        questions.append(
            QuestionAnnotation(
                f"{row.image_id}/{row.annotation_id}/{row.number}",
                row.text,
                f"row {row.number}",
                targets=() if mask is None else (target,),
                tags=row.tags,
            )
        )
    yield ImageAnnotation(
        image, context.file, tuple(regions), tuple(questions), data=first.image
    )


HUB_MATRICES = Benchmark(
    name="hub-matrices",
    title="Hub copies with boolean-matrix masks: ReasonSeg, RefCOCO, MMR, MUSE (Seg-Zero and its successors)",
    protocol="segzero",
    layout=FileLayout(
        annotations=PARQUET_FILES,
        notes="splits are named as in the copy, which misleads: ReasonSeg_val holds a split `test`. Ignored pixels of "
        "ReasonSeg are merged into the targets.",
    ),
    read=read,
    facts={
        "license": "CC BY-NC 4.0 on the card of ReasonSeg_val; others state none; images under their own terms",
        "download": "huggingface.co: Ricky06662/ReasonSeg_val, sj9909/MMR_val and others",
        "paper": "Liu et al., Seg-Zero, arXiv 2503.06520",
        "layout": "layout from code, file not seen",
    },
)

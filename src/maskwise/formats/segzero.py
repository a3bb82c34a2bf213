"""Training data of Seg-Zero and VisionReasoner: a folder of `datasets.DatasetDict.save_to_disk` with the split `train`.

A row has `id`, `problem`, `solution`, `image`, `img_height` and `img_width` (of the original). The image is squeezed to
840 x 840. `solution` is JSON text: `[{"bbox_2d": [x1, y1, x2, y2], "point_2d": [x, y]}]`, integers in that square. The
point is the pixel farthest from the border of the mask. There are no masks. The files are written with pyarrow as
`datasets` writes them, so the package is not needed.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from PIL import Image
from scipy import ndimage

from maskwise.errors import FormatError, ImageError
from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.answer_boxes import Box, box_mask, scaled_boxes
from maskwise.formats.coco_export import write_json
from maskwise.formats.embedded_images import EmbeddedImage, locate_embedded_image
from maskwise.formats.exported_dataset import export_images
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import BROKEN
from maskwise.formats.read_context import ReadContext
from maskwise.formats.written_losses import Losses, requested_masks
from maskwise.images import open_image
from maskwise.masks import Mask
from maskwise.schema import Sample
from maskwise.store import Dataset

SIDE = 840
"""Width and height of the square image: a multiple of 28, the patch of Qwen2.5-VL."""

DATA = "data-00000-of-00001.arrow"

FEATURES: dict[str, Any] = {
    "id": {"dtype": "string", "_type": "Value"},
    "problem": {"dtype": "string", "_type": "Value"},
    "solution": {"dtype": "string", "_type": "Value"},
    "image": {"_type": "Image"},
    "img_height": {"dtype": "int64", "_type": "Value"},
    "img_width": {"dtype": "int64", "_type": "Value"},
}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("problem", pa.string()),
        ("solution", pa.string()),
        ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        ("img_height", pa.int64()),
        ("img_width", pa.int64()),
    ],
    {b"huggingface": msgspec.json.encode({"info": {"features": FEATURES}})},
)


class SolutionObject(msgspec.Struct, frozen=True):
    """An object of `solution`, in the square image."""

    bbox_2d: tuple[int, int, int, int]
    point_2d: tuple[int, int] | None = None


class SegZeroRow(msgspec.Struct, frozen=True):
    """A row."""

    id: str
    problem: str
    solution: str
    image: EmbeddedImage


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> dict[str, int]:
    """Write the folder that `datasets.load_from_disk` opens. Images are part of the rows, so they are needed."""
    if not with_images:
        raise ImageError("segzero stores the images in its rows: write it with images")
    losses = Losses("instances")
    target = folder / "train"
    target.mkdir()
    write_json(folder / "dataset_dict.json", {"splits": ["train"]})
    write_json(target / "dataset_info.json", {"features": FEATURES})
    write_json(target / "state.json", _state())
    with (
        pa.OSFile(str(target / DATA), "wb") as file,
        pa.ipc.new_stream(file, SCHEMA) as writer,
    ):
        for _, exported in export_images(dataset, with_images=True):
            losses.note_image(exported)
            assert exported.data is not None
            square = _squeeze(exported.data)
            for sample in exported.samples:
                losses.note_sample(sample)
                objects = _to_objects(sample)
                if not objects:
                    losses.note("questions left out: no target")
                    continue
                row = {
                    "id": sample.id,
                    "problem": sample.question,
                    "solution": msgspec.json.encode(objects).decode(),
                    "image": {"bytes": square, "path": None},
                    "img_height": exported.image.height,
                    "img_width": exported.image.width,
                }
                writer.write_batch(pa.RecordBatch.from_pylist([row], schema=SCHEMA))
    return dict(losses.counts)


def _state() -> dict[str, Any]:
    """What `load_from_disk` needs to know about the file."""
    return {
        "_data_files": [{"filename": DATA}],
        "_fingerprint": "0000000000000000",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": "train",
    }


def _squeeze(data: bytes) -> bytes:
    out = io.BytesIO()
    image = open_image(data).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    image.save(out, "PNG")
    return out.getvalue()


def _to_objects(sample: Sample) -> list[dict[str, Any]]:
    boxes = scaled_boxes(sample, (SIDE, SIDE))
    points = [_inner_point(mask) for mask in requested_masks(sample)]
    return [
        {"bbox_2d": list(box), "point_2d": list(point)}
        for box, point in zip(boxes, points, strict=True)
    ]


def _inner_point(mask: Mask) -> tuple[int, int]:
    """The pixel of a mask that is farthest from its border, x and y in the square image."""
    height, width = mask.size
    # The border of the image is a border of the mask.
    padded = np.pad(mask.to_dense(), 1)
    distance = ndimage.distance_transform_edt(padded)[1:-1, 1:-1]
    row, column = np.unravel_index(int(distance.argmax()), distance.shape)
    x = round((int(column) + 0.5) * SIDE / width)
    y = round((int(row) + 0.5) * SIDE / height)
    return min(x, SIDE - 1), min(y, SIDE - 1)


def read(context: ReadContext) -> AnnotatedImages:
    """The square images, each with its question; the masks are the boxes."""
    path = context.annotations
    try:
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_stream(file).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not an Arrow stream: {error}") from None
    missing = sorted({"problem", "solution", "image"} - set(table.schema.names))
    if missing:
        raise FormatError(
            f"{path}: missing columns: {', '.join(missing)}; found: {', '.join(table.schema.names)}"
        )
    annotations = _image_annotations(context, table)
    about = {"masks": "boxes, in the square image of 840 x 840 pixels"}
    return AnnotatedImages(
        table.num_rows, decode_annotations(annotations, context.diagnostics), about
    )


def _image_annotations(
    context: ReadContext, table: pa.Table
) -> Iterator[ImageAnnotation]:
    for number in range(table.num_rows):
        record = f"row {number}"
        try:
            fields = table.slice(number, 1).to_pylist()[0]
            row = msgspec.convert(fields, SegZeroRow)
            objects = msgspec.json.decode(row.solution, type=list[SolutionObject])
        except (*BROKEN, msgspec.ValidationError) as error:
            context.skip(
                "fields of another type",
                record,
                expected="SegZeroRow",
                found=str(error),
            )
            continue
        image = locate_embedded_image(
            context, row.image.bytes, None, id=f"{number}", record=record
        )
        if image is None:
            continue
        size = (image.height, image.width)
        regions = tuple(
            RegionAnnotation(
                str(place), "box", record, visible=_to_mask(item.bbox_2d, size)
            )
            for place, item in enumerate(objects)
        )
        question = QuestionAnnotation(
            f"{row.id}/{number}",
            row.problem,
            record,
            targets=tuple(region.id for region in regions),
        )
        yield ImageAnnotation(
            image, context.file, regions, (question,), data=row.image.bytes
        )


def _to_mask(box: Box, size: tuple[int, int]) -> Mask:
    return box_mask(box, (SIDE, SIDE), size)


SEGZERO = AnnotationFormat(
    name="segzero",
    title="Seg-Zero and VisionReasoner: boxes and points in 840 x 840 images (save_to_disk), to train with",
    layout=FileLayout(
        annotations=("{split}/data-*-of-*.arrow",),
        notes="datasets.load_from_disk(FOLDER) opens it.",
    ),
    read=read,
    write=write,
    lossy=True,
)

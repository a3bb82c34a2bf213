"""Own data: records of JSON, JSON lines, CSV or Parquet files, read through a field mapping.

One record is one question about one image. `records.yaml` is the default mapping and documents every key; copy and
change it, and pass it with `--mapping`. Masks are polygons, COCO RLE, PNG paths or image columns (`field_mapping`).
"""

from pathlib import Path

from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.field_mapping import read_mapped
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext

MAPPING = Path(__file__).with_name("records.yaml")


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their questions."""
    return read_mapped(context, MAPPING)


RECORDS = AnnotationFormat(
    name="records",
    title="Records: your own JSON, JSON lines, CSV or Parquet file, read through a field mapping",
    layout=FileLayout(
        annotations=(
            "{split}.json",
            "{split}.jsonl",
            "{split}.csv",
            "{split}.parquet",
            "data/{split}-*.parquet",
        ),
        images=(".", "images"),
        notes="one record per question; fields as declared in records.yaml, or in the file passed with --mapping.",
    ),
    read=read,
)

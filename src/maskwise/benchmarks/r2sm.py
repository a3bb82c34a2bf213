"""R2SM: the words of the query decide whether the visible or the amodal mask is wanted.

Its record format is not documented in public, so records are read through a field mapping: `r2sm.yaml`, or a file
passed with `--mapping`.
"""

from pathlib import Path

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.field_mapping import read_mapped
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext

MAPPING = Path(__file__).with_name("r2sm.yaml")
SECOND_HAND = "benchmark card of the paper, second-hand"


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their queries."""
    return read_mapped(context, MAPPING)


R2SM = Benchmark(
    name="r2sm",
    title="R2SM: referring and reasoning for selective masks (arXiv 2506.01795)",
    protocol="r2sm",
    layout=FileLayout(
        annotations=(
            "{split}.json",
            "{split}.jsonl",
            "{split}.parquet",
            "data/{split}-*.parquet",
        ),
        images=(".", "images"),
        notes="fields as declared in r2sm.yaml; pass another mapping with --mapping.",
    ),
    read=read,
    published=(
        PublishedCount(None, "images", 7_276, SECOND_HAND),
        PublishedCount(None, "questions", 36_324, SECOND_HAND),
    ),
    facts={
        "license": "not known; images of COCO, D2S and MUVA under their own terms",
        "download": "huggingface.co/datasets/vllabnthu/R2SM",
        "paper": "arXiv 2506.01795",
    },
)

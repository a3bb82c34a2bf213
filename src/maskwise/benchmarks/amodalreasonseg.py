"""AmodalReasonSeg: an answer in words, with a visible and an amodal mask for every object it names (AURA, ICCV 2025).

The dataset is not released and its record format is not published, so records are read through a field mapping:
`amodalreasonseg.yaml`, or a file passed with `--mapping`. One `[SEG]` may stand for several objects; phrases are then
unknown.
"""

from pathlib import Path

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.field_mapping import read_mapped
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext

MAPPING = Path(__file__).with_name("amodalreasonseg.yaml")
SECOND_HAND = "benchmark card of the paper, second-hand"


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their questions."""
    return read_mapped(context, MAPPING)


AMODALREASONSEG = Benchmark(
    name="amodalreasonseg",
    title="AmodalReasonSeg: amodal reasoning segmentation (AURA, ICCV 2025)",
    protocol="aura",
    layout=FileLayout(
        annotations=("{split}.json", "{split}.jsonl", "{split}.parquet"),
        images=(".", "images", "{split}2014", "train2014", "val2014"),
        notes="fields as declared in amodalreasonseg.yaml; pass another mapping with --mapping.",
    ),
    read=read,
    published=(
        PublishedCount(None, "images", 3_143, SECOND_HAND),
        PublishedCount(None, "questions", 35_494, SECOND_HAND),
    ),
    facts={
        "license": "not released; COCO photos under their own Flickr licenses",
        "download": "none: the project page says that the release is suspended",
        "paper": "AURA, ICCV 2025",
    },
)

"""AmodalReasonSeg: an answer in words, and for every object it names a visible and an amodal mask (AURA, ICCV 2025).

The dataset is not released and its record format is not published, so records are read as a declared mapping says:
`amodalreasonseg.yaml`, or a file of the user's own. One `[SEG]` may stand for several objects; phrases are then left
open.
"""

from pathlib import Path

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.mapping import read_mapped
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading

MAPPING = Path(__file__).with_name("amodalreasonseg.yaml")
SECOND_HAND = "benchmark card of the paper, second-hand"


def read(place: Place) -> Reading:
    """Images with their questions."""
    return read_mapped(place, MAPPING)


AMODALREASONSEG = Benchmark(
    name="amodalreasonseg",
    title="AmodalReasonSeg: amodal reasoning segmentation (AURA, ICCV 2025)",
    protocol="aura",
    layout=Layout(
        annotations=("{split}.json", "{split}.jsonl", "{split}.parquet"),
        images=(".", "images", "{split}2014", "train2014", "val2014"),
        notes="fields as declared in amodalreasonseg.yaml; pass another mapping with --mapping.",
    ),
    read=read,
    published=(
        Published(None, "images", 3_143, SECOND_HAND),
        Published(None, "questions", 35_494, SECOND_HAND),
    ),
    facts={
        "licence": "not released; COCO photos under their own Flickr licences",
        "download": "none: the project page says that the release is suspended",
        "paper": "AURA, ICCV 2025",
    },
)

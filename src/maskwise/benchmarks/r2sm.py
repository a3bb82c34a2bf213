"""R2SM: the words of the query decide whether the visible or the amodal mask is meant.

Its record format is not documented in public, so records are read as a declared mapping says: `r2sm.yaml`, or a file
of the user's own.
"""

from pathlib import Path

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.mapping import read_mapped
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading

MAPPING = Path(__file__).with_name("r2sm.yaml")
SECOND_HAND = "benchmark card of the paper, second-hand"


def read(place: Place) -> Reading:
    """Images with their queries."""
    return read_mapped(place, MAPPING)


R2SM = Benchmark(
    name="r2sm",
    title="R2SM: referring and reasoning for selective masks (arXiv 2506.01795)",
    protocol="r2sm",
    layout=Layout(
        annotations=("{split}.json", "{split}.jsonl", "{split}.parquet", "data/{split}-*.parquet"),
        images=(".", "images"),
        notes="fields as declared in r2sm.yaml; pass another mapping with --mapping.",
    ),
    read=read,
    published=(
        Published(None, "images", 7_276, SECOND_HAND),
        Published(None, "questions", 36_324, SECOND_HAND),
    ),
    facts={
        "licence": "not known; images of COCO, D2S and MUVA under their own terms",
        "download": "huggingface.co/datasets/vllabnthu/R2SM",
        "paper": "arXiv 2506.01795",
    },
)

"""MMR: many targets, objects and parts. Questions about PACO-LVIS images, answered in words and masks.

A part's category is called `object:part`. Which object a part belongs to is known only where the answer says so
(`cup_1's handle` beside `cup_1`).
"""

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.question_lists import ListedImage, ListedTarget, read_question_list
from maskwise.formats.coco import Id
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading

README = "github.com/jdg900/MMR, README"
COUNTED = "counted from the files by a third-party replication"


class MmrImage(ListedImage, frozen=True, kw_only=True):
    """An image with its questions."""

    file_name: str
    image_id: Id

    @property
    def id(self) -> str:
        """COCO's id."""
        return str(self.image_id)

    @property
    def file(self) -> str:
        """With its COCO folder, as in train2017/000000000009.jpg."""
        return self.file_name


def read(place: Place) -> Reading:
    """Images with their questions."""
    tags = {"split": place.split, "source": "paco_lvis"}
    return read_question_list(place, MmrImage, ListedTarget, tags=tags)


MMR = Benchmark(
    name="mmr",
    title="MMR: multi-target and multi-granularity reasoning segmentation (ICLR 2025)",
    protocol="mmr",
    layout=Layout(
        annotations=("MMR/MMR_{split}.json", "MMR_{split}.json"),
        images=("refer_seg/images/mscoco/images", "images/mscoco/images", "images", "coco", "."),
        splits=("train", "val", "test_obj_only", "test_part_only", "test_mixed"),
        notes="file names carry their COCO folder, as in train2017/000000000009.jpg.",
    ),
    read=read,
    published=(
        Published("train", "questions", 154_127, README),
        Published("train", "images", 45_618, COUNTED),
        Published("train", "targets", 272_537, COUNTED),
        Published("val", "questions", 8_194, README),
        Published("val", "images", 2_404, COUNTED),
        Published("val", "targets", 14_671, COUNTED),
        Published("test_obj_only", "questions", 5_875, "items of the copy sj9909/MMR_test_obj"),
        Published(None, "questions", 194_398, README),
        Published(None, "images", 57_643, README),
    ),
    facts={
        "licence": "CC BY 4.0; COCO photos under their own Flickr licences",
        "download": "github.com/jdg900/MMR",
        "paper": "Jang et al., ICLR 2025",
    },
)

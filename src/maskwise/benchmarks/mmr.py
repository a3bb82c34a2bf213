"""MMR: questions with many targets, objects and parts, about PACO-LVIS images, answered in words and masks.

A part's category is named `object:part`. The object that a part belongs to is known only if the answer says so
(`cup_1's handle` beside `cup_1`).
"""

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.multi_target import (
    MultiTargetAnnotation,
    MultiTargetImage,
    read_multi_target,
)
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.coco_file import Id
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext

README = "github.com/jdg900/MMR, README"
COUNTED = "counted from the files by a third-party replication"


class MmrImage(MultiTargetImage, frozen=True, kw_only=True):
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


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their questions."""
    tags = {"split": context.split, "source": "paco_lvis"}
    return read_multi_target(context, MmrImage, MultiTargetAnnotation, tags=tags)


MMR = Benchmark(
    name="mmr",
    title="MMR: multi-target and multi-granularity reasoning segmentation (ICLR 2025)",
    protocol="mmr",
    layout=FileLayout(
        annotations=("MMR/MMR_{split}.json", "MMR_{split}.json"),
        images=(
            "refer_seg/images/mscoco/images",
            "images/mscoco/images",
            "images",
            "coco",
            ".",
        ),
        splits=("train", "val", "test_obj_only", "test_part_only", "test_mixed"),
        notes="file names carry their COCO folder, as in train2017/000000000009.jpg.",
    ),
    read=read,
    published=(
        PublishedCount("train", "questions", 154_127, README),
        PublishedCount("train", "images", 45_618, COUNTED),
        PublishedCount("train", "targets", 272_537, COUNTED),
        PublishedCount("val", "questions", 8_194, README),
        PublishedCount("val", "images", 2_404, COUNTED),
        PublishedCount("val", "targets", 14_671, COUNTED),
        PublishedCount(
            "test_obj_only", "questions", 5_875, "items of the copy sj9909/MMR_test_obj"
        ),
        PublishedCount(None, "questions", 194_398, README),
        PublishedCount(None, "images", 57_643, README),
    ),
    facts={
        "license": "CC BY 4.0; COCO photos under their own Flickr licenses",
        "download": "github.com/jdg900/MMR",
        "paper": "Jang et al., ICLR 2025",
    },
)

"""MUSE: questions with many targets about COCO images with LVIS masks, from the PixelLM paper.

The image of a record with `file_name` is in train2014; with `coco_url` it is in train2017 if the URL says so, otherwise
in val2017. `text_answers` may be missing. Answers name a target by its `rephrased_name`.
"""

from pathlib import PurePosixPath

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.multi_target import (
    MultiTargetAnnotation,
    MultiTargetImage,
    read_multi_target,
)
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext

README = "github.com/MaverickRen/PixelLM, README"


class MuseImage(MultiTargetImage, frozen=True, kw_only=True):
    """An image with its questions."""

    file_name: str | None = None
    coco_url: str | None = None

    @property
    def id(self) -> str:
        """The file name without its suffix, with its folder."""
        return (
            str(PurePosixPath(self.file).with_suffix(""))
            if self.file[-1:] != "/"
            else self.file
        )

    @property
    def file(self) -> str:
        """The file below the folder that holds the COCO image folders."""
        if self.file_name is not None:
            return f"train2014/{self.file_name}"
        url = self.coco_url or ""
        return f"{'train2017' if 'train2017' in url else 'val2017'}/{url.rpartition('/')[2]}"


class MuseTarget(MultiTargetAnnotation, frozen=True, kw_only=True):
    """One target of a question."""

    rephrased_name: str | None = None

    @property
    def answer_name(self) -> str:
        """The name used in the answer."""
        return self.rephrased_name or self.category_name


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their questions."""
    return read_multi_target(
        context, MuseImage, MuseTarget, tags={"split": context.split, "source": "lvis"}
    )


MUSE = Benchmark(
    name="muse",
    title="MUSE: multi-target reasoning segmentation (PixelLM, CVPR 2024)",
    protocol="muse",
    layout=FileLayout(
        annotations=(
            "muse/muse_{split}.json",
            "muse_{split}.json",
            "MUSE_{split}.json",
        ),
        images=(
            "refer_seg/images/mscoco/images",
            "images/mscoco/images",
            "images",
            "coco",
            ".",
        ),
        splits=("train", "val", "test_less", "test_many"),
        notes="below the image folder: train2014 for records with file_name, train2017 and val2017 for the others.",
    ),
    read=read,
    published=(
        PublishedCount(None, "questions", 246_000, f"{README} (246k, rounded)"),
        PublishedCount(None, "targets", 900_000, f"{README} (0.9 million, rounded)"),
    ),
    facts={
        "license": "none stated for the annotations; COCO photos under their own Flickr licenses",
        "download": "github.com/MaverickRen/PixelLM",
        "paper": "Ren et al., CVPR 2024",
    },
)

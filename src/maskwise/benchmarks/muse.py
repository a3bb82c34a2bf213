"""MUSE: many targets. Questions about COCO images with LVIS masks, from the PixelLM paper.

A record with `file_name` lies in train2014; one with `coco_url` in train2017 where the address says so, otherwise in
val2017. `text_answers` may be missing. Answers call a target by its `rephrased_name`.
"""

from pathlib import PurePosixPath

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.question_lists import ListedImage, ListedTarget, read_question_list
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading

README = "github.com/MaverickRen/PixelLM, README"


class MuseImage(ListedImage, frozen=True, kw_only=True):
    """An image with its questions."""

    file_name: str | None = None
    coco_url: str | None = None

    @property
    def id(self) -> str:
        """The file's name without its ending, below its folder."""
        return str(PurePosixPath(self.file).with_suffix("")) if self.file[-1:] != "/" else self.file

    @property
    def file(self) -> str:
        """The file below the folder of COCO's folders."""
        if self.file_name is not None:
            return f"train2014/{self.file_name}"
        url = self.coco_url or ""
        return f"{'train2017' if 'train2017' in url else 'val2017'}/{url.rpartition('/')[2]}"


class MuseTarget(ListedTarget, frozen=True, kw_only=True):
    """One target of a question."""

    rephrased_name: str | None = None

    @property
    def said(self) -> str:
        """How the answer calls it."""
        return self.rephrased_name or self.category_name


def read(place: Place) -> Reading:
    """Images with their questions."""
    return read_question_list(place, MuseImage, MuseTarget, tags={"split": place.split, "source": "lvis"})


MUSE = Benchmark(
    name="muse",
    title="MUSE: multi-target reasoning segmentation (PixelLM, CVPR 2024)",
    protocol="muse",
    layout=Layout(
        annotations=("muse/muse_{split}.json", "muse_{split}.json", "MUSE_{split}.json"),
        images=("refer_seg/images/mscoco/images", "images/mscoco/images", "images", "coco", "."),
        splits=("train", "val", "test_less", "test_many"),
        notes="below the images' folder: train2014 for records with file_name, train2017 and val2017 for the others.",
    ),
    read=read,
    published=(
        Published(None, "questions", 246_000, f"{README} (246k, rounded)"),
        Published(None, "targets", 900_000, f"{README} (0.9 million, rounded)"),
    ),
    facts={
        "licence": "none stated for the annotations; COCO photos under their own Flickr licences",
        "download": "github.com/MaverickRen/PixelLM",
        "paper": "Ren et al., CVPR 2024",
    },
)

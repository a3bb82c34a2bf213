"""RefCOCOm: expressions about objects and parts of COCO train2014 images, from the MRES paper, as MMR evaluates them.

A file is a list of segments: `img_name`, `segment_id` and `sentences`; the mask is `masks/SEGMENT_ID.png`, in which
only the value 255 is foreground (MMR divides grey by 255 and cuts to whole numbers). One sample a sentence, trimmed
and in lower case as there.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import ImageError, MaskError, SourceError
from maskwise.formats.coco import Id
from maskwise.formats.draft import Draft, Outline, Question, finish
from maskwise.formats.layout import Layout, Place, Size, locate_image
from maskwise.formats.rasters import read_raster
from maskwise.formats.records import decode_record, read_json
from maskwise.formats.source import Reading
from maskwise.images import check_relative
from maskwise.masks import Mask

FOREGROUND = 255
MASK_FOLDERS = ("masks", "../masks", "../../Refcocom/masks")
"""Where masks may lie, seen from the annotation file. MMR reads annotations and masks in differently spelt folders."""


class Sentence(msgspec.Struct, frozen=True):
    """One expression."""

    sent: str


class Segment(msgspec.Struct, frozen=True):
    """One object or part and the expressions that mean it."""

    img_name: str
    segment_id: Id
    sentences: list[Sentence]
    cat: str | int = ""


def read(place: Place) -> Reading:
    """Images with their expressions."""
    folders = [place.annotations.parent / folder for folder in MASK_FOLDERS]
    masks = next((folder for folder in folders if folder.is_dir()), None)
    if masks is None:
        raise SourceError(
            f"{place.annotations}: no folder of masks; looked for {', '.join(map(str, folders))}"
        )
    by_image: dict[str, list[Segment]] = defaultdict(list)
    for position, raw in enumerate(read_json(place.annotations, list[msgspec.Raw])):
        name = f"[{position}]"
        segment = decode_record(raw, Segment, problems=place.problems, file=place.file, record=name)
        if segment is not None:
            by_image[segment.img_name].append(segment)
    return Reading(len(by_image), finish(_drafts(place, by_image, masks), place.problems))


def _drafts(place: Place, by_image: dict[str, list[Segment]], masks: Path) -> Iterator[Draft]:
    for name, segments in by_image.items():
        image = locate_image(place, name, None, id=PurePosixPath(name).stem or name, record=f"image {name}")
        if image is not None:
            size = (image.height, image.width)
            outlines = tuple(_outlines(place, segments, masks, size=size))
            yield Draft(image, place.file, outlines, tuple(_questions(place, segments)))


def _outlines(place: Place, segments: list[Segment], masks: Path, *, size: Size) -> Iterator[Outline]:
    for segment in segments:
        id, record = str(segment.segment_id), f"segment {segment.segment_id}"
        try:
            check_relative(f"{id}.png")
            mask = Mask.from_dense(read_raster(masks / f"{id}.png", size) == FOREGROUND)
        except (MaskError, ImageError) as error:
            place.skip("mask that is none", record, expected=f"{id}.png", found=str(error))
            continue
        yield Outline(id, str(segment.cat), record, visible=mask)


def _questions(place: Place, segments: list[Segment]) -> Iterator[Question]:
    tags = {"split": place.split, "source": "coco"}
    for segment in segments:
        for number, sentence in enumerate(segment.sentences):
            id = f"{segment.segment_id}/{number}"
            record = f"segment {segment.segment_id}, sentences[{number}]"
            yield Question(id, sentence.sent.strip().lower(), record, (str(segment.segment_id),), tags=tags)


REFCOCOM = Benchmark(
    name="refcocom",
    title="RefCOCOm: referring expressions for objects and parts (MRES, CVPR 2024)",
    protocol="mmr",
    layout=Layout(
        annotations=(
            "refer_seg/RefCOCOm/annotations/{split}.json",
            "RefCOCOm/annotations/{split}.json",
            "annotations/{split}.json",
        ),
        images=(
            "refer_seg/images/mscoco/images/train2014",
            "images/mscoco/images/train2014",
            "images/train2014",
            "train2014",
            "images",
            ".",
        ),
        notes="the folder masks beside the folder annotations; any file name there is a split.",
    ),
    read=read,
    facts={
        "licence": "none stated for the annotations; COCO photos under their own Flickr licences",
        "download": "github.com/Rubics-Xuan/MRES",
        "paper": "Wang et al., CVPR 2024",
    },
)

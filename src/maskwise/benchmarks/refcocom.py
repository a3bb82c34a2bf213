"""RefCOCOm: expressions about objects and parts of COCO train2014 pictures, from the MRES paper, as MMR evaluates them.

A file is a list of segments: `img_name`, `segment_id` and `sentences`; the mask is `masks/SEGMENT_ID.png`, in which
only the value 255 is foreground (MMR divides grey by 255 and cuts to whole numbers). One sample a sentence, trimmed
and in lower case as there.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import MaskError, PictureError, SourceError
from maskwise.masks import Mask
from maskwise.pictures import check_relative
from maskwise.sources.coco import Id
from maskwise.sources.draft import Draft, Outline, Question, finish
from maskwise.sources.layout import Layout, Place, Size, locate_picture
from maskwise.sources.rasters import read_raster
from maskwise.sources.records import decode_record, read_json
from maskwise.sources.source import Reading

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
    """Pictures with their expressions."""
    folders = [place.annotations.parent / folder for folder in MASK_FOLDERS]
    masks = next((folder for folder in folders if folder.is_dir()), None)
    if masks is None:
        raise SourceError(
            f"{place.annotations}: no folder of masks; looked for {', '.join(map(str, folders))}"
        )
    by_picture: dict[str, list[Segment]] = defaultdict(list)
    for position, raw in enumerate(read_json(place.annotations, list[msgspec.Raw])):
        name = f"[{position}]"
        segment = decode_record(raw, Segment, problems=place.problems, file=place.file, record=name)
        if segment is not None:
            by_picture[segment.img_name].append(segment)
    return Reading(len(by_picture), finish(_drafts(place, by_picture, masks), place.problems))


def _drafts(place: Place, by_picture: dict[str, list[Segment]], masks: Path) -> Iterator[Draft]:
    for name, segments in by_picture.items():
        picture = locate_picture(
            place, name, None, id=PurePosixPath(name).stem or name, record=f"picture {name}"
        )
        if picture is not None:
            size = (picture.height, picture.width)
            outlines = tuple(_outlines(place, segments, masks, size=size))
            yield Draft(picture, place.file, outlines, tuple(_questions(place, segments)))


def _outlines(place: Place, segments: list[Segment], masks: Path, *, size: Size) -> Iterator[Outline]:
    for segment in segments:
        id, record = str(segment.segment_id), f"segment {segment.segment_id}"
        try:
            check_relative(f"{id}.png")
            mask = Mask.from_dense(read_raster(masks / f"{id}.png", size) == FOREGROUND)
        except (MaskError, PictureError) as error:
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
        pictures=(
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

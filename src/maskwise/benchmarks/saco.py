"""SA-Co gold and silver: noun phrases about photos, with all instances, or none, of up to three annotators.

`images` lists pairs of a photo and a phrase (`text_input`), so a photo occurs several times; a pair without annotation
is a negative phrase. `bbox` and `area` are normalized to 0..1 and not read; masks are RLE. Gold has one file per
annotator (`_merged_a_`, `_b_`, `_c_`): the first one gives the targets, the others `other_targets`. The tag
`exhaustive` is `yes` if every annotator says that all instances are marked; the official rule counts only those.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from maskwise.benchmarks.benchmark import CARDS, Benchmark
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_file import Id
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import decode_record, read_json
from maskwise.formats.read_context import ReadContext, locate_image

FIRST_ANNOTATOR = "_merged_a_"
FURTHER_ANNOTATORS = ("_merged_b_", "_merged_c_")


class SacoPair(msgspec.Struct, frozen=True):
    """An entry of `images`: a photo and a phrase."""

    id: Id
    file_name: str
    text_input: str
    width: int
    height: int
    is_instance_exhaustive: bool | int = True


class SacoAnnotation(msgspec.Struct, frozen=True):
    """An entry of `annotations`: one instance. The README says is_crowd, the files iscrowd."""

    id: Id
    image_id: Id
    segmentation: msgspec.Raw
    iscrowd: bool | int = 0


class SacoFile(msgspec.Struct, frozen=True):
    """A whole file; records stay bytes until they are decoded one by one."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]


class AnnotatorFile(msgspec.Struct, frozen=True):
    """What one annotator said: the pairs by id, and the instances of each."""

    pairs: dict[Id, SacoPair]
    instances: dict[Id, list[SacoAnnotation]]


def read(context: ReadContext) -> AnnotatedImages:
    """Photos with their phrases."""
    paths = [context.annotations]
    for further in FURTHER_ANNOTATORS:
        name = context.annotations.name.replace(FIRST_ANNOTATOR, further)
        path = context.annotations.with_name(name)
        if name != context.annotations.name and path.is_file():
            paths.append(path)
    annotators = [_read_annotator(context, path) for path in paths]
    by_photo: dict[str, list[SacoPair]] = defaultdict(list)
    for pair in annotators[0].pairs.values():
        by_photo[pair.file_name].append(pair)
    images = decode_annotations(
        _image_annotations(context, by_photo, annotators), context.diagnostics
    )
    about = {"annotators": str(len(annotators))}
    return AnnotatedImages(len(by_photo), images, about)


def _read_annotator(context: ReadContext, path: Path) -> AnnotatorFile:
    file = read_json(path, SacoFile)
    pairs: dict[Id, SacoPair] = {}
    instances: dict[Id, list[SacoAnnotation]] = defaultdict(list)
    for position, raw in enumerate(file.images):
        pair = decode_record(
            raw,
            SacoPair,
            diagnostics=context.diagnostics,
            file=path.name,
            record=f"images[{position}]",
        )
        if pair is not None:
            pairs[pair.id] = pair
    for position, raw in enumerate(file.annotations):
        record = f"annotations[{position}]"
        annotation = decode_record(
            raw,
            SacoAnnotation,
            diagnostics=context.diagnostics,
            file=path.name,
            record=record,
        )
        if annotation is None:
            continue
        if annotation.image_id not in pairs:
            context.skip(
                "annotation of an unknown image",
                record,
                expected="one of images",
                found=annotation.image_id,
            )
            continue
        instances[annotation.image_id].append(annotation)
    return AnnotatorFile(pairs, instances)


def _image_annotations(
    context: ReadContext,
    by_photo: dict[str, list[SacoPair]],
    annotators: list[AnnotatorFile],
) -> Iterator[ImageAnnotation]:
    for file_name, pairs in by_photo.items():
        size = (pairs[0].height, pairs[0].width)
        record = f"pair {pairs[0].id}"
        image = locate_image(context, file_name, size, id=file_name, record=record)
        if image is None:
            continue
        regions: list[RegionAnnotation] = []
        questions = []
        for pair in pairs:
            target_ids = []
            for number, annotator in enumerate(annotators):
                own_regions = _to_regions(pair, number, annotator)
                regions += own_regions
                target_ids.append(tuple(region.id for region in own_regions))
            answered = [item for item in annotators if pair.id in item.pairs]
            is_exhaustive = all(
                item.pairs[pair.id].is_instance_exhaustive for item in answered
            )
            question = QuestionAnnotation(
                str(pair.id),
                pair.text_input,
                f"pair {pair.id}",
                targets=target_ids[0],
                # Annotators come in order, so those after the last one that has the pair can be left out.
                other_targets=tuple(target_ids[1 : len(answered)]),
                tags={
                    "split": context.split,
                    "exhaustive": "yes" if is_exhaustive else "no",
                },
            )
            questions.append(question)
        yield ImageAnnotation(image, context.file, tuple(regions), tuple(questions))


def _to_regions(
    pair: SacoPair, number: int, annotator: AnnotatorFile
) -> list[RegionAnnotation]:
    """The instances of a pair. Ids of different annotators may be equal, so they get the annotator's letter."""
    letter = "abc"[number]
    return [
        RegionAnnotation(
            f"{pair.id}/{letter}{annotation.id}",
            pair.text_input,
            f"annotation {annotation.id} of annotator {letter}",
            visible=annotation.segmentation,
            crowd=bool(annotation.iscrowd),
        )
        for annotation in annotator.instances.get(pair.id, [])
    ]


README = "README of facebookresearch/sam3, summed"
SACO_FACTS = {
    "license": "SAM License; photos under their own terms",
    "paper": "Carion et al., SAM 3, 2025",
    "layout": "layout from the README, file not seen",
}

SACO_GOLD = Benchmark(
    name="saco-gold",
    title="SA-Co/Gold: noun phrases with all their instances, by three annotators (SAM 3, 2025)",
    protocol="saco",
    layout=FileLayout(
        annotations=(
            "gt-annotations/gold_{split}_merged_a_release_test.json",
            "gold_{split}_merged_a_release_test.json",
        ),
        images=(".", "metaclip-images", "sa1b-images", "images"),
        notes="splits are the seven subsets: metaclip, sa1b, crowded, fg_food, fg_sports_equipment, attributes, "
        "wiki_common. The files of the annotators b and c are beside that of a.",
    ),
    read=read,
    published=(PublishedCount(None, "questions", 168_202, README),),
    card_file=CARDS / "saco.yaml",
    facts=SACO_FACTS | {"download": "huggingface.co: facebook/SACo-Gold"},
)

SACO_SILVER = Benchmark(
    name="saco-silver",
    title="SA-Co/Silver: noun phrases with all their instances, by one annotator (SAM 3, 2025)",
    protocol="saco",
    layout=FileLayout(
        annotations=(
            "gt-annotations/silver_{split}_merged_test.json",
            "silver_{split}_merged_test.json",
        ),
        images=(".", "images"),
        notes="splits are the ten domains.",
    ),
    read=read,
    published=(PublishedCount(None, "questions", 1_838_125, README),),
    card_file=CARDS / "saco.yaml",
    facts=SACO_FACTS | {"download": "huggingface.co: facebook/SACo-Silver"},
)

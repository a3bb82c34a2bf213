"""gRefCOCO: expressions about no, one or many objects of COCO train2014 images.

`grefs(unc).json` lists references of all splits: `image_id`, `split`, `ann_id` (a list; `[-1]`: no target) and
`sentences`. `instances.json` beside it holds the masks. One sample per sentence, with the text `raw` as in
the official loader. Crowd annotations are no targets, as there. A pickle `grefs(unc).p` is never opened.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import FormatError
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco import (
    locate_coco_image,
    read_entries,
    read_images,
    to_region,
)
from maskwise.formats.coco_file import (
    CocoFile,
    CocoImage,
    CocoInstance,
    Id,
    read_licenses,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext
from maskwise.schema import ImageInfo

PAPER = "GRES paper (CVPR 2023)"


class GrefSentence(msgspec.Struct, frozen=True):
    """One expression."""

    sent_id: Id
    sent: str
    raw: str | None = None


class GrefReference(msgspec.Struct, frozen=True):
    """Expressions that refer to the same objects."""

    ref_id: Id
    image_id: Id
    split: str
    ann_id: list[int] | int
    sentences: list[GrefSentence]

    @property
    def targets(self) -> list[int]:
        """Ids of the target annotations; none for [-1]."""
        ids = self.ann_id if isinstance(self.ann_id, list) else [self.ann_id]
        return [] if ids == [-1] else ids


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their expressions."""
    path = context.annotations.with_name("instances.json")
    if not path.is_file():
        raise FormatError(
            f"{path} is missing: the masks of {context.annotations.name} are in it"
        )
    references = read_json(context.annotations, list[msgspec.Raw])
    by_image = _by_image(context, references)
    annotations = _image_annotations(context, by_image, read_json(path, CocoFile))
    return AnnotatedImages(
        len(by_image), decode_annotations(annotations, context.diagnostics)
    )


def _by_image(
    context: ReadContext, records: list[msgspec.Raw]
) -> dict[Id, list[GrefReference]]:
    by_image: dict[Id, list[GrefReference]] = defaultdict(list)
    for position, raw in enumerate(records):
        name = f"[{position}]"
        reference = context.decode(raw, GrefReference, record=name)
        if reference is not None and reference.split == context.split:
            by_image[reference.image_id].append(reference)
    return by_image


def _image_annotations(
    context: ReadContext, by_image: dict[Id, list[GrefReference]], file: CocoFile
) -> Iterator[ImageAnnotation]:
    names = {category.id: category.name for category in file.categories}
    images = read_images(context, file.images)
    licenses = read_licenses(file.licenses)
    instances: dict[Id, list[CocoInstance]] = defaultdict(list)
    for instance in read_entries(
        context, file.annotations, CocoInstance, images=images
    ):
        instances[instance.image_id].append(instance)
    for id, references in by_image.items():
        image = _locate(context, images.get(id), f"image {id}", licenses=licenses)
        if image is None:
            continue
        crowds = {instance.id for instance in instances[id] if instance.iscrowd}
        questions = tuple(_questions(context, references, crowds))
        referred = {target for question in questions for target in question.targets}
        regions = tuple(
            to_region(
                instance,
                names.get(instance.category_id, ""),
                f"annotation {instance.id}",
            )
            for instance in instances[id]
            if str(instance.id) in referred
        )
        yield ImageAnnotation(image, context.file, regions, questions)


def _locate(
    context: ReadContext,
    image: CocoImage | None,
    record: str,
    *,
    licenses: dict[Id, str | None],
) -> ImageInfo | None:
    if image is None:
        context.skip(
            "reference to an unknown image",
            record,
            expected="one of instances.json",
            found=record,
        )
        return None
    return locate_coco_image(
        context, image, id=str(image.id), record=record, licenses=licenses
    )


def _questions(
    context: ReadContext, references: list[GrefReference], crowds: set[Id]
) -> Iterator[QuestionAnnotation]:
    tags = {"split": context.split, "source": "coco"}
    for reference in references:
        targets = tuple(
            str(target) for target in reference.targets if target not in crowds
        )
        for sentence in reference.sentences:
            id = f"{reference.ref_id}/{sentence.sent_id}"
            text = sentence.sent if sentence.raw is None else sentence.raw
            record = f"reference {reference.ref_id}, sentence {sentence.sent_id}"
            yield QuestionAnnotation(id, text, record, targets=targets, tags=tags)


GREFCOCO = Benchmark(
    name="grefcoco",
    title="gRefCOCO: generalized referring expressions, with none, one or many targets (GRES, CVPR 2023)",
    protocol="gres",
    layout=FileLayout(
        annotations=(
            "refer_seg/grefcoco/grefs(unc).json",
            "grefcoco/grefs(unc).json",
            "grefs(unc).json",
        ),
        images=(
            "refer_seg/images/mscoco/images/train2014",
            "images/mscoco/images/train2014",
            "images/train2014",
            "train2014",
            "images",
            ".",
        ),
        splits=("train", "val", "testA", "testB"),
        notes="instances.json is beside grefs(unc).json. A pickle grefs(unc).p is never opened: use the JSON.",
    ),
    read=read,
    published=(
        PublishedCount(None, "questions", 278_232, PAPER),
        PublishedCount(None, "images", 19_994, PAPER),
    ),
    facts={
        "license": "none stated in the repository; COCO photos under their own Flickr licenses",
        "download": "github.com/henghuiding/gRefCOCO",
        "paper": "Liu, Ding and Jiang, CVPR 2023",
    },
)

"""The RefCOCO family: expressions about one object, in a pickle of references beside COCO's `instances.json`.

`refs(PARTITION).p` lists the references of all splits: `ref_id`, `ann_id`, `image_id`, `split` and `sentences`. The
pickle is read without any global (`formats.plain_pickle`). Splits are selected as in the official `refer.py`: testA,
testB and testC by their letter, test by the word, train and val exactly.

Expressions are stripped and in lower case as in LISA and GSVA. A mask is the union of its parts. LISA adds the parts,
so that pixels of two parts are neither target nor background: `--option parts=sum` marks them as such.

FP-RefCOCO marks expressions that are false (`is_false_premise`), R-RefCOCO those that exist (`exist`), and Ref-ZOM
references without an object (`source` zero): such an expression has no target.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from maskwise.benchmarks.benchmark import CARDS, Benchmark
from maskwise.errors import FormatError
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco import locate_coco_image, read_entries, read_images
from maskwise.formats.coco_file import CocoEntry, CocoFile, Id, read_licenses
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.plain_pickle import read_plain_pickle
from maskwise.formats.read_context import ReadContext
from maskwise.masks import Mask

README = "README of lichengunc/refer"
COCO_TERMS = (
    "none stated for the annotations; COCO photos under their own Flickr licenses"
)

IMAGE_FOLDERS = (
    "refer_seg/images/mscoco/images/train2014",
    "images/mscoco/images/train2014",
    "images/train2014",
    "train2014",
    "images",
    ".",
)
"""LISA trains below `refer_seg` and validates without it, so both are tried."""

Sentences = Literal["all", "first"]
Parts = Literal["union", "sum"]


class ReferSentence(msgspec.Struct, frozen=True):
    """One expression. `exist` is a field of R-RefCOCO, `is_false_premise` and `gt_sent` are of FP-RefCOCO."""

    sent: str
    sent_id: Id | None = None
    exist: bool | int = True
    is_false_premise: bool | int = False
    gt_sent: str | None = None

    @property
    def is_true(self) -> bool:
        """Whether the image contains what the expression says."""
        return bool(self.exist) and not self.is_false_premise


class ReferReference(msgspec.Struct, frozen=True):
    """The expressions about one object; Ref-ZOM has several objects or none."""

    ref_id: Id
    ann_id: Id | list[Id] | None
    image_id: Id
    split: str
    sentences: list[ReferSentence]
    source: str | None = None

    @property
    def targets(self) -> list[Id]:
        """Ids of the target annotations."""
        if self.source == "zero" or self.ann_id is None:
            return []
        ids = self.ann_id if isinstance(self.ann_id, list) else [self.ann_id]
        return [id for id in ids if id != -1]


class ReferInstance(CocoEntry, frozen=True):
    """An annotation; RefCLEF gives a list of RLE, and `[]` is an empty mask."""

    segmentation: msgspec.Raw
    category_id: Id | None = None
    iscrowd: int | bool = 0


def read(
    context: ReadContext,
    *,
    partition: str = "",
    sentences: Sentences = "all",
    parts: Parts = "union",
) -> AnnotatedImages:
    """Images with their expressions.

    partition: the name in `refs(NAME).p`, if the folder has several such files. sentences: all expressions of a
    reference, or only its first one, as the hub copies have it. parts: what pixels of two parts of a mask are: target,
    or neither target nor background as in LISA (`sum`).
    """
    path = _find_references(context.annotations, partition)
    instances = path.with_name("instances.json")
    if not instances.is_file():
        raise FormatError(f"{instances} is missing: the masks of {path.name} are in it")
    records = read_plain_pickle(path)
    if not isinstance(records, list):
        raise FormatError(
            f"{path}: expected a list of references, found a {type(records).__name__}"
        )
    by_image = _by_image(context, records)
    annotations = _image_annotations(
        context, by_image, read_json(instances, CocoFile), sentences=sentences
    )
    images = decode_annotations(
        annotations, context.diagnostics, overlaps=parts == "sum"
    )
    about = {"references": path.name, "sentences": sentences, "parts": parts}
    return AnnotatedImages(len(by_image), images, about)


def matches_split(split: str, wanted: str) -> bool:
    """Whether a reference belongs to a split, by the rule of `refer.py`: testAB counts for testA and testB."""
    if wanted in ("testA", "testB", "testC"):
        return wanted[-1] in split
    if wanted == "test":
        return "test" in split
    return split == wanted


def _find_references(found: Path, partition: str) -> Path:
    if not partition:
        return found
    path = found.with_name(f"refs({partition}).p")
    if not path.is_file():
        known = sorted(file.name for file in found.parent.glob("refs(*).p"))
        raise FormatError(f"{path} does not exist; found: {', '.join(known)}")
    return path


def _by_image(
    context: ReadContext, records: list[Any]
) -> dict[Id, list[ReferReference]]:
    by_image: dict[Id, list[ReferReference]] = defaultdict(list)
    for position, record in enumerate(records):
        try:
            reference = msgspec.convert(record, ReferReference)
        except (msgspec.ValidationError, RecursionError) as error:
            context.skip(
                "fields of another type",
                f"[{position}]",
                expected="ReferReference",
                found=str(error),
            )
            continue
        if matches_split(reference.split, context.split):
            by_image[reference.image_id].append(reference)
    return by_image


def _image_annotations(
    context: ReadContext,
    by_image: dict[Id, list[ReferReference]],
    file: CocoFile,
    *,
    sentences: Sentences,
) -> Iterator[ImageAnnotation]:
    names = {category.id: category.name for category in file.categories}
    images = read_images(context, file.images)
    licenses = read_licenses(file.licenses)
    instances: dict[Id, dict[Id, ReferInstance]] = defaultdict(dict)
    for instance in read_entries(
        context, file.annotations, ReferInstance, images=images
    ):
        instances[instance.image_id][instance.id] = instance
    for id, references in by_image.items():
        record = f"image {id}"
        entry = images.get(id)
        if entry is None:
            context.skip(
                "reference to an unknown image",
                record,
                expected="one of instances.json",
                found=record,
            )
            continue
        image = locate_coco_image(
            context, entry, id=str(id), record=record, licenses=licenses
        )
        if image is None:
            continue
        questions = tuple(_questions(context, references, sentences))
        targets = {target for question in questions for target in question.targets}
        size = (image.height, image.width)
        regions = tuple(
            _to_region(
                instance, names.get(instance.category_id or "", ""), empty_size=size
            )
            for instance in instances[id].values()
            if str(instance.id) in targets
        )
        yield ImageAnnotation(image, context.file, regions, questions)


def _to_region(
    instance: ReferInstance, name: str, *, empty_size: tuple[int, int]
) -> RegionAnnotation:
    visible: object = instance.segmentation
    if bytes(instance.segmentation).strip() == b"[]":
        visible = Mask.empty(*empty_size)
    return RegionAnnotation(
        str(instance.id),
        name,
        f"annotation {instance.id}",
        visible=visible,
        crowd=bool(instance.iscrowd),
    )


def _questions(
    context: ReadContext, references: list[ReferReference], sentences: Sentences
) -> Iterator[QuestionAnnotation]:
    for reference in references:
        used = reference.sentences[:1] if sentences == "first" else reference.sentences
        targets = tuple(str(target) for target in reference.targets)
        for number, sentence in enumerate(used):
            sentence_id = number if sentence.sent_id is None else sentence.sent_id
            tags = {"split": context.split, "source": "coco"}
            if reference.source is not None:
                tags["targets"] = reference.source
            if not sentence.is_true:
                tags["false_premise"] = "yes"
            yield QuestionAnnotation(
                f"{reference.ref_id}/{sentence_id}",
                sentence.sent.strip().lower(),
                f"reference {reference.ref_id}, sentence {sentence_id}",
                targets=targets if sentence.is_true else (),
                tags=tags,
            )


def _layout(
    folders: tuple[str, ...], files: tuple[str, ...], splits: tuple[str, ...]
) -> FileLayout:
    """The layout of LISA and of `refer`: a folder per dataset, instances.json beside the references."""
    roots = ("refer_seg/", "")
    patterns = [
        f"{root}{folder}/{file}"
        for root in roots
        for folder in folders
        for file in files
    ]
    return FileLayout(
        annotations=(*patterns, *files),
        images=IMAGE_FOLDERS,
        splits=splits,
        notes="instances.json is beside the references. The pickle is read without running anything in it.",
    )


REFCOCO = Benchmark(
    name="refcoco",
    title="RefCOCO: short expressions about one object (UNC, ECCV 2016)",
    protocol="lisa",
    layout=_layout(
        ("refcoco",),
        ("refs(unc).p", "refs(google).p"),
        ("train", "val", "testA", "testB", "test"),
    ),
    read=read,
    published=(
        PublishedCount(None, "questions", 142_210, README),
        PublishedCount("val", "images", 1_500, README),
        PublishedCount("testA", "images", 750, README),
        PublishedCount("testB", "images", 750, README),
    ),
    facts={
        "license": COCO_TERMS,
        "download": "github.com/lichengunc/refer (server gone; LISA links archived copies)",
        "paper": "Yu et al., ECCV 2016",
        "layout": "layout from code, file not seen",
    },
)

REFCOCO_PLUS = Benchmark(
    name="refcoco+",
    title="RefCOCO+: expressions about one object without words of place (UNC, ECCV 2016)",
    protocol="lisa",
    layout=_layout(("refcoco+",), ("refs(unc).p",), ("train", "val", "testA", "testB")),
    read=read,
    card_file=CARDS / "refcoco.yaml",
    facts=REFCOCO.facts,
)

REFCOCOG = Benchmark(
    name="refcocog",
    title="RefCOCOg: long expressions about one object (CVPR 2016)",
    protocol="lisa",
    layout=_layout(
        ("refcocog",), ("refs(umd).p", "refs(google).p"), ("train", "val", "test")
    ),
    read=read,
    published=(
        PublishedCount("val", "images", 1_300, README),
        PublishedCount("test", "images", 2_600, README),
    ),
    card_file=CARDS / "refcoco.yaml",
    facts=REFCOCO.facts
    | {
        "paper": "Mao et al., CVPR 2016; Nagaraja et al., ECCV 2016",
        "warning": "the partition google has no test, and its val shares images with train",
    },
)

REFCLEF = Benchmark(
    name="refclef",
    title="RefCLEF: expressions about regions of ImageCLEF photos (EMNLP 2014)",
    protocol="lisa",
    layout=FileLayout(
        annotations=_layout(
            ("refclef",), ("refs(unc).p", "refs(berkeley).p"), ()
        ).annotations,
        images=(
            "refer_seg/images/saiapr_tc-12",
            "images/saiapr_tc-12",
            "saiapr_tc-12",
            "images",
            ".",
        ),
        splits=("train", "val", "testA", "testB", "testC", "test"),
        notes="instances.json is beside the references; masks are lists of RLE.",
    ),
    read=read,
    card_file=CARDS / "refcoco.yaml",
    facts={
        "license": "none stated for the annotations; photos of IAPR TC-12 under their own terms",
        "download": "github.com/lichengunc/refer (server gone; LISA links archived copies)",
        "paper": "Kazemzadeh et al., EMNLP 2014",
        "layout": "layout from code, file not seen",
    },
)

FALSE_FACTS = {
    "license": COCO_TERMS,
    "paper": "Wu et al. (SESAME), CVPR 2024; Wu et al. (R-RefCOCO), 2023",
    "download": "github.com/see-say-segment/sesame",
    "layout": "layout from code, file not seen",
}


def _false_premise(name: str, folders: tuple[str, ...], title: str) -> Benchmark:
    """A set with expressions that are false for their image."""
    files = (
        "refs(berkeley_exclude_unified).p",
        "refs(berkeley).p",
        "refs(unc_exclude_unified).p",
        "refs(unc).p",
        "refs(umd_exclude_unified).p",
        "refs(umd).p",
    )
    return Benchmark(
        name=name,
        title=title,
        protocol="gsva",
        layout=_layout(folders, files, ("train", "val", "testA", "testB", "test")),
        read=read,
        card_file=CARDS / "fp-refcoco.yaml",
        facts=FALSE_FACTS,
    )


FP_REFCOCO = _false_premise(
    "fp-refcoco", ("fprefcoco",), "FP-RefCOCO: RefCOCO with expressions that are false"
)
FP_REFCOCO_PLUS = _false_premise(
    "fp-refcoco+",
    ("fprefcoco+",),
    "FP-RefCOCO+: RefCOCO+ with expressions that are false",
)
FP_REFCOCOG = _false_premise(
    "fp-refcocog",
    ("fprefcocog",),
    "FP-RefCOCOg: RefCOCOg with expressions that are false",
)
R_REFCOCO = _false_premise(
    "r-refcoco",
    ("R-refcoco", "rrefcoco"),
    "R-RefCOCO: RefCOCO with expressions about objects that do not exist",
)
R_REFCOCO_PLUS = _false_premise(
    "r-refcoco+",
    ("R-refcoco+", "rrefcoco+"),
    "R-RefCOCO+: RefCOCO+ with expressions about objects that do not exist",
)
R_REFCOCOG = _false_premise(
    "r-refcocog",
    ("R-refcocog", "rrefcocog"),
    "R-RefCOCOg: RefCOCOg with expressions about objects that do not exist",
)

REF_ZOM = Benchmark(
    name="ref-zom",
    title="Ref-ZOM: expressions about none, one or many objects (ICCV 2023)",
    protocol="gsva",
    layout=FileLayout(
        annotations=(
            "refer_seg/refzom/Ref_ZOM.p",
            "refzom/Ref_ZOM.p",
            "Ref_ZOM.p",
        ),
        images=(
            "refer_seg/refzom/train2014",
            "refer_seg/refzom/val2014",
            "refzom/train2014",
            "refzom/val2014",
            *IMAGE_FOLDERS,
            "val2014",
        ),
        splits=("train", "test"),
        notes="instances.json is beside Ref_ZOM.p.",
    ),
    read=read,
    facts={
        "license": COCO_TERMS,
        "download": "github.com/toggle1995/RIS-DMMI",
        "paper": "Hu et al., ICCV 2023",
        "layout": "layout from code, file not seen",
    },
)

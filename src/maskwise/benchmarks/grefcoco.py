"""gRefCOCO: expressions about no, one or many objects of COCO train2014 images.

`grefs(unc).json` lists references of all splits: `image_id`, `split`, `ann_id` (a list; `[-1]`: no target) and
`sentences`. `instances.json` beside it holds the masks. One sample a sentence, its text `raw` as the official loader
takes it. Crowd annotations are left out of the targets, as there. A pickle `grefs(unc).p` is never opened.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import SourceError
from maskwise.formats.coco import CocoImage, Id, Instance, Instances, read_entries, read_images, to_outline
from maskwise.formats.draft import Draft, Question, finish
from maskwise.formats.layout import Layout, Place, locate_image
from maskwise.formats.records import decode_record, read_json
from maskwise.formats.source import Published, Reading
from maskwise.schema import ImageInfo

PAPER = "GRES paper (CVPR 2023)"


class Sentence(msgspec.Struct, frozen=True):
    """One expression."""

    sent_id: Id
    sent: str
    raw: str | None = None


class Reference(msgspec.Struct, frozen=True):
    """Expressions that mean the same objects."""

    ref_id: Id
    image_id: Id
    split: str
    ann_id: list[int] | int
    sentences: list[Sentence]

    @property
    def targets(self) -> list[int]:
        """Ids of the annotations meant; none for [-1]."""
        ids = self.ann_id if isinstance(self.ann_id, list) else [self.ann_id]
        return [] if ids == [-1] else ids


def read(place: Place) -> Reading:
    """Images with their expressions."""
    path = place.annotations.with_name("instances.json")
    if not path.is_file():
        raise SourceError(f"{path} is missing: the masks of {place.annotations.name} are in it")
    references = read_json(place.annotations, list[msgspec.Raw])
    by_image = _by_image(place, references)
    drafts = _drafts(place, by_image, read_json(path, Instances))
    return Reading(len(by_image), finish(drafts, place.problems))


def _by_image(place: Place, records: list[msgspec.Raw]) -> dict[Id, list[Reference]]:
    by_image: dict[Id, list[Reference]] = defaultdict(list)
    for position, raw in enumerate(records):
        name = f"[{position}]"
        reference = decode_record(raw, Reference, problems=place.problems, file=place.file, record=name)
        if reference is not None and reference.split == place.split:
            by_image[reference.image_id].append(reference)
    return by_image


def _drafts(place: Place, by_image: dict[Id, list[Reference]], file: Instances) -> Iterator[Draft]:
    names = {category.id: category.name for category in file.categories}
    images = read_images(place, file.images)
    instances: dict[Id, list[Instance]] = defaultdict(list)
    for instance in read_entries(place, file.annotations, Instance, images=images):
        instances[instance.image_id].append(instance)
    for id, references in by_image.items():
        image = _locate(place, images.get(id), f"image {id}")
        if image is None:
            continue
        crowds = {instance.id for instance in instances[id] if instance.iscrowd}
        questions = tuple(_questions(place, references, crowds))
        meant = {target for question in questions for target in question.targets}
        outlines = tuple(
            to_outline(instance, names.get(instance.category_id, ""), f"annotation {instance.id}")
            for instance in instances[id]
            if str(instance.id) in meant
        )
        yield Draft(image, place.file, outlines, questions)


def _locate(place: Place, image: CocoImage | None, record: str) -> ImageInfo | None:
    if image is None:
        place.skip("reference to an unknown image", record, expected="one of instances.json", found=record)
        return None
    return locate_image(place, image.name, (image.height, image.width), id=str(image.id), record=record)


def _questions(place: Place, references: list[Reference], crowds: set[Id]) -> Iterator[Question]:
    tags = {"split": place.split, "source": "coco"}
    for reference in references:
        targets = tuple(str(target) for target in reference.targets if target not in crowds)
        for sentence in reference.sentences:
            id = f"{reference.ref_id}/{sentence.sent_id}"
            text = sentence.sent if sentence.raw is None else sentence.raw
            record = f"reference {reference.ref_id}, sentence {sentence.sent_id}"
            yield Question(id, text, record, targets, tags=tags)


GREFCOCO = Benchmark(
    name="grefcoco",
    title="gRefCOCO: generalized referring expressions, with none, one or many targets (GRES, CVPR 2023)",
    protocol="gres",
    layout=Layout(
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
        notes="instances.json lies beside grefs(unc).json. A pickle grefs(unc).p is never opened: take the JSON.",
    ),
    read=read,
    published=(
        Published(None, "questions", 278_232, PAPER),
        Published(None, "images", 19_994, PAPER),
    ),
    facts={
        "licence": "none stated in the repository; COCO photos under their own Flickr licences",
        "download": "github.com/henghuiding/gRefCOCO",
        "paper": "Liu, Ding and Jiang, CVPR 2023",
    },
)

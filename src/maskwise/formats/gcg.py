"""GCG, grounded conversation generation (GLaMM): a caption whose phrases have masks.

The JSON is a list of images: `file_name`, `caption` and `groundings`, which maps a phrase to `token_positives` (its
first character and the one after its last) and `rle_masks`. One sample per image: the caption is the answer, and every
mask is a target that the phrase refers to. The file has no question; `QUESTION` is ours.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_export import write_json
from maskwise.formats.exported_dataset import export_images, split_name, write_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.segmentations import CocoRle
from maskwise.formats.written_losses import Losses, requested_mask
from maskwise.schema import Answer, Phrase, Sample
from maskwise.store import Dataset

LAYOUT = FileLayout(
    annotations=("annotations/{split}.json", "{split}.json"),
    images=("images", "{split}", "train2014", "train2017", "."),
)

QUESTION = "Describe the image, and segment what the description mentions."


class Grounding(msgspec.Struct, frozen=True):
    """A phrase: where it stands in the caption, and its masks."""

    token_positives: tuple[int, int]
    rle_masks: list[CocoRle]


class GcgImage(msgspec.Struct, frozen=True):
    """An image with its caption."""

    file_name: str
    caption: str
    groundings: dict[str, Grounding]


def read(context: ReadContext) -> AnnotatedImages:
    """Images with one question each."""
    records = read_json(context.annotations, list[msgspec.Raw])
    annotations = _image_annotations(context, records)
    return AnnotatedImages(
        len(records), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotations(
    context: ReadContext, records: list[msgspec.Raw]
) -> Iterator[ImageAnnotation]:
    for position, raw in enumerate(records):
        record = f"[{position}]"
        entry = context.decode(raw, GcgImage, record=record)
        if entry is None:
            continue
        sizes = [
            mask.size for item in entry.groundings.values() for mask in item.rle_masks
        ]
        image = locate_image(
            context,
            entry.file_name,
            sizes[0] if sizes else None,
            id=f"{position}-{entry.file_name}",
            record=record,
        )
        if image is None:
            continue
        regions: list[RegionAnnotation] = []
        phrases = []
        for name, grounding in entry.groundings.items():
            first = len(regions)
            for mask in grounding.rle_masks:
                regions.append(
                    RegionAnnotation(
                        str(len(regions)),
                        name,
                        f"{record}, {name}",
                        visible=msgspec.structs.asdict(mask),
                    )
                )
            start, stop = grounding.token_positives
            own_regions = tuple(range(first, len(regions)))
            if 0 <= start < stop <= len(entry.caption) and own_regions:
                phrases.append(Phrase(start=start, stop=stop, regions=own_regions))
            elif own_regions:
                context.warn(
                    "phrase outside the caption",
                    f"{record}, {name}",
                    expected=f"characters 0 to {len(entry.caption)}",
                    found=f"{start} to {stop}",
                )
        question = QuestionAnnotation(
            f"{position}-{entry.file_name}",
            QUESTION,
            record,
            targets=tuple(region.id for region in regions),
            answer=Answer(text=entry.caption, phrases=tuple(phrases)),
            tags={"split": context.split},
        )
        yield ImageAnnotation(image, context.file, tuple(regions), (question,))


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> dict[str, int]:
    """Write `annotations/SPLIT.json` and the folder `images`: an entry per question whose answer has phrases."""
    losses = Losses("answers", "instances", "masks", "names")
    entries = []
    for file_name, exported in export_images(dataset, with_images=with_images):
        losses.note_image(exported)
        write_image(folder / "images" / file_name, exported.data)
        for sample in exported.samples:
            losses.note_sample(sample)
            losses.note("questions, of which only the answers are written")
            if sample.answer is None or not sample.answer.phrases:
                losses.note("questions left out: no answer with phrases")
                continue
            entries.append(_to_entry(file_name, sample, losses))
    write_json(folder / "annotations" / f"{split_name(dataset)}.json", entries)
    return dict(losses.counts)


def _to_entry(file_name: str, sample: Sample, losses: Losses) -> dict[str, Any]:
    assert sample.answer is not None
    caption = sample.answer.text
    groundings: dict[str, Any] = {}
    for phrase in sample.answer.phrases:
        words = caption[phrase.start : phrase.stop]
        if words in groundings:
            losses.note("phrases with the same words as another one of the caption")
            continue
        masks = [
            requested_mask(sample, sample.targets[position])
            for position in phrase.regions
        ]
        groundings[words] = {
            "token_positives": [phrase.start, phrase.stop],
            "rle_masks": masks,
        }
    return {"file_name": file_name, "caption": caption, "groundings": groundings}


GCG_JSON = AnnotationFormat(
    name="gcg_json",
    title="GCG: captions whose phrases have masks, as GLaMM and Sa2VA read them",
    layout=LAYOUT,
    read=read,
    write=write,
    lossy=True,
)

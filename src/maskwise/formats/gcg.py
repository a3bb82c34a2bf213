"""GCG, grounded conversation generation (GLaMM): a caption whose phrases have masks.

The JSON is a list of images: `file_name`, `caption` and `groundings`, which maps a phrase to `token_positives` (its
first character and the one after its last) and `rle_masks`. One sample per image: the caption is the answer, and every
mask is a target that the phrase refers to. The file has no question; `QUESTION` is ours.
"""

from collections.abc import Iterator

import msgspec

from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import decode_record, read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.segmentations import CocoRle
from maskwise.schema import Answer, Phrase

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
        entry = decode_record(
            raw,
            GcgImage,
            diagnostics=context.diagnostics,
            file=context.file,
            record=record,
        )
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


GCG_JSON = AnnotationFormat(
    name="gcg_json",
    title="GCG: captions whose phrases have masks, as GLaMM and Sa2VA read them",
    layout=LAYOUT,
    read=read,
)

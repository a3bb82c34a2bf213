"""HalluSegBench: pairs of a photo and an edited copy in which the object was replaced by another one.

The JSON is a list: `factual_image_path`, `factual_mask_path`, `counterfactual_mask_path`, `ann_id` and more. Masks are
PNG files; every value above 0 is inside. The names of the fields with the edited photo and the label are not
published: they are options. A pair gives up to three questions: the label about the photo (its mask), the label about
the edited photo (no target), and the edited label about the edited photo, if there is one.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import FormatError, ImageError, MaskError
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.mask_images import read_mask_image
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.images import resolve_inside
from maskwise.masks import Mask


def read(
    context: ReadContext,
    *,
    label: str = "label",
    edited_image: str = "counterfactual_image_path",
    edited_label: str = "counterfactual_label",
) -> AnnotatedImages:
    """Photos and edited photos with their labels as questions. label, edited_image, edited_label: names of fields."""
    records = read_json(context.annotations, list[msgspec.Raw])
    fields = []
    for position, raw in enumerate(records):
        record = f"[{position}]"
        entry = context.decode(raw, dict[str, Any], record=record)
        if entry is not None:
            fields.append((record, entry))
    if fields and label not in fields[0][1]:
        raise FormatError(
            f"{context.annotations}: no field {label!r} with the label of the object; give its name with "
            f"--option label=NAME; found: {', '.join(sorted(fields[0][1]))}"
        )
    annotations = _image_annotations(
        context,
        fields,
        label=label,
        edited_image=edited_image,
        edited_label=edited_label,
    )
    return AnnotatedImages(
        2 * len(fields), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotations(
    context: ReadContext,
    fields: list[tuple[str, dict[str, Any]]],
    *,
    label: str,
    edited_image: str,
    edited_label: str,
) -> Iterator[ImageAnnotation]:
    for record, entry in fields:
        pair = str(entry.get("ann_id", record))
        text = entry.get(label)
        if not isinstance(text, str):
            context.skip(
                "fields of another type", record, expected="a label", found=text
            )
            continue
        yield from _scene(
            context,
            entry.get("factual_image_path"),
            [(text, entry.get("factual_mask_path"))],
            id=f"{pair}/{record}/factual",
            record=record,
        )
        if isinstance(entry.get(edited_image), str):
            questions: list[tuple[str, object]] = [(text, None)]
            if isinstance(entry.get(edited_label), str):
                mask_path = entry.get("counterfactual_mask_path")
                questions.append((entry[edited_label], mask_path))
            yield from _scene(
                context,
                entry[edited_image],
                questions,
                id=f"{pair}/{record}/counterfactual",
                record=record,
            )


def _scene(
    context: ReadContext,
    name: object,
    questions: list[tuple[str, object]],
    *,
    id: str,
    record: str,
) -> Iterator[ImageAnnotation]:
    """A photo with its questions: a text and the path of its mask, or None for no target."""
    if not isinstance(name, str):
        context.skip("fields of another type", record, expected="a path", found=name)
        return
    image = locate_image(context, name, None, id=id, record=record)
    if image is None or context.images is None:
        return
    size = (image.height, image.width)
    regions = []
    annotations = []
    for number, (text, mask_name) in enumerate(questions):
        targets: tuple[str, ...] = ()
        if mask_name is not None:
            try:
                path = resolve_inside(context.images.root, str(mask_name))
                mask = Mask.from_dense(read_mask_image(path, size) > 0)
            except (MaskError, ImageError) as error:
                context.skip("invalid mask", record, expected="a PNG", found=str(error))
                continue
            targets = (str(number),)
            regions.append(RegionAnnotation(str(number), text, record, visible=mask))
        annotations.append(
            QuestionAnnotation(
                f"{id}/{number}",
                text,
                record,
                targets=targets,
                tags={
                    "split": context.split,
                    "image_kind": id.rpartition("/")[2],
                },
            )
        )
    yield ImageAnnotation(image, context.file, tuple(regions), tuple(annotations))


HALLUSEGBENCH = Benchmark(
    name="hallusegbench",
    title="HalluSegBench: labels about photos and about copies without the object",
    protocol="gsva",
    layout=FileLayout(
        annotations=("{split}.json",),
        images=(".",),
        notes="paths in the file are relative to the folder that is read.",
    ),
    read=read,
    facts={
        "license": "OSL-3.0 on an older card",
        "download": "huggingface.co: PLAN-Lab/HalluSegBench",
        "layout": "layout from code, file not seen; the fields of the edited photo and of the labels are options",
    },
)

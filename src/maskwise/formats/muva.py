"""MUVA: amodal masks of synthetic shopping scenes, six views each, in a COCO-style file.

The names of the two mask fields are not documented in public. `muva.yaml` declares them; another mapping can be passed.
"""

from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import FormatError
from maskwise.formats.annotation_format import (
    AnnotatedImages,
    AnnotationFormat,
    PublishedCount,
)
from maskwise.formats.annotations import RegionAnnotation
from maskwise.formats.coco import read_coco_file
from maskwise.formats.coco_file import CocoAnnotation, CocoFile
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import decode_json, read_json
from maskwise.formats.read_context import ReadContext
from maskwise.yaml_files import read_yaml

TABLE = "MUVA paper (ICCV 2023), Table 1"
DEFAULT_MAPPING = Path(__file__).with_name("muva.yaml")


class MuvaMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which field of an annotation holds which mask."""

    amodal: str
    visible: str


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their objects, visible and amodal."""
    path = context.mapping or DEFAULT_MAPPING
    mapping = read_yaml(path, MuvaMapping)
    file = read_json(context.annotations, CocoFile)
    for raw in file.annotations[:1]:
        fields = decode_json(raw, dict[str, msgspec.Raw], context.annotations)
        missing = [
            field for field in (mapping.amodal, mapping.visible) if field not in fields
        ]
        if missing:
            raise FormatError(
                f"{context.annotations}: an annotation has no field {missing[0]!r}, which the mapping {path} asks for; "
                f"it has: {', '.join(sorted(fields))}. Copy the mapping, change it and pass it with --mapping"
            )
    return read_coco_file(
        context, file, _annotation(mapping, path), to_region=to_region
    )


def _annotation(mapping: MuvaMapping, path: Path) -> Any:
    """The annotation type whose mask fields are named by the mapping."""
    masks = [
        (kind, msgspec.Raw, msgspec.field(name=name))
        for kind, name in msgspec.structs.asdict(mapping).items()
    ]
    try:
        return msgspec.defstruct(
            "MuvaInstance", masks, bases=(CocoAnnotation,), frozen=True
        )
    except ValueError as error:
        raise FormatError(f"{path} names a field twice: {error}") from None


def to_region(annotation: Any, name: str, record: str) -> RegionAnnotation:
    """An object with both masks."""
    return RegionAnnotation(
        str(annotation.id),
        name,
        record,
        visible=annotation.visible,
        amodal=annotation.amodal,
    )


MUVA = AnnotationFormat(
    name="muva",
    title="MUVA: visible and amodal masks of synthetic shopping scenes",
    layout=FileLayout(
        annotations=("annotations/AiFi-MUVA_{split}.json", "AiFi-MUVA_{split}.json"),
        images=("images", "."),
        splits=("train", "val", "test"),
        notes="the fields of the two masks are declared in muva.yaml; pass another file with --mapping.",
    ),
    read=read,
    published=(
        PublishedCount(None, "images", 26_406, TABLE),
        PublishedCount(None, "regions", 198_573, TABLE),
    ),
    facts={
        "license": "CC BY-NC 4.0 (README beside the download)",
        "download": "the project page links a shared drive",
    },
)

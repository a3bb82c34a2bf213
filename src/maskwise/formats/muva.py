"""MUVA: synthetic shopping scenes, six views each, amodal. COCO-style; mask fields as a declared mapping says.

The names of the two mask fields are not documented in public. `muva.yaml` declares them; another file can be passed.
"""

from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import SourceError
from maskwise.formats.coco import Annotation, Instances, to_reading
from maskwise.formats.draft import Outline
from maskwise.formats.layout import Layout, Place
from maskwise.formats.records import decode_json, read_json, read_yaml
from maskwise.formats.source import Published, Reading, Source

TABLE = "MUVA paper (ICCV 2023), Table 1"
DEFAULT_MAPPING = Path(__file__).with_name("muva.yaml")


class MuvaMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which field of an annotation holds which mask."""

    amodal: str
    visible: str


def read(place: Place) -> Reading:
    """Images with their objects, visible and amodal."""
    path = place.mapping or DEFAULT_MAPPING
    mapping = read_yaml(path, MuvaMapping)
    file = read_json(place.annotations, Instances)
    for raw in file.annotations[:1]:
        found = decode_json(raw, dict[str, msgspec.Raw], place.annotations)
        missing = [field for field in (mapping.amodal, mapping.visible) if field not in found]
        if missing:
            raise SourceError(
                f"{place.annotations}: an annotation has no field {missing[0]!r}, which the mapping {path} asks for; "
                f"it has: {', '.join(sorted(found))}. Copy the mapping, change it and pass it with --mapping"
            )
    return to_reading(place, file, _annotation(mapping, path), to_outline=to_outline)


def _annotation(mapping: MuvaMapping, path: Path) -> Any:
    """An annotation whose mask fields are called as the mapping says."""
    masks = [
        (kind, msgspec.Raw, msgspec.field(name=name))
        for kind, name in msgspec.structs.asdict(mapping).items()
    ]
    try:
        return msgspec.defstruct("MuvaInstance", masks, bases=(Annotation,), frozen=True)
    except ValueError as error:
        raise SourceError(f"{path} names a field twice: {error}") from None


def to_outline(annotation: Any, name: str, record: str) -> Outline:
    """An object with both masks."""
    return Outline(str(annotation.id), name, record, visible=annotation.visible, amodal=annotation.amodal)


MUVA = Source(
    name="muva",
    title="MUVA: visible and amodal masks of synthetic shopping scenes",
    layout=Layout(
        annotations=("annotations/AiFi-MUVA_{split}.json", "AiFi-MUVA_{split}.json"),
        images=("images", "."),
        splits=("train", "val", "test"),
        notes="the fields of the two masks are declared in muva.yaml; pass another file with --mapping.",
    ),
    read=read,
    published=(Published(None, "images", 26_406, TABLE), Published(None, "regions", 198_573, TABLE)),
    facts={
        "licence": "CC BY-NC 4.0 (README beside the download)",
        "download": "the project page links a shared drive",
    },
)

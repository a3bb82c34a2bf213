"""Annotation formats, one file per format: readers, and writers for the formats people export to.

    format = find_format("cocoa_cls")
    context, found = format.open(Path("/data/cocoa"), Diagnostics(), split="val")
    for annotated in found.images:      # an image, its regions, and its samples if the format has questions
        annotated.image, annotated.regions, annotated.samples

`read_dataset` writes what a reader finds as a dataset folder; `write_dataset` writes a dataset in another format.
Another package adds a format by an entry point of the group `maskwise.formats` that names an `AnnotationFormat`.
"""

from importlib.metadata import entry_points

from maskwise.errors import UnknownNameError
from maskwise.formats.ade20k import ADE20K
from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat, PublishedCount
from maskwise.formats.annotations import AnnotatedImage
from maskwise.formats.coco import COCO
from maskwise.formats.cocoa import COCOA
from maskwise.formats.cocoa_cls import COCOA_CLS
from maskwise.formats.d2sa import D2SA
from maskwise.formats.diagnostics import Diagnostic, Diagnostics
from maskwise.formats.kins import KINS
from maskwise.formats.muva import MUVA
from maskwise.formats.paco_lvis import PACO_LVIS
from maskwise.formats.read_dataset import ReadSummary, read_dataset
from maskwise.formats.records import RECORDS

__all__ = [
    "AnnotatedImage",
    "AnnotatedImages",
    "AnnotationFormat",
    "Diagnostic",
    "Diagnostics",
    "PublishedCount",
    "ReadSummary",
    "find_format",
    "list_formats",
    "read_dataset",
]

_BUILT_IN = (ADE20K, COCO, COCOA, COCOA_CLS, D2SA, KINS, MUVA, PACO_LVIS, RECORDS)


def list_formats() -> dict[str, AnnotationFormat]:
    """All formats by name: built-in ones and those of installed packages."""
    return {format.name: format for format in _BUILT_IN} | {
        point.name: point.load() for point in entry_points(group="maskwise.formats")
    }


def find_format(name: str) -> AnnotationFormat:
    """The format of this name; UnknownNameError lists the known ones."""
    known = list_formats()
    if name not in known:
        raise UnknownNameError("format", name, known)
    return known[name]

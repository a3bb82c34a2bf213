"""The formats by name: built-in ones and those of installed packages."""

from importlib.metadata import entry_points

from maskwise.errors import UnknownNameError
from maskwise.formats.ade20k import ADE20K
from maskwise.formats.annotation_format import AnnotationFormat
from maskwise.formats.coco import COCO
from maskwise.formats.cocoa import COCOA
from maskwise.formats.cocoa_cls import COCOA_CLS
from maskwise.formats.d2sa import D2SA
from maskwise.formats.fiftyone import FIFTYONE
from maskwise.formats.huggingface import HUGGINGFACE
from maskwise.formats.kins import KINS
from maskwise.formats.labelstudio import LABELSTUDIO
from maskwise.formats.muva import MUVA
from maskwise.formats.paco_lvis import PACO_LVIS
from maskwise.formats.png import PNG
from maskwise.formats.records import RECORDS
from maskwise.formats.release_folder import RELEASE_FOLDER

BUILT_IN = (
    ADE20K,
    COCO,
    COCOA,
    COCOA_CLS,
    D2SA,
    FIFTYONE,
    HUGGINGFACE,
    KINS,
    LABELSTUDIO,
    MUVA,
    PACO_LVIS,
    PNG,
    RECORDS,
    RELEASE_FOLDER,
)


def list_formats() -> dict[str, AnnotationFormat]:
    """All formats by name."""
    return {format.name: format for format in BUILT_IN} | {
        point.name: point.load() for point in entry_points(group="maskwise.formats")
    }


def find_format(name: str) -> AnnotationFormat:
    """The format of this name; UnknownNameError lists the known ones."""
    known = list_formats()
    if name not in known:
        raise UnknownNameError("format", name, known)
    return known[name]

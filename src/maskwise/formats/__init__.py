"""Sources: annotation formats that benchmarks are built from, one file each.

    source = find_source("cocoa_cls")
    place, reading = source.open(Path("/data/cocoa"), problems, split="val")
    for scene in reading.scenes:            # an image, its regions, its questions where the format has any
        scene.image, scene.regions

`convert` writes what a reader finds to a dataset folder. Another package adds a source by an entry point of the group
`maskwise.formats` that names a `Source`.
"""

from importlib.metadata import entry_points

from maskwise.errors import UnknownNameError
from maskwise.formats.ade20k import ADE20K
from maskwise.formats.coco import COCO
from maskwise.formats.cocoa import COCOA
from maskwise.formats.cocoa_cls import COCOA_CLS
from maskwise.formats.conversion import Conversion, convert
from maskwise.formats.d2sa import D2SA
from maskwise.formats.draft import Scene
from maskwise.formats.kins import KINS
from maskwise.formats.muva import MUVA
from maskwise.formats.paco_lvis import PACO_LVIS
from maskwise.formats.problems import Problem, Problems
from maskwise.formats.source import Published, Reading, Source

__all__ = [
    "Conversion",
    "Problem",
    "Problems",
    "Published",
    "Reading",
    "Scene",
    "Source",
    "convert",
    "find_source",
    "list_sources",
]

_OURS = (ADE20K, COCO, COCOA, COCOA_CLS, D2SA, KINS, MUVA, PACO_LVIS)


def list_sources() -> dict[str, Source]:
    """All sources by name: ours, and those of installed packages."""
    return {source.name: source for source in _OURS} | {
        point.name: point.load() for point in entry_points(group="maskwise.formats")
    }


def find_source(name: str) -> Source:
    """The source of this name; UnknownNameError lists the known ones."""
    known = list_sources()
    if name not in known:
        raise UnknownNameError("source", name, known)
    return known[name]

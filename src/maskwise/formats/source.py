"""A source: an annotation format, its reader, and what is published about it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from maskwise.errors import SourceError
from maskwise.formats.draft import Scene
from maskwise.formats.layout import ImageFolder, Layout, Place, find_annotations
from maskwise.formats.problems import Problems

What = Literal["images", "regions", "questions", "targets"]


class Published(msgspec.Struct, frozen=True):
    """A size somebody published: how many of what, in which split (None: all together), and where it says so."""

    split: str | None
    what: What
    count: int
    source: str


class Reading(NamedTuple):
    """A split being read: about how many images there are, and the scenes as they come."""

    total: int
    scenes: Iterator[Scene]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An annotation format. `read` parses one split; `facts` are licence, download and the like, for people."""

    name: str
    title: str
    layout: Layout
    read: Callable[[Place], Reading]
    published: tuple[Published, ...] = ()
    facts: dict[str, str] = {}

    def open(
        self,
        path: Path,
        problems: Problems,
        *,
        split: str | None = None,
        images: Path | None = None,
        with_images: bool = True,
        mapping: Path | None = None,
    ) -> tuple[Place, Reading]:
        """Find a split below path and begin to read it.

        images: the root its images lie below, if not `path`. Without images, sizes are what the annotations say.
        """
        found, annotations = find_annotations(path, self.layout, split)
        root = images or _root_of(path)
        if not root.is_dir():
            raise SourceError(f"the image root {root} is not a folder")
        folder = ImageFolder(root, self.layout.image_folders(found)) if with_images else None
        place = Place(annotations=annotations, split=found, problems=problems, images=folder, mapping=mapping)
        return place, self.read(place)


def _root_of(path: Path) -> Path:
    """The folder images lie below: the one named, or the one that holds (the folder of) the annotation file."""
    if path.is_dir():
        return path
    return path.parent.parent if path.parent.name == "annotations" else path.parent

"""An annotation format: its reader, its writer if it has one, its files on disk, and what is published about it."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, get_type_hints

import msgspec

from maskwise.errors import FormatError, did_you_mean
from maskwise.formats.annotations import AnnotatedImage
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.file_layout import FileLayout, find_annotations
from maskwise.formats.read_context import ImageFolder, ReadContext
from maskwise.registry import FORMATS
from maskwise.store import Dataset

Counted = Literal["images", "regions", "questions", "targets"]


class PublishedCount(msgspec.Struct, frozen=True):
    """A published size: how many of what, in which split (None: all splits together), and where it is stated."""

    split: str | None
    what: Counted
    count: int
    source: str


class AnnotatedImages(NamedTuple):
    """The images of a split as they are read: about how many, and an iterator over them.

    `about`: facts about the data that the file itself states. `name`: the dataset's name, if the file states it.
    """

    total: int
    images: Iterator[AnnotatedImage]
    about: Mapping[str, str] = MappingProxyType({})
    name: str | None = None


class FormatWriter(Protocol):
    """Writes a dataset in a format."""

    def __call__(
        self, dataset: Dataset, folder: Path, *, with_images: bool
    ) -> Mapping[str, int] | None:
        """Write the dataset into an empty folder.

        Returns how many records of which kind the format cannot say; None if it can say everything.
        """


class AnnotationFormat(msgspec.Struct, frozen=True, kw_only=True):
    """An annotation format.

    `read` reads one split; its keyword-only parameters are the reader's options. `write` writes a dataset in this
    format; if `lossy`, the format cannot say everything. `facts` (license, download, ...) are for people.
    """

    name: str
    title: str
    layout: FileLayout
    read: Callable[..., AnnotatedImages]
    write: "FormatWriter | None" = None
    lossy: bool = False
    published: tuple[PublishedCount, ...] = ()
    facts: dict[str, str] = {}

    @property
    def about(self) -> dict[str, str]:
        """What the manifest of a dataset in this format says."""
        return {"format": self.name, "title": self.title} | self.facts

    def open(
        self,
        path: Path,
        diagnostics: Diagnostics,
        *,
        split: str | None = None,
        images: Path | None = None,
        with_images: bool = True,
        mapping: Path | None = None,
        options: Mapping[str, object] | None = None,
    ) -> tuple[ReadContext, AnnotatedImages]:
        """Find a split below `path` and start to read it.

        images: the root of the images, if not `path`. Without images, sizes are those in the annotations. options:
        options of this reader by name; text is converted to the option's type.
        """
        arguments = self.check_options(options or {})
        chosen_split, annotations = find_annotations(path, self.layout, split)
        root = images or _image_root(path)
        if not root.is_dir():
            raise FormatError(f"the image root {root} is not a folder")
        folder = None
        if with_images:
            folder = ImageFolder(root, self.layout.image_folders(chosen_split))
        context = ReadContext(
            annotations=annotations,
            split=chosen_split,
            diagnostics=diagnostics,
            images=folder,
            mapping=mapping,
        )
        return context, self.read(context, **arguments)

    @property
    def options(self) -> dict[str, tuple[Any, object]]:
        """The reader's options by name: type and default value."""
        hints = get_type_hints(self.read)
        return {
            name: (hints[name], parameter.default)
            for name, parameter in inspect.signature(self.read).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }

    def check_options(self, options: Mapping[str, object]) -> dict[str, Any]:
        """The options converted to their types; FormatError for an unknown name or an invalid value."""
        known = self.options
        checked = {}
        for name, value in options.items():
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise FormatError(
                    f"{self.name} has no option {name!r}; known options: {names}{did_you_mean(name, known)}"
                )
            try:
                checked[name] = msgspec.convert(value, known[name][0], strict=False)
            except msgspec.ValidationError as error:
                values = getattr(known[name][0], "__args__", ())
                hint = (
                    f"; known values: {', '.join(map(str, values))}" if values else ""
                )
                raise FormatError(
                    f"{self.name}, option {name}={value}: {error}{hint}"
                ) from None
        return checked


def find_format(name: str) -> AnnotationFormat:
    """The format of a name or of `package.module:attribute`; UnknownNameError lists the
    known ones.
    """
    return FORMATS.load(name, AnnotationFormat)


def _image_root(path: Path) -> Path:
    """The root of the images: the folder named, or the folder that holds (the folder of) the annotation file."""
    if path.is_dir():
        return path
    return path.parent.parent if path.parent.name == "annotations" else path.parent

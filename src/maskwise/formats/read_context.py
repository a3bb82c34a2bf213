"""What a reader is given: the annotations of one split, the folders of its images, and where diagnostics go."""

from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from maskwise.errors import ImageError
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.file_layout import Size
from maskwise.formats.json_files import decode_record
from maskwise.images import MAX_PIXELS, check_relative, image_size, resolve_inside
from maskwise.schema import ImageInfo

T = TypeVar("T")


class ReadContext(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a reader.

    `images` is None if the user reads annotations only; images then have no path, and their sizes are those in the
    annotations. `mapping`: a file that replaces the format's own field mapping.
    """

    annotations: Path
    split: str
    diagnostics: Diagnostics
    images: "ImageFolder | None" = None
    mapping: Path | None = None

    @property
    def file(self) -> str:
        """The annotation file's name, for diagnostics."""
        return self.annotations.name

    def decode(
        self, raw: bytes | msgspec.Raw, type: type[T], *, record: str
    ) -> T | None:
        """A record of the annotation file, or None and a diagnostic if its fields have other types."""
        return decode_record(
            raw, type, diagnostics=self.diagnostics, file=self.file, record=record
        )

    def skip(self, reason: str, record: str, *, expected: str, found: object) -> None:
        """Report a record of the annotation file that is not used."""
        self.diagnostics.skip(
            reason, file=self.file, record=record, expected=expected, found=found
        )

    def warn(self, reason: str, record: str, *, expected: str, found: object) -> None:
        """Report a record of the annotation file that is irregular but used."""
        self.diagnostics.warn(
            reason, file=self.file, record=record, expected=expected, found=found
        )


class ImageFolder:
    """A root folder, and the folders below it that are searched for images."""

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self.root = root
        self.folders = folders

    def find(self, name: str) -> str | None:
        """Path of an image below the root, or None. ImageError if the name would leave the root."""
        check_relative(name)
        for folder in self.folders:
            path = PurePosixPath(folder) / name
            if (self.root / path).is_file():
                resolve_inside(self.root, str(path))
                return str(path)
        return None


class _UnusableImageError(Exception):
    """Why an image cannot be used: the reason, what was expected, what was found."""


def locate_image(
    context: ReadContext,
    name: str,
    size: Size | None,
    *,
    id: str,
    record: str,
    license: str | None = None,
    attribution: str | None = None,
) -> ImageInfo | None:
    """The image record of a file name; None and a diagnostic if it is missing, too large or of another size.

    size: height and width in the annotations, or None if only the image file tells.
    """
    try:
        if size is not None:
            _check_bounds(size)
        path = None if context.images is None else _find(context.images, name)
        height, width = _measure(context.images, path, size)
    except _UnusableImageError as fault:
        reason, expected, found = fault.args
        context.skip(reason, record, expected=expected, found=found)
        return None
    return ImageInfo(
        id=id,
        width=width,
        height=height,
        path=path,
        license=license,
        attribution=attribution,
    )


def _find(folder: ImageFolder, name: str) -> str:
    try:
        path = folder.find(name)
    except (ImageError, OSError, ValueError) as error:
        raise _UnusableImageError(
            "image outside its folder", "a path below the root", str(error)
        ) from None
    if path is None:
        raise _UnusableImageError(
            "missing image", f"{name} in {' or '.join(folder.folders)}", "no such file"
        )
    return path


def _measure(folder: ImageFolder | None, path: str | None, size: Size | None) -> Size:
    """Height and width of the image file, which must match the annotations; without images, the annotated size."""
    if folder is None or path is None:
        if size is None:
            raise _UnusableImageError(
                "size unknown", "an image to measure", "no images"
            )
        return size
    try:
        width, height = image_size(folder.root / path)
    except ImageError as error:
        raise _UnusableImageError("unreadable image", "an image", str(error)) from None
    _check_bounds((height, width))
    if size is not None and (height, width) != size:
        raise _UnusableImageError(
            "image of another size", f"height and width {size}", f"{height, width}"
        )
    return height, width


def _check_bounds(size: Size) -> None:
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise _UnusableImageError(
            "image size out of bounds",
            f"1 to {MAX_PIXELS} pixels",
            f"height and width {size}",
        )

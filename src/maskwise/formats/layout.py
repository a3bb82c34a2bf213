"""Where a dataset's files lie on disk: what is expected, what is found, and an error that names what is missing."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from maskwise.errors import ImageError, SourceError
from maskwise.formats.problems import Problems
from maskwise.images import MAX_PIXELS, check_relative, image_size, resolve_inside
from maskwise.schema import ImageInfo

Size = tuple[int, int]
"""Height and width."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Files below the folder a user names.

    `annotations`: patterns of files or folders, tried in order, `{split}` standing for the split's name and `*` for
    anything.
    `images`: folders that hold the images, tried in order; `{split}` as above, or one list a split. `splits`:
    the published ones, if only those are read. `inside`: what a folder of annotations holds, where users may name
    that folder itself.
    """

    annotations: tuple[str, ...]
    images: tuple[str, ...] | dict[str, tuple[str, ...]] = (".",)
    splits: tuple[str, ...] = ()
    inside: str | None = None
    notes: str = ""

    @property
    def text(self) -> str:
        """The layout in words, for documents and errors."""
        lines = ["annotations, the first of:", *(f"  {pattern}" for pattern in self.annotations)]
        if self.splits:
            lines.append(f"splits: {', '.join(self.splits)}")
        lines.append("images, looked for in:")
        if isinstance(self.images, dict):
            lines += [f"  {split}: {', '.join(folders)}" for split, folders in self.images.items()]
        else:
            lines.append(f"  {', '.join(self.images)}")
        return "\n".join([*lines, *([self.notes] if self.notes else [])])

    def image_folders(self, split: str) -> tuple[str, ...]:
        """The folders to look for a split's images."""
        folders = self.images.get(split, (".",)) if isinstance(self.images, dict) else self.images
        return tuple(folder.format(split=split) for folder in folders)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader is told: the annotations of one split, where its images are, whom to tell of problems.

    `images` is None where the user wants none; images then have no path and sizes are those the annotations
    tell. `mapping`: a file that overrides the format's declared field mapping.
    """

    annotations: Path
    split: str
    problems: Problems
    images: "ImageFolder | None" = None
    mapping: Path | None = None

    @property
    def file(self) -> str:
        """The annotation file's name, for problems."""
        return self.annotations.name

    def skip(self, reason: str, record: str, *, expected: str, found: object) -> None:
        """A record of the annotation file is left out."""
        self.problems.skip(reason, file=self.file, record=record, expected=expected, found=found)

    def keep(self, reason: str, record: str, *, expected: str, found: object) -> None:
        """A record of the annotation file is odd but used."""
        self.problems.keep(reason, file=self.file, record=record, expected=expected, found=found)


class ImageFolder:
    """A root and the folders below it that are searched for images."""

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self.root, self.folders = root, folders

    def find(self, name: str) -> str | None:
        """Path of an image below root, or None. ImageError where the name would leave root."""
        check_relative(name)
        for folder in self.folders:
            path = PurePosixPath(folder) / name
            if (self.root / path).is_file():
                resolve_inside(self.root, str(path))
                return str(path)
        return None


def find_annotations(path: Path, layout: Layout, split: str | None) -> tuple[str, Path]:
    """The split and its annotation file (or folder) below `path`, which may also be the file itself."""
    if path.is_file():
        return split or _split_of_file(path, layout), path
    if not path.is_dir():
        raise SourceError(f"{path} does not exist. Expected:\n{layout.text}")
    found = dict(reversed(list(_found(path, layout))))
    if split is None and len(found) == 1:
        return next(iter(found.items()))
    if split in found:
        return split, found[split]
    if found:
        wanted = "choose a split" if split is None else f"no split {split!r}"
        raise SourceError(f"{path}: {wanted}; found: {', '.join(sorted(found))}")
    if layout.inside is not None and any(path.glob(layout.inside)):
        return split or path.name, path
    raise SourceError(f"{path} has no annotations of this kind. Expected:\n{layout.text}")


class _Unusable(Exception):
    """Why an image cannot be used: reason, what was expected, what came."""


def locate_image(place: Place, name: str, size: Size | None, *, id: str, record: str) -> ImageInfo | None:
    """The image record of a file name, or None and a problem: not there, out of bounds, of another size.

    size: height and width as annotated, or None where only the image tells.
    """
    try:
        if size is not None:
            _check_bounds(size)
        path = None if place.images is None else _find(place.images, name)
        height, width = _measure(place.images, path, size)
    except _Unusable as fault:
        reason, expected, found = fault.args
        place.skip(reason, record, expected=expected, found=found)
        return None
    return ImageInfo(id=id, width=width, height=height, path=path)


def _find(folder: ImageFolder, name: str) -> str:
    try:
        path = folder.find(name)
    except (ImageError, OSError, ValueError) as error:
        raise _Unusable("image outside its folder", "a path below the root", str(error)) from None
    if path is None:
        raise _Unusable("missing image", f"{name} in {' or '.join(folder.folders)}", "none")
    return path


def _measure(folder: ImageFolder | None, path: str | None, size: Size | None) -> Size:
    """Height and width: of the image, which must be as annotated, or as annotated where there are no images."""
    if folder is None or path is None:
        if size is None:
            raise _Unusable("size unknown", "an image to measure", "no images")
        return size
    try:
        width, height = image_size(folder.root / path)
    except ImageError as error:
        raise _Unusable("image that cannot be read", "an image", str(error)) from None
    _check_bounds((height, width))
    if size is not None and (height, width) != size:
        raise _Unusable("image of another size", f"height and width {size}", f"{height, width}")
    return height, width


def _check_bounds(size: Size) -> None:
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise _Unusable("absurd image size", f"1 to {MAX_PIXELS} pixels", f"height and width {size}")


def _found(path: Path, layout: Layout) -> Iterator[tuple[str, Path]]:
    """Splits and their files, in the order of the patterns. A file without a split in its name holds all splits."""
    for pattern in layout.annotations:
        shape = _to_regex(pattern)
        for file in sorted(path.glob(pattern.replace("{split}", "*"))):
            match = shape.fullmatch(file.relative_to(path).as_posix())
            splits = () if match is None else match.groups() or layout.splits
            yield from ((split, file) for split in splits if not layout.splits or split in layout.splits)


def _split_of_file(path: Path, layout: Layout) -> str:
    for pattern in layout.annotations:
        match = _to_regex(PurePosixPath(pattern).name).fullmatch(path.name)
        if match and not match.groups():
            raise SourceError(f"{path}: choose a split: {', '.join(layout.splits)}")
        if match:
            return match[1]
    return path.stem


def _to_regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\{split\}", "([^/]+?)").replace(r"\*", "[^/]*"))

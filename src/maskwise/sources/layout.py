"""Where a dataset's files lie on disk: what is expected, what is found, and an error that names what is missing."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from maskwise.errors import PictureError, SourceError
from maskwise.pictures import MAX_PIXELS, check_relative, picture_size, resolve_inside
from maskwise.schema import Picture
from maskwise.sources.problems import Problems

Size = tuple[int, int]
"""Height and width."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Files below the folder a user names.

    `annotations`: patterns of files or folders, tried in order, `{split}` standing for the split's name and `*` for
    anything.
    `pictures`: folders that hold the pictures, tried in order; `{split}` as above, or one list a split. `splits`:
    the published ones, if only those are read. `inside`: what a folder of annotations holds, where users may name
    that folder itself.
    """

    annotations: tuple[str, ...]
    pictures: tuple[str, ...] | dict[str, tuple[str, ...]] = (".",)
    splits: tuple[str, ...] = ()
    inside: str | None = None
    notes: str = ""

    @property
    def text(self) -> str:
        """The layout in words, for documents and errors."""
        lines = ["annotations, the first of:", *(f"  {pattern}" for pattern in self.annotations)]
        if self.splits:
            lines.append(f"splits: {', '.join(self.splits)}")
        lines.append("pictures, looked for in:")
        if isinstance(self.pictures, dict):
            lines += [f"  {split}: {', '.join(folders)}" for split, folders in self.pictures.items()]
        else:
            lines.append(f"  {', '.join(self.pictures)}")
        return "\n".join([*lines, *([self.notes] if self.notes else [])])

    def picture_folders(self, split: str) -> tuple[str, ...]:
        """The folders to look for a split's pictures."""
        folders = self.pictures.get(split, (".",)) if isinstance(self.pictures, dict) else self.pictures
        return tuple(folder.format(split=split) for folder in folders)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader is told: the annotations of one split, where its pictures are, whom to tell of problems.

    `pictures` is None where the user wants none; pictures then have no path and sizes are those the annotations
    tell. `mapping`: a file that overrides the format's declared field mapping.
    """

    annotations: Path
    split: str
    problems: Problems
    pictures: "PictureFolder | None" = None
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


class PictureFolder:
    """A root and the folders below it that are searched for pictures."""

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self.root, self.folders = root, folders

    def find(self, name: str) -> str | None:
        """Path of a picture below root, or None. PictureError where the name would leave root."""
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
    """Why a picture cannot be used: reason, what was expected, what came."""


def locate_picture(place: Place, name: str, size: Size | None, *, id: str, record: str) -> Picture | None:
    """The picture record of a file name, or None and a problem: not there, out of bounds, of another size.

    size: height and width as annotated, or None where only the picture tells.
    """
    try:
        if size is not None:
            _check_bounds(size)
        path = None if place.pictures is None else _find(place.pictures, name)
        height, width = _measure(place.pictures, path, size)
    except _Unusable as fault:
        reason, expected, found = fault.args
        place.skip(reason, record, expected=expected, found=found)
        return None
    return Picture(id=id, width=width, height=height, path=path)


def _find(folder: PictureFolder, name: str) -> str:
    try:
        path = folder.find(name)
    except (PictureError, OSError, ValueError) as error:
        raise _Unusable("picture outside its folder", "a path below the root", str(error)) from None
    if path is None:
        raise _Unusable("missing picture", f"{name} in {' or '.join(folder.folders)}", "none")
    return path


def _measure(folder: PictureFolder | None, path: str | None, size: Size | None) -> Size:
    """Height and width: of the picture, which must be as annotated, or as annotated where there are no pictures."""
    if folder is None or path is None:
        if size is None:
            raise _Unusable("size unknown", "a picture to measure", "no pictures")
        return size
    try:
        width, height = picture_size(folder.root / path)
    except PictureError as error:
        raise _Unusable("picture that cannot be read", "a picture", str(error)) from None
    _check_bounds((height, width))
    if size is not None and (height, width) != size:
        raise _Unusable("picture of another size", f"height and width {size}", f"{height, width}")
    return height, width


def _check_bounds(size: Size) -> None:
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise _Unusable("absurd picture size", f"1 to {MAX_PIXELS} pixels", f"height and width {size}")


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

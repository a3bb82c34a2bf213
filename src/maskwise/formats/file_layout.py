"""Where the files of a dataset are expected on disk, and how the annotation file of a split is found."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from maskwise.errors import FormatError

Size = tuple[int, int]
"""Height and width."""

SHARD = re.compile(r"-\d+-of-\d+$")
"""What the name of a file ends with that is one of several of a split, as `datasets` names them."""


class FileLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Files below the folder that a user names.

    `annotations`: patterns of files or folders, tried in order; `{split}` stands for the split's name and `*` for
    anything. `images`: folders that hold the images, tried in order; `{split}` as above, or one list per split.
    `splits`: the published splits, if only those are read. `inside`: what a folder of annotations holds, if users may
    name that folder itself.
    """

    annotations: tuple[str, ...]
    images: tuple[str, ...] | dict[str, tuple[str, ...]] = (".",)
    splits: tuple[str, ...] = ()
    inside: str | None = None
    notes: str = ""

    @property
    def text(self) -> str:
        """The layout in words, for documents and errors."""
        lines = [
            "annotations, the first of:",
            *(f"  {pattern}" for pattern in self.annotations),
        ]
        if self.splits:
            lines.append(f"splits: {', '.join(self.splits)}")
        lines.append("images, looked for in:")
        if isinstance(self.images, dict):
            lines += [
                f"  {split}: {', '.join(folders)}"
                for split, folders in self.images.items()
            ]
        else:
            lines.append(f"  {', '.join(self.images)}")
        return "\n".join([*lines, *([self.notes] if self.notes else [])])

    def image_folders(self, split: str) -> tuple[str, ...]:
        """The folders in which the images of a split are looked for."""
        folders = (
            self.images.get(split, (".",))
            if isinstance(self.images, dict)
            else self.images
        )
        return tuple(folder.format(split=split) for folder in folders)


def find_annotations(
    path: Path, layout: FileLayout, split: str | None
) -> tuple[str, Path]:
    """The split and its annotation file (or folder) below `path`; `path` may also be the file itself."""
    if path.is_file():
        return split or _split_of_file(path, layout), path
    if not path.is_dir():
        raise FormatError(f"{path} does not exist. Expected:\n{layout.text}")
    files: dict[str, Path] = {}
    for file_split, file in _matches(path, layout):
        # Patterns are tried in order: the first file of a split is the one.
        files.setdefault(file_split, file)
    if split is None and len(files) == 1:
        return next(iter(files.items()))
    if split in files:
        return split, files[split]
    if files:
        problem = "choose a split" if split is None else f"no split {split!r}"
        raise FormatError(f"{path}: {problem}; found: {', '.join(sorted(files))}")
    if layout.inside is not None and any(path.glob(layout.inside)):
        return split or path.resolve().name, path
    raise FormatError(
        f"{path} has no annotations of this format. Expected:\n{layout.text}"
    )


def _matches(path: Path, layout: FileLayout) -> Iterator[tuple[str, Path]]:
    """Splits and their files, in the order of the patterns. A pattern without `{split}` matches every split."""
    matched: set[Path] = set()
    for pattern in layout.annotations:
        regex = _to_regex(pattern)
        for file in sorted(path.glob(pattern.replace("{split}", "*"))):
            match = regex.fullmatch(file.relative_to(path).as_posix())
            # A later pattern may read more into the name: `{split}.parquet` matches `test-00000-of-00001.parquet`.
            if match is None or file in matched:
                continue
            matched.add(file)
            # Without a split in the file's name: those published, or the folder's name.
            splits = match.groups() or layout.splits or (path.resolve().name,)
            for split in splits:
                if not layout.splits or split in layout.splits:
                    yield split, file


def _split_of_file(path: Path, layout: FileLayout) -> str:
    for pattern in layout.annotations:
        match = _to_regex(PurePosixPath(pattern).name).fullmatch(path.name)
        if match and not match.groups() and layout.splits:
            raise FormatError(f"{path}: choose a split: {', '.join(layout.splits)}")
        if match:
            name = match[1] if match.groups() else path.parent.resolve().name
            return SHARD.sub("", name)
    return SHARD.sub("", path.stem)


def _to_regex(pattern: str) -> re.Pattern[str]:
    """The pattern of a layout as a regular expression with a group for the split."""
    escaped = re.escape(pattern)
    with_group = escaped.replace(r"\{split\}", "([^/]+?)")
    return re.compile(with_group.replace(r"\*", "[^/]*"))

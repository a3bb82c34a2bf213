"""Write a dataset in another format: `write_dataset(dataset, "coco", "out")`."""

import os
from pathlib import Path

from maskwise.errors import UnknownNameError
from maskwise.formats.annotation_format import AnnotationFormat, find_format
from maskwise.registry import FORMATS
from maskwise.store import Dataset
from maskwise.store.folder import staged

LEFT_OUT = "left_out.txt"
"""File in a written folder that counts what the format cannot say."""


def list_writers() -> dict[str, AnnotationFormat]:
    """The formats that can be written, by name."""
    formats = FORMATS.load_all(AnnotationFormat)
    return {name: item for name, item in formats.items() if item.write is not None}


def write_dataset(
    dataset: Dataset,
    format: str,
    out: str | os.PathLike[str],
    *,
    with_images: bool = True,
) -> dict[str, int]:
    """Write a dataset, or a view of one, as the new folder `out`.

    format: one of `list_writers()`, or `package.module:attribute`. `read_dataset` of
    the same format reads the folder again: images in row order, each with the same
    regions, masks, samples, answers and tags. with_images: also write the image files.

    Formats that projects train with cannot say all of that. Returns what was not
    written, with counts; the folder holds the same as `left_out.txt`. Empty for
    formats that keep everything.
    """
    is_known = ":" in format or format in FORMATS.names()
    write = find_format(format).write if is_known else None
    if write is None:
        raise UnknownNameError("format to write", format, list_writers())
    with staged(Path(out), overwrite=False) as folder:
        left_out = dict(write(dataset, folder, with_images=with_images) or {})
        if left_out:
            lines = [f"{count} {what}\n" for what, count in left_out.items()]
            (folder / LEFT_OUT).write_text("".join(lines), encoding="utf-8")
    return left_out

"""Write a dataset in another format: `write_dataset(dataset, "coco", "out")`."""

import os
from pathlib import Path

from maskwise.errors import UnknownNameError
from maskwise.formats.annotation_format import AnnotationFormat, find_format
from maskwise.registry import FORMATS
from maskwise.store import Dataset
from maskwise.store.folder import staged


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
) -> None:
    """Write a dataset, or a view of one, as the new folder `out`.

    format: one of `list_writers()`, or `package.module:attribute`. `read_dataset` of
    the same format reads the folder again: images in row order, each with the same
    regions, masks, samples, answers and tags. with_images: also write the image files.
    """
    is_known = ":" in format or format in FORMATS.names()
    write = find_format(format).write if is_known else None
    if write is None:
        raise UnknownNameError("format to write", format, list_writers())
    with staged(Path(out), overwrite=False) as folder:
        write(dataset, folder, with_images=with_images)

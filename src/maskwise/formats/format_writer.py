"""Write a dataset in another format: `write_dataset(dataset, "coco", "out")`."""

import os
from pathlib import Path

from maskwise.errors import UnknownNameError
from maskwise.formats.annotation_format import AnnotationFormat
from maskwise.formats.registry import list_formats
from maskwise.store import Dataset
from maskwise.store.folder import staged


def list_writers() -> dict[str, AnnotationFormat]:
    """The formats that can be written, by name."""
    return {
        name: format
        for name, format in list_formats().items()
        if format.write is not None
    }


def write_dataset(
    dataset: Dataset,
    format: str,
    out: str | os.PathLike[str],
    *,
    with_images: bool = True,
) -> None:
    """Write a dataset, or a view of one, as the new folder `out`.

    format: one of `list_writers()`. `read_dataset` of the same format reads the folder again: images in row order, each
    with the same regions, masks, samples, answers and tags. with_images: also write the image files.
    """
    known = list_writers()
    found = known.get(format)
    if found is None or found.write is None:
        raise UnknownNameError("format to write", format, known)
    with staged(Path(out), overwrite=False) as folder:
        found.write(dataset, folder, with_images=with_images)

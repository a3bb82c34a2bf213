"""The records of COCO files. Other formats that use the same file extend them."""

from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from maskwise.formats.exported_dataset import DatasetFields

Id = int | Annotated[str, msgspec.Meta(min_length=1)]
"""The id of a record in a COCO file."""


class CocoImage(msgspec.Struct, frozen=True):
    """An entry of `images`. LVIS v1 gives only the URL, which contains the file name.

    `attribution` and `maskwise_id`, the id in the dataset, are in files that
    `write_dataset` wrote.
    """

    id: Id
    width: int
    height: int
    file_name: str | None = None
    coco_url: str | None = None
    license: object = None
    flickr_url: object = None
    attribution: object = None
    maskwise_id: str = ""

    @property
    def credit(self) -> str | None:
        """The author or the page of the photo; None if neither is given as text."""
        for text in (self.attribution, self.flickr_url):
            if isinstance(text, str) and text:
                return text
        return None

    @property
    def name(self) -> str:
        """The image's file name."""
        return self.file_name or "/".join(PurePosixPath(self.coco_url or "").parts[-2:])


class CocoCategory(msgspec.Struct, frozen=True):
    """An entry of `categories`."""

    id: Id
    name: str


class CocoEntry(msgspec.Struct, frozen=True):
    """The fields that all entries of `annotations` have."""

    id: Id
    image_id: Id


class CocoAnnotation(CocoEntry, frozen=True):
    """An annotation of one object."""

    category_id: Id


class CocoInstance(CocoAnnotation, frozen=True):
    """An object of COCO or LVIS."""

    segmentation: msgspec.Raw
    iscrowd: int | bool = 0


class CocoFile(msgspec.Struct, frozen=True):
    """A whole file; its records stay bytes until they are decoded one by one.

    `samples` and `maskwise` are extra sections that `write_dataset` writes.
    """

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]
    categories: list[CocoCategory] = []
    licenses: object = None
    samples: list[msgspec.Raw] = []
    maskwise: DatasetFields | None = None


class CocoLicense(msgspec.Struct, frozen=True):
    """An entry of `licenses`."""

    id: Id
    name: str = ""
    url: str = ""

    @property
    def text(self) -> str | None:
        """Name and address; some files escape slashes twice."""
        url = self.url.replace("\\/", "/")
        return f"{self.name} ({url})" if self.name and url else self.name or url or None


def read_licenses(entries: object) -> dict[Id, str | None]:
    """The texts of the section `licenses` by id; empty if the file has no valid one."""
    try:
        return {
            entry.id: entry.text
            for entry in msgspec.convert(entries, list[CocoLicense])
        }
    except msgspec.ValidationError:
        return {}


def find_license(licenses: dict[Id, str | None], id: object) -> str | None:
    """The text of the license that an image names, or None."""
    return licenses.get(id) if isinstance(id, int | str) else None

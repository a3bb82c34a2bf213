"""The section `licenses` of COCO files: texts by id. Files without a valid one are read without licenses."""

from typing import Annotated

import msgspec

Id = int | Annotated[str, msgspec.Meta(min_length=1)]
"""The id of a record in a COCO file."""


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
    """The texts of the section by id; empty if the file has no valid one."""
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

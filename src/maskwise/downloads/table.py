"""The table of downloads, `downloads.yaml`: benchmarks and weights with addresses, checksums and licenses."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from maskwise.errors import UnknownNameError
from maskwise.yaml_files import read_yaml

TABLE = Path(__file__).with_name("downloads.yaml")

GROUPS = {
    "photo": (
        "yolox_nano.onnx",
        "u2netp.onnx",
        "mobile_sam_encoder.onnx",
        "mobile_sam_decoder.onnx",
    ),
    "clip": (
        "bpe_simple_vocab_16e6.txt.gz",
        "clip_image.onnx",
        "clip_text.onnx",
    ),
}
"""Downloads that are fetched together: what a model, or an option of it, needs."""

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
Address = Annotated[str, msgspec.Meta(pattern="^https?://")]


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the table."""


class FileVersion(_Row, frozen=True, kw_only=True):
    """A build of a file: its sha256, its size where that is known, and who stated them."""

    sha256: Sha256
    source: str
    bytes: int | None = None


class HostedFile(_Row, frozen=True, kw_only=True):
    """One file of a download. Without `urls` it has to be fetched by hand; without `versions` it cannot be verified."""

    file: FileName
    urls: tuple[Address, ...] = ()
    versions: tuple[FileVersion, ...] = ()

    @property
    def bytes(self) -> int | None:
        """The size of the version that the addresses serve, if it is known."""
        return self.versions[0].bytes if self.versions else None


class Download(_Row, frozen=True, kw_only=True):
    """A benchmark or a file of weights.

    `permissive`: the license allows any use; otherwise the user has to accept it. `page`: where the authors describe
    the files. `reader` and `split`: how a dataset is converted. `hub`: owner and name of a dataset of the Hugging Face
    hub, which is streamed instead of files. `images_from`: images that are not part of the download. `instructions`:
    what to do by hand. `exported_from`: the download with the checkpoint that the file is made from.
    """

    name: FileName
    kind: Literal["weights", "dataset"]
    title: str
    license: str
    permissive: bool
    page: str
    files: tuple[HostedFile, ...] = ()
    reader: str | None = None
    split: str | None = None
    hub: str | None = None
    images_from: str | None = None
    instructions: str | None = None
    exported_from: FileName | None = None

    @property
    def by_hand(self) -> bool:
        """Whether some file has no address."""
        if self.hub is not None or self.exported_from is not None:
            return False
        return not self.files or any(not file.urls for file in self.files)

    @property
    def verified(self) -> bool:
        """Whether the sha256 of every file is known."""
        return bool(self.files) and all(file.versions for file in self.files)

    @property
    def bytes(self) -> int | None:
        """The size of all files together, if it is known."""
        sizes = [file.bytes for file in self.files]
        return (
            sum(size for size in sizes if size is not None)
            if sizes and None not in sizes
            else None
        )


@cache
def list_downloads() -> dict[str, Download]:
    """All downloads by name, in the order of the table."""
    return {
        download.name: download for download in read_yaml(TABLE, tuple[Download, ...])
    }


def find_download(name: str) -> Download:
    """The download of this name; UnknownNameError lists the known ones."""
    known = list_downloads()
    if name not in known:
        raise UnknownNameError("download", name, known)
    return known[name]

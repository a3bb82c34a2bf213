"""A release as a dataset folder: converted on first use and kept in the data folder, by the hash of the release."""

import hashlib
import re
from pathlib import Path

from maskwise.downloads import data_folder
from maskwise.formats import find_format, read_dataset
from maskwise.formats.release_folder import RELEASE, ReleaseReference, read_release
from maskwise.store.folder import MANIFEST


def convert_release(reference: ReleaseReference) -> Path:
    """The dataset folder of a release or of one of its splits. The sha256 of its files is checked on conversion.

    It is kept in `releases` in the data folder (MASKWISE_DATA), where it may be removed at any time.
    """
    manifest = read_release(reference.folder)
    split = reference.split or "all"
    content = hashlib.sha256((reference.folder / RELEASE).read_bytes()).hexdigest()[:16]
    name = re.sub(r"[^\w.-]+", "-", f"{manifest.name}-{manifest.version}-{split}")[:80]
    out = data_folder() / "releases" / f"{name}-{content}"
    if not (out / MANIFEST).is_file():
        options = {"only": reference.split} if reference.split else {}
        read_dataset(
            find_format("release"), reference.folder, out, options=options, strict=True
        )
    return out

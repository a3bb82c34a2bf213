"""Datasets by name: find, open, and convert from a published benchmark or an annotation format.

    data = load_dataset("world")                                     comes with maskwise
    data = load_dataset("reasonseg_val")                             after `maskwise get reasonseg_val`
    data = load_dataset("releases/kitchen/test")                     a split of a release
    data = load_dataset("hf:owner/name", split="test")               a dataset of the Hugging Face hub
    read_dataset("mmr", "/data/MMR", "mmr_val", split="val")         writes a dataset folder
    data = load_dataset("mmr_val")                                   a dataset folder

`maskwise.store` defines the dataset folder. This module knows the names, and therefore the packages that define them:
`world`, `downloads`, `benchmarks` and `formats`.
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from maskwise.benchmarks import find_reader
from maskwise.downloads.hub import (
    PREFIX,
    Hub,
    OpenRows,
    load_hub_dataset,
    load_open_rows,
)
from maskwise.downloads.local_files import data_folder
from maskwise.downloads.table import list_downloads
from maskwise.errors import StoreError, did_you_mean
from maskwise.formats import (
    AnnotationFormat,
    ReadSummary,
    convert_annotations,
    find_format,
)
from maskwise.formats.release_folder import (
    RELEASE,
    find_release,
    read_release,
)
from maskwise.registry import BENCHMARKS
from maskwise.store import Dataset
from maskwise.store.folder import MANIFEST
from maskwise.world import bundled

BUNDLED_DATASETS = {"world": bundled}
"""Datasets that come with the package: name, and the function that returns the folder."""

MAX_NAME_LENGTH = 80
"""Characters of a release's name and version in the name of its folder; file systems allow about 255 bytes."""

HASH_LENGTH = 16
"""Hexadecimal digits of a release's hash in the name of its folder: 64 bits, enough to tell apart a user's releases."""


def load_dataset(
    data: "str | os.PathLike[str] | Dataset | OpenRows",
    *,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    hub: Hub | None = None,
) -> Dataset:
    """Open a dataset: a sequence of samples that can be sliced and filtered.

    data: `world`, which comes with maskwise, the name of a downloaded dataset, a dataset folder, a release, or
    `hf:owner/name`, which is streamed from the Hugging Face hub on first use. An open dataset is returned as it is; an
    open `datasets.Dataset` is converted. images: the folder of the images, if not the one that the dataset names.
    split: of a dataset of the hub. hub: where such a dataset comes from, if not from the package `datasets`.

    Example: data = load_dataset("world")[:20]
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, OpenRows):
        return Dataset.open(load_open_rows(data))
    if not isinstance(data, str | os.PathLike):
        raise StoreError(
            "expected the name or folder of a dataset, "
            f"not a value of type {type(data).__name__}"
        )
    text = os.fspath(data)
    if text.startswith(PREFIX):
        return Dataset.open(load_hub_dataset(text, split=split, hub=hub))
    if split is not None:
        raise StoreError(
            f"split is for datasets of the hub (hf:owner/name), not for {text}; use filter(split={split!r})"
        )
    return Dataset.open(find_dataset(data), image_root=images)


def read_dataset(
    name: str | AnnotationFormat,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    split: str | None = None,
    images: str | os.PathLike[str] | None = None,
    with_images: bool = True,
    mapping: str | os.PathLike[str] | None = None,
    options: Mapping[str, object] | None = None,
    strict: bool = False,
    embed: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> ReadSummary:
    """Convert one split of a benchmark or annotation format to the dataset folder `out`.

    name: a benchmark or format (`list_benchmarks`, `list_formats`). source: the folder it was downloaded to, or one
    annotation file. images: the folder of the images, if not below `source`. mapping: a field mapping (YAML), for
    formats that need one. options: of this reader. strict: stop at the first record that would be skipped. embed:
    store the images in the dataset. The summary counts what was kept, and what was skipped and why.

    Example: read_dataset("mmr", "/data/MMR", "mmr_val", split="val")
    """
    return convert_annotations(
        find_reader(name) if isinstance(name, str) else name,
        Path(source),
        Path(out),
        split=split,
        images=None if images is None else Path(images),
        with_images=with_images,
        mapping=None if mapping is None else Path(mapping),
        options=options,
        strict=strict,
        embed=embed,
        overwrite=overwrite,
        progress=progress,
    )


def find_dataset(name: str | os.PathLike[str]) -> Path:
    """The folder of a dataset, given by its path, by its name (bundled or downloaded), or as a release.

    A release is RELEASE or RELEASE/SPLIT; it is converted to a dataset folder on first use. StoreError says what to do
    about a name that is not known or not downloaded.
    """
    text = os.fspath(name)
    if text.startswith(PREFIX):
        return load_hub_dataset(text)
    if text in BUNDLED_DATASETS:
        return BUNDLED_DATASETS[text]()
    path = Path(text)
    release = find_release(path)
    if release is not None:
        return _convert_release(*release)
    if path.exists():
        return path
    if text in list_downloads():
        downloaded = data_folder() / text
        if not downloaded.is_dir():
            raise StoreError(
                f"dataset {text} was not downloaded yet: maskwise get {text}"
            )
        return downloaded
    benchmark = text.lower()
    if benchmark in BENCHMARKS.names():
        raise StoreError(
            f"the files of benchmark {benchmark} do not come with maskwise: convert them to a dataset folder first, "
            f"`maskwise read {benchmark} PATH --out {benchmark}_val`, and evaluate on that folder"
        )
    hint = did_you_mean(text, [*BUNDLED_DATASETS, *list_downloads()])
    raise StoreError(
        f"{text} is neither a dataset folder nor one of: {', '.join(BUNDLED_DATASETS)}{hint}"
    )


def _convert_release(release: Path, wanted_split: str | None) -> Path:
    """The dataset folder of a release or of one of its splits. The sha256 of its files is checked on conversion.

    It is kept in `releases` in the data folder (MASKWISE_DATA), where it may be removed at any time.
    """
    manifest = read_release(release)
    split = wanted_split or "all"
    content = (release / RELEASE).read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    title = re.sub(r"[^\w.-]+", "-", f"{manifest.name}-{manifest.version}-{split}")
    out = data_folder() / "releases" / f"{title[:MAX_NAME_LENGTH]}-{digest}"
    # The manifest is written last: its presence means that the conversion was completed.
    if not (out / MANIFEST).is_file():
        options = {"only": wanted_split} if wanted_split else {}
        convert_annotations(
            find_format("release"), release, out, options=options, strict=True
        )
    return out

"""A released dataset, as `maskwise release` writes it: Parquet files by split, cards, metadata and checksums.

release.json                                 what the release holds, with size and sha256 of the data files
data/SPLIT-00000-of-00001.parquet            one row per image, as in `huggingface.py`
README.md, BENCHMARK_CARD.md, card.yaml      the cards
croissant.json                               Croissant metadata
provenance.jsonl                             who wrote, verified and reviewed each sample
SHA256SUMS                                   of all other files; `sha256sum -c SHA256SUMS` checks them
"""

import re
from pathlib import Path
from typing import Literal

import msgspec

from maskwise.errors import FormatError, StoreError, UnknownNameError
from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.huggingface import DATA, read_parquet
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext
from maskwise.store.folder import FileFacts, check_hash

RELEASE = "release.json"
CARD = "card.yaml"
CHECKSUMS = "SHA256SUMS"
VERSION = 1


class ReleaseSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a split."""

    images: int
    questions: int


class ReleaseManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `release.json`. `split_rule` says how images were assigned to splits."""

    schema_version: int
    name: str
    version: str
    license: str
    created_by: str
    images: Literal["embedded", "referenced"]
    counts: dict[str, int]
    splits: dict[str, ReleaseSplit]
    split_rule: str
    files: dict[str, FileFacts]
    about: dict[str, str] = {}


def find_release(path: Path) -> tuple[Path, str | None] | None:
    """The folder of the release at `path`, and the split if it is `RELEASE/SPLIT`; None if it is something else."""
    if (path / RELEASE).is_file():
        return path, None
    if not path.exists() and (path.parent / RELEASE).is_file():
        known = read_release(path.parent).splits
        if path.name not in known:
            raise UnknownNameError(f"split of release {path.parent}", path.name, known)
        return path.parent, path.name
    return None


def read_release(folder: Path) -> ReleaseManifest:
    """The manifest of a release."""
    manifest = read_json(folder / RELEASE, ReleaseManifest)
    if manifest.schema_version != VERSION:
        raise FormatError(
            f"{folder / RELEASE} has schema version {manifest.schema_version}; this version reads {VERSION}"
        )
    return manifest


def read(context: ReadContext, *, only: str = "") -> AnnotatedImages:
    """Images with their regions and samples; the tag `split` says which split. only: read this split alone."""
    folder = context.annotations.parent
    manifest = read_release(folder)
    if only and only not in manifest.splits:
        raise UnknownNameError(f"split of release {folder}", only, manifest.splits)
    names = [
        name
        for split in manifest.splits
        if only in ("", split)
        for name in _files(manifest, split)
    ]
    if not names:
        raise FormatError(f"{folder / RELEASE} lists no Parquet files of its splits")
    annotated_images = read_parquet(
        context, [_checked(folder / name, manifest.files[name]) for name in names]
    )
    about = dict(annotated_images.about) | {"split": only or "all"}
    return annotated_images._replace(
        about=about, name=f"{manifest.name} {manifest.version}"
    )


def _files(manifest: ReleaseManifest, split: str) -> list[str]:
    """The data files of a split, in order."""
    pattern = re.compile(rf"{DATA}/{re.escape(split)}-\d+-of-\d+\.parquet")
    return sorted(name for name in manifest.files if pattern.fullmatch(name))


def _checked(path: Path, facts: FileFacts) -> Path:
    """The path of a file that is there and unchanged."""
    if not path.is_file():
        raise StoreError(f"{path} is missing")
    check_hash(path, facts)
    return path


RELEASE_FOLDER = AnnotationFormat(
    name="release",
    title="A released dataset, as written by `maskwise release`",
    layout=FileLayout(
        annotations=(RELEASE,),
        images=(".",),
        notes="All splits are read; --option only=SPLIT reads one. Commands also take the folder, or RELEASE/SPLIT.",
    ),
    read=read,
)

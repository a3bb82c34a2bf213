"""Is a release what its authors published: checksums, manifest, Croissant metadata, data, and a signature.

Checksums alone show damage; whoever changes a file can change them as well. So `verify_release` also returns a digest
of `SHA256SUMS`, for the authors to publish elsewhere, and checks a signature of that file by an SSH key, as
`ssh-keygen -Y sign -n maskwise-release -f KEY SHA256SUMS` makes it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import ImageError, MaskwiseError, ReleaseError
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext
from maskwise.formats.release_folder import (
    CHECKSUMS,
    RELEASE,
    ReleaseManifest,
    read,
    read_release,
)
from maskwise.images import check_relative
from maskwise.store.folder import file_facts

SIGNATURE = f"{CHECKSUMS}.sig"
NAMESPACE = "maskwise-release"
"""What a signature is for, so that one of another kind of file is refused."""

CROISSANT = "croissant.json"
MAX_PROBLEMS = 10
SIGNER = "author"
"""The name that stands for the given key in the file that ssh-keygen reads."""

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


class VerifiedRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A release that is intact. digest: sha256 of SHA256SUMS. signed: by the given key; None if none was given."""

    name: str
    version: str
    files: int
    bytes: int
    images: int
    questions: int
    digest: str
    signed: bool | None


def verify_release(
    folder: Path, *, digest: str | None = None, key: Path | None = None
) -> VerifiedRelease:
    """Check a release. ReleaseError lists what is wrong.

    digest: what its authors published. key: their public SSH key; the release must have a signature by it.
    """
    if not (folder / RELEASE).is_file():
        raise ReleaseError(f"{folder} is not a release: it has no {RELEASE}")
    hashes, problems = _check_checksums(folder)
    if problems:
        raise _failure(folder, problems)
    manifest = read_release(folder)
    problems += _check_manifest(folder, manifest, hashes)
    problems += _check_croissant(folder, manifest)
    if not problems:
        problems += _check_data(folder, manifest)
    actual = hashlib.sha256((folder / CHECKSUMS).read_bytes()).hexdigest()
    if digest is not None and digest.lower() != actual:
        problems.append(f"its digest is {actual}, not {digest}")
    if key is not None:
        problems += _check_signature(folder, key)
    if problems:
        raise _failure(folder, problems)
    splits = manifest.splits.values()
    return VerifiedRelease(
        name=manifest.name,
        version=manifest.version,
        files=len(hashes) + 1,
        bytes=sum((folder / name).stat().st_size for name in hashes),
        images=sum(split.images for split in splits),
        questions=sum(split.questions for split in splits),
        digest=actual,
        signed=None if key is None else True,
    )


def _failure(folder: Path, problems: list[str]) -> ReleaseError:
    listed = "; ".join(problems[:MAX_PROBLEMS])
    more = len(problems) - MAX_PROBLEMS
    others = f"; and {more} more problems" if more > 0 else ""
    return ReleaseError(f"{folder} is not intact: {listed}{others}")


def _check_checksums(folder: Path) -> tuple[dict[str, str], list[str]]:
    """The hashes of SHA256SUMS by name, and the files that are missing, changed, unlisted or not plain files."""
    path = folder / CHECKSUMS
    if not path.is_file() or path.is_symlink():
        return {}, [f"{CHECKSUMS} is missing"]
    hashes: dict[str, str] = {}
    problems = []
    text = path.read_text(encoding="utf-8", errors="replace")
    # Only line feeds end a line, as for sha256sum.
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"line {number} of {CHECKSUMS} is not a checksum")
            continue
        sha256, name = match.groups()
        try:
            check_relative(name)
        except ImageError as error:
            problems.append(f"line {number} of {CHECKSUMS}: {error}")
            continue
        if name in hashes:
            problems.append(f"{name} is listed twice")
        hashes[name] = sha256
    present = _list_files(folder, problems)
    for name, sha256 in hashes.items():
        if name not in present:
            problems.append(f"{name} is missing")
        elif file_facts(folder / name).sha256 != sha256:
            problems.append(f"{name} has changed")
    for name in sorted(present - set(hashes) - {CHECKSUMS, SIGNATURE}):
        problems.append(f"{name} is not listed in {CHECKSUMS}")
    return hashes, problems


def _list_files(folder: Path, problems: list[str]) -> set[str]:
    """All plain files below a folder; links are problems: they may lead anywhere."""
    names = set()
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink():
                problems.append(f"{relative} is a link")
            elif path.is_file():
                names.add(relative)
    return names


def _check_manifest(
    folder: Path, manifest: ReleaseManifest, hashes: dict[str, str]
) -> list[str]:
    problems = []
    data = {name for name in hashes if name.startswith("data/")}
    for name in sorted(data ^ set(manifest.files)):
        problems.append(f"{name} is only in one of {RELEASE} and {CHECKSUMS}")
    for name in sorted(data & set(manifest.files)):
        facts = manifest.files[name]
        if facts.sha256 != hashes[name]:
            problems.append(f"{RELEASE} has another checksum for {name}")
        if facts.bytes != (folder / name).stat().st_size:
            problems.append(f"{RELEASE} has another size for {name}")
    return problems


def _check_croissant(folder: Path, manifest: ReleaseManifest) -> list[str]:
    """Every file that the metadata names is one of the release, with the same checksum."""
    path = folder / CROISSANT
    if not path.is_file():
        return [f"{CROISSANT} is missing"]
    content = read_json(path, dict[str, Any])
    distribution = content.get("distribution")
    if not isinstance(distribution, list):
        return [f"{CROISSANT} has no list `distribution`"]
    problems = []
    for entry in distribution:
        if not isinstance(entry, dict):
            problems.append(f"{CROISSANT}: an entry of `distribution` is no object")
        elif "includes" in entry:
            pattern = str(entry["includes"])
            if not any(fnmatchcase(name, pattern) for name in manifest.files):
                problems.append(
                    f"{CROISSANT} includes {pattern!r}, which no file matches"
                )
        else:
            name = str(entry.get("contentUrl"))
            facts = manifest.files.get(name)
            if facts is None:
                problems.append(
                    f"{CROISSANT} names {name!r}, which is no data file of the release"
                )
            elif facts.sha256 != entry.get("sha256"):
                problems.append(f"{CROISSANT} has another checksum for {name}")
    return problems


def _check_data(folder: Path, manifest: ReleaseManifest) -> list[str]:
    """Read all images with their regions and samples, and count them."""
    problems = []
    for split, size in manifest.splits.items():
        diagnostics = Diagnostics()
        context = ReadContext(
            annotations=folder / RELEASE, split=split, diagnostics=diagnostics
        )
        images = 0
        questions = 0
        try:
            for annotated in read(context, only=split).images:
                images += 1
                questions += len(annotated.samples)
        except MaskwiseError as error:
            problems.append(f"split {split} cannot be read: {error}")
            continue
        if (images, questions) != (size.images, size.questions):
            problems.append(
                f"split {split} has {images} images with {questions} questions; "
                f"{RELEASE} says {size.images} and {size.questions}"
            )
    return problems


def _check_signature(folder: Path, key: Path) -> list[str]:
    """Verify the signature of SHA256SUMS with ssh-keygen, which every system with OpenSSH has."""
    if not (folder / SIGNATURE).is_file():
        return [f"it has no signature ({SIGNATURE})"]
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ReleaseError(
            "checking a signature needs the program ssh-keygen; install OpenSSH"
        )
    try:
        public_key = key.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ReleaseError(f"{key} cannot be read: {error}") from None
    with tempfile.NamedTemporaryFile("w", suffix=".signers") as signers:
        signers.write(f'{SIGNER} namespaces="{NAMESPACE}" {public_key}\n')
        signers.flush()
        arguments = ["-f", signers.name, "-I", SIGNER, "-n", NAMESPACE]
        signature = str((folder / SIGNATURE).absolute())
        with (folder / CHECKSUMS).open("rb") as checksums:
            ended = subprocess.run(
                [program, "-Y", "verify", *arguments, "-s", signature],
                stdin=checksums,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
    if ended.returncode == 0:
        return []
    reason = (ended.stderr or ended.stdout).strip().splitlines()
    return [f"its signature is not by {key}: {reason[-1] if reason else 'refused'}"]

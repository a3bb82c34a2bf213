"""Where and when a part of a run took place: versions, commit, hardware. Recorded, never compared."""

import functools
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import msgspec

import maskwise
from maskwise.masks import kernel_name

PACKAGES = ("numpy", "pillow", "pyarrow", "onnxruntime", "torch", "ray")
"""Packages whose versions may matter to a model; those not installed are left out."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One time a run was started or continued. `commit`: of the repository the command was given in; `source_commit`:
    of maskwise itself, where it runs from its repository; both end in `+` if files were changed. memory: bytes.
    """

    started: str
    engine: str
    timeout: float | None
    done_before: int
    maskwise: str
    kernel: str
    python: str
    packages: dict[str, str]
    commit: str | None
    source_commit: str | None
    host: str
    platform: str
    processor: str
    cores: int
    memory: int | None
    accelerators: list[str]


def describe_session(*, engine: str, timeout: float | None, done_before: int) -> Session:
    """The session that begins now. done_before: samples predicted in earlier ones."""
    return Session(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        engine=engine,
        timeout=timeout,
        done_before=done_before,
        maskwise=maskwise.__version__,
        kernel=kernel_name(),
        python=platform.python_version(),
        packages=_versions(),
        commit=_commit(Path.cwd()),
        source_commit=_commit(Path(maskwise.__file__).parent),
        host=platform.node(),
        platform=platform.platform(),
        processor=_processor(),
        cores=usable_threads(),
        memory=_memory(),
        accelerators=_accelerators(),
    )


def usable_threads() -> int:
    """How many threads this process may run side by side."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def _commit(folder: Path) -> str | None:
    """The commit a folder is at, with a + where tracked files differ; None outside a repository."""
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return None
    head = _run("git", "-C", str(folder), "rev-parse", "HEAD")
    # Without the lock: a kill or a full disk would leave it behind, and nobody could commit any more.
    changed = _run(
        "git", "--no-optional-locks", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"
    )
    return head and head + ("+" if changed else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


@functools.cache
def _accelerators() -> list[str]:
    """The GPUs nvidia-smi lists; none where it is not installed."""
    found = _run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    return found.splitlines() if found else []


def _run(*command: str) -> str | None:
    """What a short command prints; None where it is missing or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

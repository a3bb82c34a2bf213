"""The environment of an attempt at a run: versions, commit, hardware."""

import contextlib
import functools
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import maskwise
from maskwise.masks import kernel_name
from maskwise.runs.schema import Attempt

PACKAGES = ("numpy", "pillow", "pyarrow", "onnxruntime", "torch", "ray")
"""Packages whose versions may affect a model. Those that are not installed are left out."""


def describe_attempt(
    *, engine: str, timeout: float | None, done_before: int, working_folder: Path
) -> Attempt:
    """The attempt that begins now. done_before: samples that earlier attempts have predicted."""
    return Attempt(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        engine=engine,
        timeout=timeout,
        done_before=done_before,
        maskwise=maskwise.__version__,
        kernel=kernel_name(),
        python=platform.python_version(),
        packages=_versions(),
        commit=_commit(working_folder),
        source_commit=_commit(Path(maskwise.__file__).parent),
        host=platform.node(),
        platform=platform.platform(),
        processor=_processor(),
        cores=available_cores(),
        memory=_memory(),
        accelerators=_accelerators(),
    )


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


@functools.cache
def _commit(folder: Path) -> str | None:
    """The commit of a folder's repository, with a + if tracked files were changed; None outside a repository."""
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return None
    head = _run("git", "-C", str(folder), "rev-parse", "HEAD")
    # Without the lock: a kill or a full disk would leave it behind, and then no commit would be possible.
    changed = _run(
        "git",
        "--no-optional-locks",
        "-C",
        str(folder),
        "status",
        "--porcelain",
        "--untracked-files=no",
    )
    return head and head + ("+" if changed else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith("model name")
    )
    return next(named, platform.processor())


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


@functools.cache
def _accelerators() -> list[str]:
    """The GPUs that nvidia-smi lists; none if it is not installed."""
    query = "--query-gpu=name,memory.total"
    listed = _run("nvidia-smi", query, "--format=csv,noheader")
    return listed.splitlines() if listed else []


def _run(*command: str) -> str | None:
    """The output of a short command; None if it is missing or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

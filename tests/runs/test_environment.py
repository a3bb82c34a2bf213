"""The environment of an attempt is recorded, and nothing about it can stop a run."""

import subprocess
import sys
from pathlib import Path

import pytest

from maskwise.runs import environment
from maskwise.runs.environment import available_cores, describe_attempt


@pytest.fixture(autouse=True)
def forget() -> None:
    environment._commit.cache_clear()
    environment._accelerators.cache_clear()


def commit(folder: Path) -> str | None:
    attempt = describe_attempt(
        engine="local", timeout=None, done_before=0, working_folder=folder
    )
    return attempt.commit


def test_an_attempt_names_engine_versions_and_machine(tmp_path: Path) -> None:
    attempt = describe_attempt(
        engine="ray", timeout=2.5, done_before=7, working_folder=tmp_path
    )
    assert (attempt.engine, attempt.timeout, attempt.done_before) == ("ray", 2.5, 7)
    assert attempt.python == ".".join(map(str, sys.version_info[:3]))
    assert {"numpy", "pyarrow"} <= set(attempt.packages)
    assert attempt.cores == available_cores() >= 1
    assert attempt.started.endswith("+00:00")
    assert attempt.commit is None, "not in a repository"


def test_packages_that_are_not_installed_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "PACKAGES", ("numpy", "no-such-package"))
    attempt = describe_attempt(
        engine="local", timeout=None, done_before=0, working_folder=tmp_path
    )
    assert list(attempt.packages) == ["numpy"]


def test_the_commit_of_a_repository_has_a_plus_if_files_were_changed(
    tmp_path: Path,
) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    (tmp_path / "a.txt").write_text("1")
    git("add", "a.txt")
    git("commit", "-m", "first")
    clean = commit(tmp_path)
    assert clean is not None
    assert len(clean) == 40
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "new.txt").write_text("untracked files do not count")
    environment._commit.cache_clear()
    assert commit(tmp_path / "deep") == clean
    (tmp_path / "a.txt").write_text("2")
    environment._commit.cache_clear()
    assert commit(tmp_path) == f"{clean}+"


def test_a_machine_without_tools_is_described_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / ".git").mkdir()
    attempt = describe_attempt(
        engine="local", timeout=None, done_before=0, working_folder=tmp_path
    )
    assert attempt.commit is None
    assert attempt.accelerators == []


@pytest.mark.skipif(sys.platform == "win32", reason="the fake tool is a shell script")
def test_accelerators_are_those_that_nvidia_smi_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'H100, 81559 MiB'\necho 'H100, 81559 MiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert environment._accelerators() == ["H100, 81559 MiB"] * 2
    environment._accelerators.cache_clear()
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert environment._accelerators() == []

"""Uploading a release with huggingface_hub to a local server that speaks the hub's API."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from maskwise.builder.release.push import check_release
from maskwise.builder.release.release import plan_release, write_release
from maskwise.errors import ReleaseError
from tests.builder.release.hub_server import TOKEN, HubServer, hub
from tests.builder.release.made import make_card, make_dataset

COMMAND = [
    sys.executable,
    "-c",
    "from maskwise.cli.main import main; main()",
    "release",
]


@pytest.fixture
def server() -> Iterator[HubServer]:
    with hub() as found:
        yield found


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return write(tmp_path, 20, "1.0.0")


def write(folder: Path, images: int, version: str) -> Path:
    dataset = make_dataset(folder / f"cups{images}", images)
    write_release(plan_release(dataset), folder / version, make_card(), version=version)
    return folder / version


def push(
    server: HubServer, release: Path, *arguments: str, token: str | None = TOKEN
) -> subprocess.CompletedProcess[str]:
    """Upload as a user does; the hub's address is read when huggingface_hub is imported, so in a process of its own."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("HF_")
    }
    environment = kept | {
        "HF_ENDPOINT": server.address,
        "HF_HOME": str(release.parent / "home"),
        "HF_HUB_DISABLE_XET": "1",
    }
    environment |= {} if token is None else {"HF_TOKEN": token}
    return subprocess.run(
        [*COMMAND, str(release), "--push", "someone/cups", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_release_is_uploaded_privately_as_one_commit(
    server: HubServer, release: Path
) -> None:
    result = push(server, release)
    assert result.returncode == 0, result.stderr
    assert (
        result.stdout.strip()
        == f"{server.address}/datasets/someone/cups/commit/{'1' * 40}"
    )
    assert server.created["visibility"] == "private"
    assert server.messages == ["Cups 1.0.0"]
    expected = {
        path.relative_to(release).as_posix(): path.read_bytes()
        for path in release.rglob("*")
        if path.is_file()
    }
    assert server.files == expected


def test_a_new_version_replaces_the_data_files(
    server: HubServer, release: Path, tmp_path: Path
) -> None:
    push(server, release, "--public")
    assert server.created["visibility"] == "public"
    server.files["data/old-00000-of-00001.parquet"] = b"of an earlier version"
    assert push(server, write(tmp_path, 25, "1.1.0")).returncode == 0
    assert server.messages == ["Cups 1.0.0", "Cups 1.1.0"]
    assert "data/old-00000-of-00001.parquet" not in server.files
    assert (tmp_path / "1.1.0" / "release.json").read_bytes() == server.files[
        "release.json"
    ]


def test_without_a_token_the_message_says_how_to_log_in(
    server: HubServer, release: Path
) -> None:
    result = push(server, release, token=None)
    assert result.returncode == 2
    assert "hf auth login" in result.stderr
    assert not server.files


def test_a_refusal_of_the_hub_is_shown(server: HubServer, release: Path) -> None:
    server.fail = (403, {"error": "You have no right to create this repository"})
    result = push(server, release)
    assert result.returncode == 2
    assert "the hub refused the upload to someone/cups" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_hub_that_is_away_is_named(release: Path) -> None:
    with hub() as server:
        pass
    result = push(server, release)
    assert result.returncode == 2
    assert "the upload to someone/cups failed: ConnectError" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_changed_file_is_not_uploaded(server: HubServer, release: Path) -> None:
    (release / "README.md").write_text("changed")
    result = push(server, release)
    assert result.returncode == 2
    assert "was changed after the release was written" in result.stderr
    assert not server.calls


def test_an_incomplete_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no SHA256SUMS"):
        check_release(tmp_path)

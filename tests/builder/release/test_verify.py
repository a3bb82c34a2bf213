"""`maskwise verify` notices every change of a release."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from maskwise.builder.release.verify import SIGNATURE, verify_release
from maskwise.errors import MaskwiseError, ReleaseError
from maskwise.store.folder import file_facts
from tests.builder.release.made import make_dataset
from tests.builder.release.test_release import make_release
from tests.cli.commands import run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    return make_release(make_dataset(folder / "cups"), folder / "cups-1.0.0")


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "release"))


def sign_again(release: Path) -> None:
    """What an attacker does after a change: make the checksums fit."""
    lines = []
    for path in sorted(release.rglob("*")):
        if path.is_file() and path.name != "SHA256SUMS":
            name = path.relative_to(release).as_posix()
            lines.append(f"{file_facts(path).sha256}  {name}\n")
    (release / "SHA256SUMS").write_text("".join(lines))


def data_file(release: Path) -> Path:
    return sorted((release / "data").iterdir())[0]


def change_json(path: Path, change: object) -> None:
    content = json.loads(path.read_text())
    change(content)  # type: ignore[operator]
    path.write_text(json.dumps(content))


def test_an_intact_release_is_verified(release: Path) -> None:
    said = run("verify", release).output
    assert "is intact: Cups 1.0.0" in said
    verified = json.loads(run("verify", release, "--json").output)
    assert f"digest {verified['digest']}" in said
    assert verified["images"] > 0
    assert verify_release(release, digest=verified["digest"]).files == len(
        [path for path in release.rglob("*") if path.is_file()]
    )


def test_a_changed_byte_of_any_file_is_noticed(release: Path) -> None:
    for path in [path for path in release.rglob("*") if path.is_file()]:
        kept = path.read_bytes()
        for position in (0, len(kept) // 2, len(kept) - 1):
            changed = bytearray(kept)
            changed[position] ^= 0x01
            path.write_bytes(changed)
            with pytest.raises(MaskwiseError):
                verify_release(release)
        path.write_bytes(kept)
    assert verify_release(release)


def test_missing_and_added_files_and_links_are_noticed(release: Path) -> None:
    data = data_file(release)
    kept = data.read_bytes()
    data.unlink()
    with pytest.raises(ReleaseError, match=rf"{data.name} is missing"):
        verify_release(release)
    outside = release.parent / "outside"
    outside.write_bytes(kept)
    data.symlink_to(outside)
    with pytest.raises(ReleaseError, match="is a link"):
        verify_release(release)
    data.unlink()
    data.write_bytes(kept)
    (release / "extra.py").write_text("")
    with pytest.raises(ReleaseError, match=r"extra\.py is not listed"):
        verify_release(release)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "data/../../x", "a\\b"])
def test_paths_that_leave_the_release_are_refused(release: Path, name: str) -> None:
    with (release / "SHA256SUMS").open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    with pytest.raises(ReleaseError, match=r"line \d+ of SHA256SUMS"):
        verify_release(release)


@pytest.mark.parametrize(
    "address", ["../outside.parquet", "/etc/passwd", "https://example.org/x.parquet"]
)
def test_croissant_names_only_files_of_the_release(release: Path, address: str) -> None:
    path = release / "croissant.json"
    change_json(
        path, lambda content: content["distribution"][0].update(contentUrl=address)
    )
    sign_again(release)
    with pytest.raises(ReleaseError, match=r"croissant\.json names"):
        verify_release(release)


def test_tampered_data_with_new_checksums_contradict_the_manifest(
    release: Path,
) -> None:
    data_file(release).write_bytes(b"PAR1 nothing PAR1")
    sign_again(release)
    with pytest.raises(ReleaseError, match="another checksum"):
        verify_release(release)


def replace_everywhere(release: Path, data: Path) -> None:
    """Make manifest, Croissant and checksums fit a changed data file."""
    facts = file_facts(data)
    name = f"data/{data.name}"
    change_json(
        release / "release.json",
        lambda content: content["files"].update(
            {name: {"bytes": facts.bytes, "sha256": facts.sha256}}
        ),
    )

    def change(content: dict[str, list[dict[str, str]]]) -> None:
        for entry in content["distribution"]:
            if entry.get("contentUrl") == name:
                entry["sha256"] = facts.sha256

    change_json(release / "croissant.json", change)
    sign_again(release)


def test_data_that_cannot_be_read_or_lacks_rows_is_noticed(release: Path) -> None:
    data = data_file(release)
    kept = data.read_bytes()
    data.write_bytes(kept[: len(kept) // 2])
    replace_everywhere(release, data)
    with pytest.raises(ReleaseError, match="cannot be read"):
        verify_release(release)
    data.write_bytes(kept)
    table = pq.read_table(data)
    pq.write_table(table.slice(1), data)
    replace_everywhere(release, data)
    with pytest.raises(ReleaseError, match=r"release\.json says|cannot be read"):
        verify_release(release)


def test_only_a_published_digest_shows_a_consistent_change(
    made: Path, release: Path
) -> None:
    digest = verify_release(made).digest
    (release / "README.md").write_text("Send money to me.")
    sign_again(release)
    assert verify_release(release)
    with pytest.raises(ReleaseError, match="its digest is"):
        verify_release(release, digest=digest)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_a_signature_shows_who_published(release: Path, tmp_path: Path) -> None:
    for name in ("author", "stranger"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f"]
        subprocess.run([*command, str(tmp_path / name)], check=True)
    author = tmp_path / "author.pub"
    with pytest.raises(ReleaseError, match="it has no signature"):
        verify_release(release, key=author)
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-n", "maskwise-release", "-f"]
    checksums = str(release / "SHA256SUMS")
    subprocess.run([*sign, str(tmp_path / "author"), checksums], check=True)
    assert (release / SIGNATURE).is_file()
    assert "signed by" in run("verify", release, "--key", author).output
    with pytest.raises(ReleaseError, match="its signature is not by"):
        verify_release(release, key=tmp_path / "stranger.pub")
    (release / "README.md").write_text("Send money to me.")
    kept = (release / SIGNATURE).read_bytes()
    (release / SIGNATURE).unlink()
    sign_again(release)
    (release / SIGNATURE).write_bytes(kept)
    with pytest.raises(ReleaseError, match="its signature is not by"):
        verify_release(release, key=author)

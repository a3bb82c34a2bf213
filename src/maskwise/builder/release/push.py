"""Upload a release to the Hugging Face hub (extra `release`)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from maskwise.errors import MissingDependencyError, ReleaseError
from maskwise.formats.release_folder import CHECKSUMS, read_release
from maskwise.store.folder import file_facts


def push_release(folder: Path, repository: str, *, public: bool = False) -> str:
    """Upload a release as one commit to a dataset repository, made private unless `public`; returns its address.

    The token is the one of `hf auth login` or HF_TOKEN. The checksums are compared before anything is sent. A
    repository that exists keeps its visibility.
    """
    try:
        from huggingface_hub import HfApi  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "uploading", "huggingface_hub", extra="release"
        ) from None
    check_release(folder)
    manifest = read_release(folder)
    api = HfApi()
    with explain_hub_errors(repository):
        api.create_repo(
            repository, repo_type="dataset", private=not public, exist_ok=True
        )
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            repo_type="dataset",
            commit_message=f"{manifest.name} {manifest.version}",
            delete_patterns=["data/*"],
        )
    return str(commit.commit_url)


@contextlib.contextmanager
def explain_hub_errors(repository: str) -> Iterator[None]:
    """Turn what huggingface_hub raises during an upload into a ReleaseError that says what to do."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError  # noqa: PLC0415

    try:
        yield
    except HFValidationError as error:
        raise ReleaseError(
            f"{repository!r} is no repository name (USER/NAME): {error}"
        ) from None
    except HfHubHTTPError as error:
        login = error.response is not None and error.response.status_code == 401
        hint = " Log in with `hf auth login`, or set HF_TOKEN." if login else ""
        raise ReleaseError(
            f"the hub refused the upload to {repository}.{hint} {error}"
        ) from None
    except Exception as error:
        # Failures of the connection have the types of whichever HTTP library huggingface_hub uses.
        raise ReleaseError(
            f"the upload to {repository} failed: {type(error).__name__}: {error}"
        ) from error


def check_release(folder: Path) -> None:
    """ReleaseError unless every file of the release has the checksum it was written with."""
    checksums = folder / CHECKSUMS
    if not checksums.is_file():
        raise ReleaseError(f"{folder} is not a complete release: it has no {CHECKSUMS}")
    for line in checksums.read_text(encoding="utf-8").splitlines():
        sha256, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file() or file_facts(path).sha256 != sha256:
            raise ReleaseError(
                f"{path} is missing or was changed after the release was written"
            )

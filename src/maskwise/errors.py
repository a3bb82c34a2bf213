"""The exceptions of the package: all are MaskwiseError, so that one `except` catches every mistake of a user.

MaskwiseError                 base; the command line prints it without a traceback
├── MaskError                 invalid mask: bad counts, size or polygon
├── ImageError                image that cannot be opened safely
├── RecordError               record with an invalid or contradictory field
├── StoreError                dataset folder, run folder or log that is missing, incomplete or changed
├── FormatError               annotation file that does not follow its format
├── DownloadError             file that cannot be downloaded, verified or unpacked
├── ReleaseError              dataset that cannot be released: blank card fields, contradictory splits
├── ProtocolError             protocol that cannot score the given data
├── ModelError                model that cannot be loaded, or that returned something else than predictions
│   └── ModelGoneError        model that can no longer be reached: the run stops and can be continued
├── ConfigError               training config that is invalid, or does not fit its model or its data
├── MissingDependencyError    optional package that is not installed; also an ImportError
└── UnknownNameError          unknown name; the message lists the known ones
"""

import difflib
import errno
from collections.abc import Iterable

DISK_ERRORS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
        errno.EMFILE,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
    }
)
"""Errors of the system that are no mistake of the program: the user has to make room, or to choose another place."""


class MaskwiseError(Exception):
    """An error the user can fix. The message says what was expected, what was found, where, and what to do."""


class MaskError(MaskwiseError):
    """An invalid mask. `item` is its position in the batch, or None for a single mask."""

    def __init__(self, message: str, item: int | None = None) -> None:
        super().__init__(message if item is None else f"mask {item}: {message}")
        self.message = message
        self.item = item


class ImageError(MaskwiseError):
    """An image that is missing, damaged, too large or of an unknown format."""


class RecordError(MaskwiseError):
    """A record with a field that is invalid or contradicts another one."""


class StoreError(MaskwiseError):
    """A dataset folder, run folder or log that is missing, incomplete or changed."""


class FormatError(MaskwiseError):
    """An annotation file or folder that does not follow its format."""


class DownloadError(MaskwiseError):
    """A file that is missing, or that cannot be downloaded, verified or unpacked safely."""


class ReleaseError(MaskwiseError):
    """A dataset that cannot be released as it is: blank fields of its card, contradictory splits, a failed upload."""


class ProtocolError(MaskwiseError):
    """A protocol that cannot score the given data, or an invalid option of one."""


class ModelError(MaskwiseError):
    """A model that cannot be loaded or called, or that returned something else than predictions."""


class ModelGoneError(ModelError):
    """A model that cannot be started or reached any more, so that no further question can be asked."""


class ConfigError(MaskwiseError):
    """A training config that is invalid, or that does not fit its model or its data."""


class MissingDependencyError(MaskwiseError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, feature: str, package: str, *, extra: str | None = None) -> None:
        name = package if extra is None else f"'maskwise[{extra}]'"
        super().__init__(
            f"{feature} needs {package}, which is not installed: pip install {name}"
        )
        self.package = package


class UnknownNameError(MaskwiseError):
    """A name that is not registered. `where`: the file that contains it."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, where: str = ""
    ) -> None:
        names = sorted(known)
        start = f"{where}: " if where else ""
        super().__init__(
            f"{start}unknown {kind} {name!r}; known: {', '.join(names)}{did_you_mean(name, names)}"
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name that is most like it, empty if none is."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f". Did you mean {by_lower[close[0]]!r}?" if close else ""

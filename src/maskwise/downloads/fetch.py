"""Download one file over HTTP: resumed after an interruption, retried, limited in size, and complete or not there.

The bytes go to `NAME.partial`, beside which `NAME.partial.json` says which file of which server they belong to. They
are renamed when size and sha256 are right, so a file under its own name is always whole.
"""

import contextlib
import email.utils
import hashlib
import http.client
import os
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from maskwise import __version__
from maskwise.errors import DownloadError
from maskwise.store.atomic import PARTIAL, atomic_write, sync_folder

ATTEMPTS = 6
"""How often an address is tried; every attempt continues where the last one ended."""

TIMEOUT = 60
"""Seconds without a byte after which an attempt has failed."""

LONGEST_PAUSE = 60.0
"""Seconds between two attempts at most, also if the server asks for more."""

MAX_BYTES = 2**38
"""The largest file whose size is not known beforehand."""

BLOCK = 2**20

TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
"""Responses after which the same request may succeed."""

Progress = Callable[[int, int | None], object]
"""Called with the bytes that are there and the bytes of the whole file, if they are known."""


class _TransientError(Exception):
    """An attempt failed and another may succeed. `pause`: seconds that the server asks to wait."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class PartialFile(msgspec.Struct, frozen=True):
    """What `NAME.partial.json` says: the address, and the validator with which the server names this content."""

    url: str
    validator: str | None = None


def fetch(
    urls: tuple[str, ...],
    path: Path,
    *,
    bytes: int | None = None,
    sha256: Collection[str] = (),
    progress: Progress = lambda done, total: None,
    pause: Callable[[float], object] = time.sleep,
) -> str:
    """Download a file to `path`; returns its sha256.

    urls: addresses of the same file, tried in order. bytes: its size, or None. sha256: the hashes of which it must
    have one; empty if not known. DownloadError says why every address failed; what was received is kept and continued
    by the next call.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    failures = []
    for url in urls:
        transfer = _Transfer(url, partial, bytes, progress)
        try:
            resumed = transfer.run(pause)
            if resumed and sha256 and _sha256(partial) not in sha256:
                # The server may have continued with the bytes of a newer file: take all
                # of it again, once.
                partial.unlink()
                transfer.run(pause)
            return _finish(partial, path, sha256)
        except DownloadError as error:
            failures.append(f"{url}: {error}")
    raise DownloadError(f"{path.name} could not be downloaded. " + "; ".join(failures))


class _Transfer:
    """The transfer of one file from one address to its partial file. size: what it must have, or None."""

    def __init__(
        self, url: str, partial: Path, size: int | None, progress: Progress
    ) -> None:
        self.url = url
        self.partial = partial
        self.size = size
        self.progress = progress

    def run(self, pause: Callable[[float], object]) -> bool:
        """Fill the partial file; returns whether an interrupted transfer was continued."""
        resumed = False
        for attempt in range(ATTEMPTS):
            try:
                return self._attempt() or resumed
            except _TransientError as error:
                if attempt == ATTEMPTS - 1:
                    raise DownloadError(f"{error} (tried {ATTEMPTS} times)") from None
                resumed = True
                # 1, 2, 4, ... seconds, unless the server asks for another pause.
                seconds = 2.0**attempt if error.pause is None else error.pause
                pause(min(seconds, LONGEST_PAUSE))
        raise AssertionError

    def _attempt(self) -> bool:
        """One request: the whole file, or the rest of it; returns whether it was the rest."""
        state = _read_state(self.partial)
        have = self._size() if state is not None and state.url == self.url else 0
        if self.size is not None and have == self.size:
            return True
        request = urllib.request.Request(self.url, headers=_headers(have, state))
        with _opened(request, self.partial) as response:
            start = self._start(response, have, state)
            total = _total(response)
            if self.size is not None and total not in (None, self.size):
                raise DownloadError(
                    f"the server has {total} bytes, expected {self.size}"
                )
            self._receive(response, start, total)
        if self.size is not None and self._size() < self.size:
            raise _TransientError(f"{self._size()} of {self.size} bytes arrived")
        return start > 0

    def _size(self) -> int:
        return self.partial.stat().st_size if self.partial.exists() else 0

    def _start(
        self, response: http.client.HTTPResponse, have: int, state: PartialFile | None
    ) -> int:
        """The first byte that the response holds: `have` if the server continues, 0 if it sends all again."""
        validator = _validator(response)
        # 206: a part of the file; any other success holds all of it.
        start = _content_range(response)[0] if response.status == 206 else 0
        if start:
            old_validator = None if state is None else state.validator
            both_known = old_validator is not None and validator is not None
            has_changed = both_known and old_validator != validator
            if start != have or has_changed:
                self.partial.unlink()
                raise _TransientError("the file changed on the server")
        else:
            self.partial.unlink(missing_ok=True)
        _write_state(self.partial, PartialFile(self.url, validator))
        return start

    def _receive(
        self, response: http.client.HTTPResponse, start: int, total: int | None
    ) -> None:
        """Append the body to the partial file, within the limits of size and disk."""
        expected = self.size if self.size is not None else total
        limit = MAX_BYTES if expected is None else expected
        _check_space(self.partial.parent, 0 if expected is None else expected - start)
        done = start
        with open(self.partial, "ab") as file:
            self.progress(done, expected)
            while block := response.read(BLOCK):
                done += len(block)
                if done > limit:
                    raise DownloadError(f"the server sends more than {limit} bytes")
                file.write(block)
                self.progress(done, expected)
            file.flush()
            os.fsync(file.fileno())
        if total is not None and done < total:
            raise _TransientError(f"the connection ended after {done} of {total} bytes")


def _headers(have: int, state: PartialFile | None) -> dict[str, str]:
    """Headers of a request; for the rest of a file, on condition that it has not changed."""
    headers = {"User-Agent": f"maskwise/{__version__}", "Accept-Encoding": "identity"}
    if have and state is not None:
        headers["Range"] = f"bytes={have}-"
        if state.validator is not None:
            headers["If-Range"] = state.validator
    return headers


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to HTTP addresses only, and never from HTTPS to HTTP."""

    def redirect_request(  # noqa: PLR0917
        self,
        request: Any,
        file: IO[bytes],
        code: int,
        message: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        old = urllib.parse.urlsplit(request.full_url)
        new = urllib.parse.urlsplit(newurl)
        if new.scheme not in ("http", "https") or (
            old.scheme == "https" and new.scheme != "https"
        ):
            raise DownloadError(f"refused a redirect to {newurl}")
        return super().redirect_request(request, file, code, message, headers, newurl)


_OPENER = urllib.request.build_opener(_Redirects())


@contextlib.contextmanager
def _opened(
    request: urllib.request.Request, partial: Path
) -> Iterator[http.client.HTTPResponse]:
    """The response; failures are sorted into those that may pass and those that will not."""
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as response:
            yield response
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            partial.unlink(missing_ok=True)
            raise _TransientError("the server does not continue at this byte") from None
        if error.code in TRANSIENT:
            raise _TransientError(
                f"HTTP {error.code} {error.reason}", _retry_after(error.headers)
            ) from None
        hint = (
            "; the host asks you to log in or to accept terms"
            if error.code in (401, 403)
            else ""
        )
        raise DownloadError(f"HTTP {error.code} {error.reason}{hint}") from None
    except urllib.error.URLError as error:
        raise _TransientError(f"the server cannot be reached: {error.reason}") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _TransientError(
            f"the connection broke: {error or type(error).__name__}"
        ) from None


def _retry_after(headers: Any) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value[:6])
    try:
        return max(
            0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        )
    except (ValueError, TypeError):
        return None


def _total(response: http.client.HTTPResponse) -> int | None:
    """The size of the whole file, if the server tells."""
    if response.status == 206:
        return _content_range(response)[1]
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _content_range(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """First byte and size of the whole file, from `Content-Range: bytes FIRST-LAST/TOTAL`."""
    value = response.headers.get("Content-Range", "")
    span, _, total = value.removeprefix("bytes ").partition("/")
    first = span.partition("-")[0]
    if not first.isdecimal() or not (total.isdecimal() or total == "*"):
        raise DownloadError(f"the server sent an invalid Content-Range: {value!r}")
    return int(first), None if total == "*" else int(total)


def _validator(response: http.client.HTTPResponse) -> str | None:
    """The strong ETag, or the time of the last change."""
    etag: str | None = response.headers.get("ETag")
    if etag is not None and not etag.startswith("W/"):
        return etag
    changed: str | None = response.headers.get("Last-Modified")
    return changed


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(f"{folder} has {free} bytes free, but {needed} are needed")


def _finish(partial: Path, path: Path, sha256: Collection[str]) -> str:
    """Check the hash and give the file its name; returns the hash.

    A wrong file is removed, so that the next call starts from the beginning.
    """
    actual = _sha256(partial)
    _state_path(partial).unlink(missing_ok=True)
    if sha256 and actual not in sha256:
        size = partial.stat().st_size
        partial.unlink()
        raise DownloadError(
            f"received {size} bytes with sha256 {actual}, expected {' or '.join(sha256)}"
        )
    partial.replace(path)
    sync_folder(path.parent)
    return actual


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state_path(partial: Path) -> Path:
    return partial.with_name(partial.name + ".json")


def _read_state(partial: Path) -> PartialFile | None:
    path = _state_path(partial)
    try:
        return msgspec.json.decode(path.read_bytes(), type=PartialFile)
    except (OSError, msgspec.DecodeError):
        return None


def _write_state(partial: Path, state: PartialFile) -> None:
    with atomic_write(_state_path(partial)) as file:
        file.write(msgspec.json.encode(state))

"""Read a pickle that holds only plain values: numbers, text, bytes, lists, tuples, sets and dicts.

A pickle is a program: it may name a function of any module and have it called. The refs files of RefCOCO need none of
that, so every way to name anything is refused and the error says what was named. The unpickler is the one of the
standard library in Python: the one in C reserves memory for the largest memo number that a file names, whatever its
size, and cannot refuse extension codes.
"""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from maskwise.errors import FormatError

MAX_BYTES = 2**27
"""The largest pickle that is read: 128 MB. The published refs files have up to some ten megabytes."""

ENCODINGS = ("ascii", "latin1")
"""Encodings of the text of Python 2, tried in order; text of Python 3 is always UTF-8."""


class _ForbiddenError(pickle.UnpicklingError):
    """The pickle wants something that is not a plain value."""


class _PlainUnpickler(pickle._Unpickler):
    """Refuses globals, persistent ids, extension codes and byte arrays."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise _ForbiddenError(f"it names the global {module_name}.{global_name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise _ForbiddenError("it names a persistent id")

    def get_extension(self, code: int) -> NoReturn:
        # The standard method may return an object that was registered before, without asking `find_class`.
        raise _ForbiddenError(f"it names the extension {code}")

    def _refuse_byte_array(self) -> NoReturn:
        # The standard method reserves as many bytes as the file claims.
        raise _ForbiddenError("it holds a byte array")

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **pickle._Unpickler.dispatch,
        pickle.BYTEARRAY8[0]: _refuse_byte_array,
    }


def read_plain_pickle(path: Path) -> Any:
    """The value of a pickle of protocol 0 to 5. Nothing is imported or called.

    FormatError for a file that names anything, that is damaged or too large, or that holds the same list or dict
    more than once, so often that walking through the value would take longer than reading the file.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FormatError(f"{path} has {size} bytes; at most {MAX_BYTES} are read")
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    value = _load(path, data)
    _check_sharing(path, value, limit=len(data))
    return value


def _load(path: Path, data: bytes) -> Any:
    for encoding in ENCODINGS:
        try:
            return _PlainUnpickler(io.BytesIO(data), encoding=encoding).load()
        except _ForbiddenError as error:
            raise FormatError(
                f"{path} is not a plain pickle: {error}. A pickle may run any program, so only numbers, text, lists "
                "and dicts are read; ask its authors for JSON"
            ) from None
        except UnicodeDecodeError:
            continue
        # A damaged pickle makes the unpickler raise almost anything.
        except Exception as error:
            raise FormatError(
                f"{path} is not a valid pickle: {type(error).__name__}: {str(error)[:200]}"
            ) from None
    raise FormatError(f"{path} holds text that is not in {' or '.join(ENCODINGS)}")


def _check_sharing(path: Path, value: Any, *, limit: int) -> None:
    """Refuse a value that is larger when walked through than the file that made it.

    Every item takes a byte of the file or more, unless the file names a list or dict again that it made before.
    """
    count = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            parts = list(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            parts = list(item)
        else:
            continue
        count += len(parts)
        if count > limit:
            raise FormatError(
                f"{path} is not a valid list of references: it repeats lists or dicts within each other"
            )
        pending += parts

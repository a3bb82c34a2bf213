"""JSON files as typed records: an invalid file is an error, an invalid record is a diagnostic."""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from maskwise.errors import FormatError
from maskwise.formats.diagnostics import Diagnostics

T = TypeVar("T")

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is not JSON, not UTF-8 or nested too deeply."""

NON_NUMBERS = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b', re.DOTALL)
"""Texts of JSON, and what some programs write for numbers that are none."""

MAX_BYTES = 2**33
"""The largest annotation file read. The largest published one has some hundred megabytes."""


def read_json(
    path: Path, type: type[T], *, encodings: tuple[str, ...] = ("utf-8",)
) -> T:
    """The file as `type`; fields declared `msgspec.Raw` stay bytes and are decoded record by record.

    A file that is not UTF-8 is tried in each further encoding, in order.
    """
    return decode_json(read_text(path, encodings), type, path)


def decode_json(text: bytes | msgspec.Raw, type: type[T], path: Path) -> T:
    """The text of a file as `type`; `path` is named in errors.

    NaN and Infinity, which JSON does not have, become texts: they make the record invalid that they are in.
    """
    try:
        return decoder(type).decode(_quote_non_numbers(text))
    except BROKEN as error:
        raise FormatError(
            f"{path} does not follow its format: {_reason(error)}"
        ) from None


def _quote_non_numbers(text: bytes | msgspec.Raw) -> bytes:
    """JSON with texts in place of NaN and Infinity outside of texts."""
    data = bytes(text)
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    return NON_NUMBERS.sub(_quote_match, data)


def _quote_match(match: re.Match[bytes]) -> bytes:
    word = match[0]
    return word if word.startswith(b'"') else b'"' + word + b'"'


def decode_record(
    raw: bytes | msgspec.Raw,
    type: type[T],
    *,
    diagnostics: Diagnostics,
    file: str,
    record: str,
) -> T | None:
    """One record, or None and a diagnostic if its fields have other types."""
    try:
        return decoder(type).decode(raw)
    except BROKEN as error:
        diagnostics.skip(
            "fields of another type",
            file=file,
            record=record,
            expected=type.__name__,
            found=_reason(error),
        )
        return None


def read_text(path: Path, encodings: tuple[str, ...] = ("utf-8",)) -> bytes:
    """The file's text as UTF-8 bytes, without a byte order mark.

    With UTF-8 alone the bytes are not checked here: decoding reports invalid bytes. Otherwise the first encoding that
    fits is used.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(
                f"{path} has {path.stat().st_size} bytes; at most {MAX_BYTES} are read"
            )
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    if encodings == ("utf-8",):
        return data.removeprefix(b"\xef\xbb\xbf")
    for encoding in encodings:
        try:
            return data.decode(encoding).removeprefix("\ufeff").encode()
        except UnicodeDecodeError:
            continue
    raise FormatError(f"{path} is not text in {' or '.join(encodings)}")


def decoder(type: type[T]) -> "msgspec.json.Decoder[T]":
    """The decoder of a type, created once."""
    if type not in _DECODERS:
        _DECODERS[type] = msgspec.json.Decoder(type)
    return _DECODERS[type]


_DECODERS: dict[Any, "msgspec.json.Decoder[Any]"] = {}


def _reason(error: Exception) -> str:
    return (
        "nested too deeply"
        if isinstance(error, RecursionError)
        else " ".join(str(error).split())
    )

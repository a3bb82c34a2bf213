"""JSON files as typed records: a file that is not JSON is an error, a record of other types is a problem."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from maskwise.errors import SourceError
from maskwise.formats.problems import Problems

T = TypeVar("T")

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises on text that is not JSON, not UTF-8 or nested without end."""

MAX_BYTES = 2**33
"""The largest annotation file read. The largest published one here has some hundred megabytes."""


def read_json(path: Path, type: type[T], *, encodings: tuple[str, ...] = ("utf-8",)) -> T:
    """The file as `type`; fields declared `msgspec.Raw` stay bytes, to be decoded record by record.

    A file that is not UTF-8 is tried in each further encoding, in order.
    """
    return decode_json(read_text(path, encodings), type, path)


def decode_json(text: bytes, type: type[T], path: Path) -> T:
    """As `read_json`, of text read before."""
    try:
        return decoder(type).decode(text)
    except BROKEN as error:
        raise SourceError(f"{path} does not follow its format: {_reason(error)}") from None


def read_yaml(path: Path, type: type[T]) -> T:
    """A YAML file as `type`."""
    try:
        return msgspec.convert(yaml.safe_load(read_text(path)), type)
    except (yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        raise SourceError(f"{path} does not follow its format: {' '.join(str(error).split())}") from None


def decode_record(raw: Any, type: type[T], *, problems: Problems, file: str, record: str) -> T | None:
    """One record, or None (and a problem) where its fields have other types."""
    try:
        return decoder(type).decode(raw)
    except BROKEN as error:
        problems.skip(
            "fields of another type", file=file, record=record, expected=type.__name__, found=_reason(error)
        )
        return None


def read_text(path: Path, encodings: tuple[str, ...] = ("utf-8",)) -> bytes:
    """The file's bytes as UTF-8, without a byte order mark."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SourceError(f"{path} has {path.stat().st_size} bytes; at most {MAX_BYTES} are read")
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    if encodings == ("utf-8",):
        return data.removeprefix(b"\xef\xbb\xbf")
    for encoding in encodings:
        try:
            return data.decode(encoding).removeprefix("\ufeff").encode()
        except UnicodeDecodeError:
            continue
    raise SourceError(f"{path} is not text in {' or '.join(encodings)}")


def decoder(type: type[T]) -> "msgspec.json.Decoder[T]":
    """The decoder of a type, made once."""
    if type not in _DECODERS:
        _DECODERS[type] = msgspec.json.Decoder(type)
    return _DECODERS[type]


_DECODERS: dict[Any, "msgspec.json.Decoder[Any]"] = {}


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)

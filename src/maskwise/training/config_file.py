"""Training configs: TOML files to structs. Messages name the file, the place in it, and what was expected there."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from maskwise.errors import ConfigError, StoreError, UnknownNameError
from maskwise.store import Dataset

Config = TypeVar("Config", bound=msgspec.Struct)

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NaturalInt = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; expected a TOML config such as configs/tiny.toml"
        ) from None
    except (msgspec.MsgspecError, UnicodeError, OSError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from None


def to_config(
    content: object, kind: type[Config], path: Path, *, table: str = ""
) -> Config:
    """The content of a config, or of a table of it, as a struct. path, table: where it comes from, for messages."""
    _check_keys(content, inspect.type_info(kind), path, table)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from None


def open_dataset(folder: str, *, images: str | None = None) -> Dataset:
    """A dataset folder that a config names."""
    try:
        return Dataset.open(folder, image_root=images)
    except StoreError as error:
        raise ConfigError(
            f"{error}; `maskwise read` and `maskwise build` make dataset folders"
        ) from None


def _check_keys(content: object, kind: inspect.Type, path: Path, place: str) -> None:
    """Refuse an unknown key at any depth. Values of another type than `kind` are left to msgspec."""
    match kind, content:
        case inspect.StructType(fields=fields), dict():
            known = {field.encode_name: field.type for field in fields}
            for key, value in content.items():
                if key not in known:
                    raise UnknownNameError(
                        "key",
                        key,
                        known,
                        where=f"{path}, {place}" if place else str(path),
                    )
                _check_keys(value, known[key], path, f"{place}.{key}".lstrip("."))
        case inspect.UnionType(types=types), _:
            for member in types:
                _check_keys(content, member, path, place)
        case inspect.DictType(value_type=inner), dict():
            for key, value in content.items():
                _check_keys(value, inner, path, f"{place}.{key}")
        case inspect.VarTupleType(item_type=inner), list():
            for number, value in enumerate(content):
                _check_keys(value, inner, path, f"{place}[{number}]")

"""Trainers by name: the key `model` of a training config selects one; it is imported only when it is needed.

A trainer is a module with the functions of `Trainer`. Its config is a msgspec struct with a field `model` that holds
its name, and `train` writes that config to `config.json` in the folder of the run, where `export` finds it.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec.structs import replace

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.registry import TRAINERS
from maskwise.store.atomic import atomic_write
from maskwise.training.config_file import read_toml

if TYPE_CHECKING:
    from maskwise.training.dry_run import DryRun

DEFAULT = "tiny"
"""The trainer of a config without the key `model`."""


class Trainer(Protocol):
    """The functions of a trainer's module."""

    def read_config(self, path: Path) -> Any:
        """A TOML file; MaskwiseError names a field that is missing, unknown or invalid."""

    def train(self, config: Any, folder: Path) -> list[Path]:
        """Train, or continue training, in `folder`; returns the files to use."""

    def export_run(
        self, run: Path, out: Path, checkpoint: int | str | None = None
    ) -> list[Path]:
        """Write the model of a run to `out`; returns the files.

        checkpoint: a step of the last stage, or "best"; by default the run has to be finished.
        """

    def dry_run(self, config: Any) -> "DryRun":
        """What `train` would do."""


def export_adapters(
    trainer: Trainer, run: Path, out: Path, checkpoint: int | str | None = None
) -> list[Path]:
    """Write a model with its adapters not merged; only some trainers have the function `export_adapters`."""
    export = getattr(trainer, "export_adapters", None)
    if export is None:
        raise MaskwiseError(
            f"{run} holds a model without adapters; export it without --keep-adapters"
        )
    files: list[Path] = export(run, out, checkpoint)
    return files


def trainer_of_config(path: Path) -> Trainer:
    """The trainer that a TOML config asks for."""
    return find_trainer(read_toml(path).get("model", DEFAULT), where=str(path))


def with_execution(config: msgspec.Struct, **options: Any) -> Any:
    """A config whose `execution` has these options, fields of EngineOptions.

    Options that are None count as not given. ConfigError if the trainer works in one
    process only, and options are given.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if not given:
        return config
    execution = getattr(config, "execution", None)
    if execution is None:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigError(
            f"{flags}: this model trains in one process; only vlm trains on several"
        )
    return replace(config, execution=replace(execution, **given))


def trainer_of_run(run: Path, code: str | None = None) -> Trainer:
    """The trainer that wrote a run's folder.

    code: the `package.module:attribute` that the user allows to run. A run may come from somebody else, so what its
    files name is imported only where the user says the same.
    """
    path = run / "config.json"
    if not path.exists():
        raise MaskwiseError(
            f"{run} has no config.json; expected a folder that `maskwise train` wrote"
        )
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise MaskwiseError(f"{path}: {error}") from None
    name = content.get("model", DEFAULT) if isinstance(content, dict) else None
    is_code = ":" in str(name) and name not in TRAINERS.names()
    if is_code and name != code:
        raise ConfigError(
            f"{path} names the trainer {name}, which is Python code; if you trust it, repeat with --trainer {name}"
        )
    return find_trainer(name, where=str(path))


def find_trainer(name: Any, *, where: str = "") -> Trainer:
    """The trainer of a name or of `package.module:attribute`.

    where: the file that names it. UnknownNameError lists the known ones,
    MissingDependencyError names the extra that is not installed.
    """
    trainer = TRAINERS.load(str(name), object, where=where)
    functions = ("read_config", "train", "export_run", "dry_run")
    missing = [function for function in functions if not hasattr(trainer, function)]
    if missing:
        raise ConfigError(f"trainer {name!r} lacks the function {', '.join(missing)}")
    return cast("Trainer", trainer)


def record_config(
    config: msgspec.Struct, folder: Path, *, ignored: Collection[str] = ()
) -> None:
    """Write the config of a run to its folder, or compare it with the one there: another config would mix two runs.

    ignored: fields that do not change the result.
    """
    path = folder / "config.json"
    new = json.loads(msgspec.json.encode(config))
    if not path.exists():
        with atomic_write(path) as file:
            file.write(json.dumps(new, indent=2).encode() + b"\n")
        return
    try:
        old = {"model": DEFAULT} | json.loads(path.read_bytes())
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{path} is damaged: {error}; restore it, or choose another --out"
        ) from None
    changed = [
        f"{key}: {old.get(key)} then, {new.get(key)} now"
        for key in {**old, **new}
        if old.get(key) != new.get(key) and key not in ignored
    ]
    if changed:
        raise MaskwiseError(
            f"{folder} holds a run with another config ({'; '.join(changed)}); choose another --out"
        )

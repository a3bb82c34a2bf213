"""`maskwise train` and `maskwise export`: networks from a config, then files that run without torch."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from maskwise.errors import MaskwiseError


def train(
    config: Annotated[
        Path,
        typer.Argument(help="A TOML file; configs/tiny.toml made the bundled model.", show_default=False),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the run; repeat the command to go on with it.")] = Path(
        "runs/train"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train the small model, from rendering its lessons to its ONNX files. What is done already is not done again.

    Curves are in OUT/*.jsonl and for TensorBoard in OUT/events. On several GPUs or machines: accelerate launch -m
    maskwise.cli.main train CONFIG --out OUT

    Example: maskwise train configs/tiny.toml --out runs/train
    """
    try:
        from maskwise.models import training  # noqa: PLC0415
    except ImportError as error:
        raise _lacking("train", error) from None
    settings = training.read_settings(config)
    with _writing(out):
        paths = training.train(settings, out)
    _say(paths, as_json)


def export(
    checkpoint: Annotated[
        Path, typer.Argument(help="The folder that `maskwise train` wrote.", show_default=False)
    ],
    *,
    out: Annotated[Path | None, typer.Option(help="Where to write.  [default: the same folder]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a trained model as ONNX files, which run without torch.

    Example: maskwise export runs/train --out weights
    """
    try:
        from maskwise.models import export as exporting  # noqa: PLC0415
    except ImportError as error:
        raise _lacking("export", error) from None
    with _writing(out or checkpoint):
        paths = exporting.export(checkpoint, out or checkpoint)
    _say(paths, as_json)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """What the disk refuses, as a message; all that was written before it stays."""
    try:
        yield
    except OSError as error:
        raise MaskwiseError(f"cannot write to {folder}: {error}") from error


def _lacking(command: str, error: ImportError) -> MaskwiseError:
    return MaskwiseError(
        f"maskwise {command} needs {error.name}, which the extra brings: pip install 'maskwise[train]'"
    )


def _say(paths: list[Path], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in paths]}))
    else:
        for path in paths:
            typer.echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")

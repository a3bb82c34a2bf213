"""`maskwise train` and `maskwise export`: train the bundled model's networks and write them as ONNX files."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from maskwise.errors import MaskwiseError
from maskwise.terminal import echo


def train(
    config: Annotated[
        Path,
        typer.Argument(
            help="A TOML file; configs/tiny.toml is that of the bundled model.", show_default=False
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the run; repeat the command to continue it.")] = Path(
        "runs/train"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train the small model, from rendering its scenes to its ONNX files. Finished stages are not repeated.

    Training curves are in OUT/*.jsonl, and for TensorBoard in OUT/events. On several GPUs or machines: accelerate
    launch -m maskwise.cli.main train CONFIG --out OUT

    Example: maskwise train configs/tiny.toml --out runs/train
    """
    try:
        from maskwise.models.tiny.train import config as settings  # noqa: PLC0415
        from maskwise.models.tiny.train import pipeline  # noqa: PLC0415
    except ImportError as error:
        raise _missing_extra("train", error) from None
    read = settings.read_config(config)
    with _writing(out):
        paths = pipeline.train(read, out)
    _print_paths(paths, as_json)


def export(
    checkpoint: Annotated[
        Path, typer.Argument(help="The folder that `maskwise train` wrote.", show_default=False)
    ],
    *,
    out: Annotated[Path | None, typer.Option(help="Output folder.  [default: the same folder]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a trained model as ONNX files, which run without torch.

    Example: maskwise export runs/train --out weights
    """
    try:
        from maskwise.models.tiny.train import export as exporter  # noqa: PLC0415
        from maskwise.models.tiny.train import pipeline  # noqa: PLC0415
    except ImportError as error:
        raise _missing_extra("export", error) from None
    trained = pipeline.load_trained(checkpoint)
    with _writing(out or checkpoint):
        paths = exporter.export(*trained, out or checkpoint)
    _print_paths(paths, as_json)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn file errors into a message; files written before the error stay."""
    try:
        yield
    except OSError as error:
        raise MaskwiseError(f"cannot write to {folder}: {error}") from error


def _missing_extra(command: str, error: ImportError) -> MaskwiseError:
    return MaskwiseError(
        f"maskwise {command} needs {error.name}, which the extra `train` installs: pip install 'maskwise[train]'"
    )


def _print_paths(paths: list[Path], as_json: bool) -> None:
    if as_json:
        echo(json.dumps({"files": [str(path) for path in paths]}))
    else:
        for path in paths:
            echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")

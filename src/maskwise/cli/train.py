"""`maskwise train` and `maskwise export`: train a model and write it in the form in which it is used."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import (
    AsJson,
    CpusPerWorker,
    EngineOfConfig,
    GpusPerWorker,
    RayAddress,
    TrackerNames,
    Workers,
    argument,
)
from maskwise.cli.signals import ending_on_signals
from maskwise.errors import ConfigError, MaskwiseError
from maskwise.terminal import echo


def train(
    config: Annotated[
        Path,
        argument(
            "CONFIG", "A TOML file; its key `model` names what is trained (configs/)."
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option(help="Folder of the run; repeat the command to continue it.")
    ] = Path("runs/train"),
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print parameters, memory, steps and samples; train nothing.",
        ),
    ] = False,
    engine: EngineOfConfig = None,
    workers: Workers = None,
    ray_address: RayAddress = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    track: TrackerNames = None,
    as_json: AsJson = False,
) -> None:
    """Train a model. Repeating the command continues an interrupted run, with the same result.

    Training curves are in OUT/*.jsonl, and for TensorBoard in OUT/events. On several GPUs or machines: --engine ray,
    or accelerate launch -m maskwise.cli.main train CONFIG --out OUT (docs/guides/training.md)

    Example: maskwise train configs/tiny.toml --out runs/train
    """
    from maskwise.training.progress import reporting
    from maskwise.training.trackers import tracking
    from maskwise.training.trainers import trainer_of_config, with_execution

    trainer = trainer_of_config(config)
    settings = trainer.read_config(config)
    with _naming(config):
        settings = with_execution(
            settings,
            engine=engine,
            workers=workers,
            ray_address=ray_address,
            cpus_per_worker=cpus_per_worker,
            gpus_per_worker=gpus_per_worker,
        )
    if dry_run:
        from maskwise.cli.dry_run_table import print_dry_run
        from maskwise.cli.output import print_json

        with _naming(config):
            plan = trainer.dry_run(settings)
        if as_json:
            print_json(plan)
        else:
            print_dry_run(plan)
        return
    with (
        ending_on_signals(out),
        tracking(track or []),
        _naming(config),
        _writing(out),
        _progress_bars() as show,
        reporting(show),
    ):
        paths = trainer.train(settings, out)
    _print_paths(paths, as_json)


def export(
    run: Annotated[Path, argument("RUN", "The folder that `maskwise train` wrote.")],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Output folder.", show_default="the same folder")
    ] = None,
    keep_adapters: Annotated[
        bool,
        typer.Option(
            "--keep-adapters",
            help="vlm: write LoRA adapters beside the weights, not merged.",
        ),
    ] = False,
    step: Annotated[
        int | None,
        typer.Option(
            help="Write this checkpoint; also while training runs.",
            show_default="the end of the run",
        ),
    ] = None,
    best: Annotated[
        bool,
        typer.Option(
            "--best", help="Write the checkpoint whose validation was best (gIoU)."
        ),
    ] = False,
    trainer: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:ATTRIBUTE",
            help="The code that trained it, if that is not in maskwise or a plug-in.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a trained model in the form in which it is used: ONNX files of `tiny` and `completion`, a folder of `vlm`.

    Example: maskwise export runs/train --out weights
    """
    from maskwise.training.trainers import export_adapters, trainer_of_run

    if step is not None and best:
        raise ConfigError("--step and --best name two checkpoints; give one of them")
    checkpoint = "best" if best else step
    run_trainer = trainer_of_run(run, trainer)
    target = out or run
    with _writing(target):
        if keep_adapters:
            paths = export_adapters(run_trainer, run, target, checkpoint)
        elif checkpoint is None:
            paths = run_trainer.export_run(run, target)
        else:
            paths = run_trainer.export_run(run, target, checkpoint)
    _print_paths(paths, as_json)


@contextlib.contextmanager
def _progress_bars() -> Iterator[Callable[[str, int, int, str], None]]:
    """A function that shows one bar per label, or lines in a log, on standard error:
    standard output may be read by a program.
    """
    from rich.progress import TaskID

    from maskwise.progress_bars import make_progress

    with make_progress(transient=False) as progress:
        bars: dict[str, TaskID] = {}

        def show(label: str, done: int, total: int, note: str) -> None:
            if label not in bars:
                bars[label] = progress.add_task(label, total=total, completed=done)
            description = f"{label}, {note}" if note else label
            progress.update(bars[label], completed=done, description=description)

        yield show


@contextlib.contextmanager
def _naming(config: Path) -> Iterator[None]:
    """Begin messages about the config with its file: trainers know its content only."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{config}: {error}") from None


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn file errors into a message; files written before the error stay."""
    try:
        yield
    except OSError as error:
        raise MaskwiseError(f"cannot write to {folder}: {error}") from error


def _print_paths(paths: list[Path], as_json: bool) -> None:
    from maskwise.cli.output import print_json

    if as_json:
        print_json({"files": [str(path) for path in paths]})
        return
    for path in paths:
        echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")

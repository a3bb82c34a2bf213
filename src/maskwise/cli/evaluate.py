"""`maskwise eval`: a model on a dataset, predicted, scored and reported, continued after any kill."""

import contextlib
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.progress import Task as Bar
from rich.text import Text

from maskwise.cli.options import (
    AsJson,
    CpusPerWorker,
    Engine,
    GpusPerWorker,
    ImagesFolder,
    ModelOptions,
    ModelSpec,
    ProtocolNames,
    RayAddress,
    ShowAll,
    Workers,
    argument,
)
from maskwise.cli.score_table import print_scores
from maskwise.console import make_console
from maskwise.engines import EngineOptions
from maskwise.harness.evaluate import evaluate
from maskwise.harness.predict import predict_dataset
from maskwise.harness.progress import Progress
from maskwise.harness.registry import parse_options
from maskwise.runs import PredictionSummary, Run
from maskwise.runs.files import REPORT
from maskwise.terminal import echo

SIGNALLED = 128
"""A program that a signal ends has this exit code plus the number of the signal."""


Dataset = Annotated[
    str, argument("DATASET", "A dataset folder, or `world`, which comes with maskwise.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1, help="Only this many images, drawn at random, with all their questions."
    ),
]
TeacherForced = Annotated[
    bool,
    typer.Option(
        "--teacher-forced",
        help="Give the model the true answer; `strict` refuses that.",
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="Ask the questions that failed once more."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.001, help="Seconds a question may take.", show_default="any time"
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="The run folder.", show_default="runs/DATASET-MODEL"),
]


def evaluate_model(
    dataset: Dataset,
    *,
    model: ModelSpec,
    model_option: ModelOptions = None,
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="Which images --limit draws.")] = 0,
    protocol: ProtocolNames = None,
    predict_only: Annotated[
        bool, typer.Option("--predict-only", help="Do not score.")
    ] = False,
    engine: Engine = "local",
    workers: Workers = None,
    ray_address: RayAddress = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    teacher_forced: TeacherForced = False,
    retry_failed: RetryFailed = False,
    timeout: Timeout = None,
    images: ImagesFolder = None,
    out: Out = None,
    show_all: ShowAll = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on a dataset: predict, score, and write a report.

    The run folder keeps all of it (docs/runs.md). Repeat the command to continue a run that was stopped.

    Example: maskwise eval world --model tiny --out runs/tiny
    """
    folder = out or Path("runs") / f"{_slug(dataset)}-{_slug(model)}"
    engine_options = EngineOptions(
        engine=engine,
        workers=workers,
        ray_address=ray_address,
        cpus_per_worker=cpus_per_worker,
        gpus_per_worker=gpus_per_worker,
    )
    arguments: dict[str, Any] = {
        "model": model,
        "data": dataset,
        "out": folder,
        "options": parse_options(model_option or []),
        "images": images,
        "limit": limit,
        "seed": seed,
        "teacher_forced": teacher_forced,
        "engine": engine_options,
        "timeout": timeout,
        "retry_failed": retry_failed,
    }
    with _progress_bar(folder, quiet=as_json) as callbacks:
        if predict_only:
            run = None
            summary = predict_dataset(**arguments, **callbacks)
        else:
            run = evaluate(**arguments, **callbacks, protocols=protocol)
            assert run.summary is not None
            summary = run.summary
    if as_json:
        _print_json(run, summary, folder)
    else:
        all_protocols = protocol is not None
        _print(run, summary, folder, all_protocols=all_protocols, show_all=show_all)
    _print_problems(run, summary)


@contextlib.contextmanager
def _progress_bar(folder: Path, *, quiet: bool) -> Iterator[dict[str, Any]]:
    """A progress bar, as arguments of `evaluate`. A signal ends the program and keeps what is done."""
    with _bars(quiet=quiet) as bars, _terminated_like_ctrl_c():
        bar = bars.add_task("opening", total=None, failed=0)
        try:
            yield {
                "on_progress": lambda progress: _show(bars, bar, progress),
                "on_stage": lambda stage: bars.update(bar, description=stage),
            }
        except KeyboardInterrupt as stop:
            bars.stop()
            echo(
                f"maskwise: stopped; {folder} keeps what is done: repeat the command to continue",
                err=True,
            )
            number = stop.number if isinstance(stop, _Terminated) else signal.SIGINT
            raise typer.Exit(SIGNALLED + number) from None


def _print_problems(run: Run | None, summary: PredictionSummary) -> None:
    """Warn about an unsuitable model; end with 1 if nothing was predicted or scored."""
    if run is not None and run.domain_notice is not None:
        echo(f"maskwise: warning: {run.domain_notice}", err=True)
    if summary.failed == summary.samples:
        echo(
            f"maskwise: all {summary.samples:,} questions failed; the first: {summary.first_error}",
            err=True,
        )
        raise typer.Exit(1)
    if run is not None and run.failure_notice is not None:
        echo(f"maskwise: {run.failure_notice}", err=True)
        raise typer.Exit(1)


class _Terminated(KeyboardInterrupt):
    """A signal asked the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP as Ctrl-C is handled: the model is closed, and what is done is kept."""

    def stop(number: int, _frame: object) -> None:
        raise _Terminated(number)

    numbers = [
        getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
    ]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _slug(text: str) -> str:
    """A name for a folder: what a path, a factory or an address ends with."""
    last = (
        Path(text.rstrip("/")).name if "://" not in text else text.partition("://")[2]
    )
    return re.sub(r"[^\w.-]+", "-", last).strip("-.")[:60] or "run"


class _Rate(ProgressColumn):
    """Questions per second."""

    def render(self, task: Bar) -> Text:
        return Text(
            f"{task.speed:.1f}/s" if task.speed else "", style="progress.data.speed"
        )


class _Failures(ProgressColumn):
    """How many questions failed, if any."""

    def render(self, task: Bar) -> Text:
        failed = task.fields["failed"]
        return Text(f"{failed} failed" if failed else "", style="yellow")


def _bars(*, quiet: bool) -> Bars:
    return Bars(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        _Failures(),
        console=make_console(stderr=True),
        transient=True,
        disable=quiet,
        refresh_per_second=4,
    )


def _show(bars: Bars, bar: Any, progress: Progress) -> None:
    bars.update(
        bar, completed=progress.done, total=progress.total, failed=progress.failed
    )


def _print_json(run: Run | None, summary: PredictionSummary, folder: Path) -> None:
    content = {
        "run": str(folder),
        "samples": summary.samples,
        "images": summary.images,
        "failed": summary.failed,
        "scores": None if run is None else run.scores,
    }
    echo(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def _print(
    run: Run | None,
    summary: PredictionSummary,
    folder: Path,
    *,
    all_protocols: bool,
    show_all: bool,
) -> None:
    console = make_console(highlight=False)
    if run is not None:
        print_scores(run, all_protocols=all_protocols, show_all=show_all)
    console.print(
        f"{summary.samples:,} questions about {summary.images:,} images in {escape(str(folder))}"
    )
    if summary.resumed:
        console.print(f"{summary.resumed:,} of them were predicted before")
    if 0 < summary.failed < summary.samples:
        console.print(
            f"[yellow]{summary.failed:,} failed; --retry-failed predicts them again[/]"
        )
    if run is not None:
        console.print(f"Open {escape(str(folder / REPORT))} in a browser.")

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
from maskwise.harness.evaluate import (
    EvaluationConfig,
    EvaluationSummary,
    ExecutionOptions,
    evaluate,
)
from maskwise.harness.progress import Progress
from maskwise.harness.registry import parse_options
from maskwise.report.report_page import run_to_html
from maskwise.report.run_data import RunPaths
from maskwise.runs import Run
from maskwise.runs.environment import available_cores
from maskwise.runs.files import REPORT, write_errors
from maskwise.store.atomic import atomic_write
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
    given = parse_options(model_option or [])
    config = EvaluationConfig(
        dataset, model, given, images, limit, seed, teacher_forced=teacher_forced
    )
    engine_options = EngineOptions(
        engine=engine,
        workers=workers,
        ray_address=ray_address,
        cpus_per_worker=cpus_per_worker,
        gpus_per_worker=gpus_per_worker,
    )
    execution = ExecutionOptions(engine_options, timeout, retry_failed=retry_failed)
    folder = out or Path("runs") / f"{_slug(dataset)}-{_slug(model)}"
    done = _evaluate(
        config,
        folder,
        execution,
        protocols=protocol,
        predict_only=predict_only,
        quiet=as_json,
    )
    if as_json:
        _print_json(done, folder)
    else:
        _print(done, folder, all_protocols=protocol is not None, show_all=show_all)
    _print_problems(done)


def _evaluate(
    config: EvaluationConfig,
    folder: Path,
    execution: ExecutionOptions,
    *,
    protocols: list[str] | None,
    predict_only: bool,
    quiet: bool,
) -> EvaluationSummary:
    """Evaluate with a progress bar and write the report. A signal ends the program and keeps what is done."""
    with _bars(quiet=quiet) as bars, _terminated_like_ctrl_c():
        bar = bars.add_task("opening", total=None, failed=0)
        try:
            done = evaluate(
                config,
                folder,
                execution=execution,
                protocols=protocols,
                predict_only=predict_only,
                threads=min(8, available_cores()),
                on_progress=lambda progress: _show(bars, bar, progress),
                on_stage=lambda stage: bars.update(bar, description=stage),
            )
            if done.run is not None:
                bars.update(bar, description="writing the report")
                _write_report(done.run, config.images)
        except KeyboardInterrupt as stop:
            bars.stop()
            echo(
                f"maskwise: stopped; {folder} keeps what is done: repeat the command to continue",
                err=True,
            )
            number = stop.number if isinstance(stop, _Terminated) else signal.SIGINT
            raise typer.Exit(SIGNALLED + number) from None
    return done


def _print_problems(done: EvaluationSummary) -> None:
    """Warn about an unsuitable model; end with 1 if nothing was predicted or scored."""
    if done.run is not None and done.run.domain_notice is not None:
        echo(f"maskwise: warning: {done.run.domain_notice}", err=True)
    if done.failed == done.samples:
        echo(
            f"maskwise: all {done.samples:,} questions failed; the first: {done.first_error}",
            err=True,
        )
        raise typer.Exit(1)
    if done.run is not None and done.run.failure_notice is not None:
        echo(f"maskwise: {done.run.failure_notice}", err=True)
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


def _write_report(run: Run, images: Path | None) -> None:
    assert run.folder is not None
    page = run_to_html(run, paths=RunPaths(images=images))
    with write_errors(run.folder), atomic_write(run.folder / REPORT) as file:
        file.write(page.encode())


def _print_json(done: EvaluationSummary, folder: Path) -> None:
    found = {
        "run": str(folder),
        "samples": done.samples,
        "images": done.images,
        "failed": done.failed,
        "scores": None if done.run is None else done.run.scores,
    }
    echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())


def _print(
    done: EvaluationSummary, folder: Path, *, all_protocols: bool, show_all: bool
) -> None:
    console = make_console(highlight=False)
    if done.run is not None:
        print_scores(done.run, all_protocols=all_protocols, show_all=show_all)
    console.print(
        f"{done.samples:,} questions about {done.images:,} images in {escape(str(folder))}"
    )
    if done.resumed:
        console.print(f"{done.resumed:,} of them were predicted before")
    if 0 < done.failed < done.samples:
        console.print(
            f"[yellow]{done.failed:,} failed; --retry-failed predicts them again[/]"
        )
    if done.run is not None:
        console.print(f"Open {escape(str(folder / REPORT))} in a browser.")

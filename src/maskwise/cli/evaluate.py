"""`maskwise eval`: a model on a dataset, predicted, scored and reported, continued after any kill."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwise.cli.hints import is_dataset
from maskwise.cli.options import (
    AsJson,
    CpusPerWorker,
    DatasetName,
    Engine,
    GpusPerWorker,
    ImagesFolder,
    ModelOptions,
    ModelSpec,
    ProtocolNames,
    RayAddress,
    ShowAll,
    Workers,
)
from maskwise.errors import MaskwiseError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.runs import PredictionSummary, Run

MAX_SLUG = 60
"""Characters of a dataset or model in the name of a run folder."""

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
    dataset: DatasetName,
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
    from maskwise.cli.eval_progress import evaluation_progress
    from maskwise.engines import EngineOptions
    from maskwise.harness.evaluate import evaluate
    from maskwise.harness.predict import predict_dataset
    from maskwise.harness.registry import parse_options

    if is_dataset(model) and not is_dataset(dataset):
        raise MaskwiseError(
            "`maskwise eval` takes the dataset first and the model as an option. "
            f"Did you mean `maskwise eval {model} --model {dataset}`?"
        )
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
    with evaluation_progress(folder, quiet=as_json) as callbacks:
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


def _print_problems(run: "Run | None", summary: "PredictionSummary") -> None:
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


def _slug(text: str) -> str:
    """A name for a folder: what a path, a factory or an address ends with."""
    if "://" in text:
        ending = text.partition("://")[2]
    else:
        ending = Path(text.rstrip("/")).name
    slug = re.sub(r"[^\w.-]+", "-", ending).strip("-.")
    return slug[:MAX_SLUG] or "run"


def _print_json(run: "Run | None", summary: "PredictionSummary", folder: Path) -> None:
    from maskwise.cli.output import print_json

    content = {
        "run": str(folder),
        "samples": summary.samples,
        "images": summary.images,
        "failed": summary.failed,
        "scores": None if run is None else run.scores,
    }
    print_json(content)


def _print(
    run: "Run | None",
    summary: "PredictionSummary",
    folder: Path,
    *,
    all_protocols: bool,
    show_all: bool,
) -> None:
    from rich.markup import escape

    from maskwise.cli.score_table import print_scores
    from maskwise.console import make_console
    from maskwise.runs.files import REPORT

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

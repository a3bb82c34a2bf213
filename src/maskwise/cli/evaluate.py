"""`maskwise eval`: a model on a dataset, predicted, scored and reported, continued after any kill."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwise.cli.hints import is_dataset
from maskwise.cli.options import (
    AsJson,
    CpusPerWorker,
    DatasetName,
    EngineOfEval,
    GpusPerWorker,
    ImagesFolder,
    ModelOptions,
    ModelSpec,
    ProtocolNames,
    RayAddress,
    ShowAll,
    TrackerNames,
    Workers,
    to_slug,
)
from maskwise.errors import MaskwiseError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.runs import PredictionSummary, Run

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
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="Stop at the first question that fails.")
]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Go on even if the first five questions fail."),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Print the traceback of the first failure."),
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
    engine: EngineOfEval = None,
    workers: Workers = None,
    ray_address: RayAddress = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    teacher_forced: TeacherForced = False,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    keep_going: KeepGoing = False,
    debug: Debug = False,
    timeout: Timeout = None,
    images: ImagesFolder = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            min=2,
            help="Evaluate this many times, and report the deviation between repeats.",
        ),
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option(
            "--vary",
            metavar="OPTION[=A,B,...]",
            help="An option of the model that differs between repeats: seed, template, batch_size=1,4,16.",
        ),
    ] = None,
    include_repeats: Annotated[
        bool,
        typer.Option(
            "--include-repeats",
            help="With --repeat: intervals that contain the deviation between repeats.",
        ),
    ] = False,
    out: Out = None,
    track: TrackerNames = None,
    show_all: ShowAll = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on a dataset: predict, score, and write a report.

    The run folder keeps all of it (docs/reference/runs.md). Repeat the command to continue a run that was stopped.

    Example: maskwise eval world --model tiny --out runs/tiny
    """
    from maskwise import logs
    from maskwise.cli.output import print_json
    from maskwise.cli.repeat_table import print_repeats
    from maskwise.cli.signals import ending_on_signals
    from maskwise.engines import EngineOptions
    from maskwise.harness.evaluate import evaluate
    from maskwise.harness.predict import predict_dataset
    from maskwise.harness.registry import parse_options
    from maskwise.harness.repeats import evaluate_repeatedly, parse_variation
    from maskwise.integrations.tracked_run import check_trackers, track_run

    if is_dataset(model) and not is_dataset(dataset):
        raise MaskwiseError(
            "`maskwise eval` takes the dataset first and the model as an option. "
            f"Did you mean `maskwise eval {model} --model {dataset}`?"
        )
    check_trackers(track or [])
    folder = out or Path("runs") / f"{to_slug(dataset)}-{to_slug(model)}"
    # Several models on one machine run on a Ray that is started here.
    several = workers is not None and workers > 1
    engine_options = EngineOptions(
        engine=engine or ("ray" if several else "local"),
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
        "fail_fast": fail_fast,
        "keep_going": keep_going,
        "progress": not as_json,
    }
    if debug:
        logs.configure("debug")
    if repeat is None and (vary is not None or include_repeats):
        raise MaskwiseError(
            "--vary and --include-repeats are about repeats: say how many with --repeat N"
        )
    if repeat is not None:
        if predict_only or track:
            raise MaskwiseError(
                "--repeat scores every repeat and tracks none; omit --predict-only and --track"
            )
        variation = parse_variation(vary, repeat)
        with ending_on_signals(folder):
            repeats = evaluate_repeatedly(
                **arguments, protocols=protocol, repeats=repeat, vary=variation
            )
        if as_json:
            print_json(repeats)
        else:
            print_repeats(repeats, show_all=show_all, include_repeats=include_repeats)
        return
    with ending_on_signals(folder):
        if predict_only:
            run = None
            summary = predict_dataset(**arguments)
        else:
            run = evaluate(**arguments, protocols=protocol)
            assert run.summary is not None
            summary = run.summary
            track_run(run, track or [])
    if as_json:
        _print_json(run, summary, folder)
    else:
        all_protocols = protocol is not None
        _print(run, summary, folder, all_protocols=all_protocols, show_all=show_all)
    _print_problems(run)


def _print_problems(run: "Run | None") -> None:
    """Warn about an unsuitable model; end with 1 if nothing was scored."""
    if run is None:
        return
    if run.domain_notice is not None:
        echo(f"maskwise: warning: {run.domain_notice}", err=True)
    if run.failure_notice is not None and not run.has_scores:
        echo(f"maskwise: {run.failure_notice}", err=True)
        raise typer.Exit(1)


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
    from maskwise.terminal import count_noun

    console = make_console(highlight=False)
    if run is not None:
        print_scores(run, all_protocols=all_protocols, show_all=show_all)
    questions = count_noun(summary.samples, "question")
    images = count_noun(summary.images, "image")
    console.print(f"{questions} about {images} in {escape(str(folder))}")
    if summary.resumed:
        console.print(f"{summary.resumed:,} of them were predicted before")
    if 0 < summary.failed < summary.samples:
        console.print(
            f"[yellow]{summary.failed:,} failed; --retry-failed predicts them again[/]"
        )
    if run is not None:
        console.print(f"Open {escape(str(folder / REPORT))} in a browser.")

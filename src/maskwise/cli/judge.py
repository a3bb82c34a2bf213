"""`maskwise judge`: the answers of a run, judged offline or by a language model, and the judge measured by people."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.cli.language_models import (
    BATCH_SIZE,
    BaseUrl,
    Batch,
    Budget,
    Concurrency,
    DryRun,
    EffortOption,
    PriceList,
    RetryFailed,
    ThinkingTokens,
    Timeout,
    choose_thinking,
    open_priced_client,
)
from maskwise.cli.lazy import DefaultGroup, HelpfulCommand
from maskwise.cli.options import AsJson, ImagesFolder, RunFolder, argument
from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.terminal import count_noun, echo

if TYPE_CHECKING:
    from rich.progress import Progress

    from maskwise.judging.language_model import JudgeModel
    from maskwise.report.run_data import RunPaths
    from maskwise.writers import SendLimits

ANSWERS = "answers"


class _AnswersByDefault(DefaultGroup):
    """`maskwise judge RUN` is `maskwise judge answers RUN`."""

    default = ANSWERS


app = typer.Typer(
    cls=_AnswersByDefault,
    help="Judge the answers of a run. `maskwise judge RUN` is `maskwise judge answers RUN`.\n\n"
    "Example: maskwise judge runs/mine",
    no_args_is_help=True,
)

JudgeName = Annotated[
    str,
    typer.Option(
        "--judge",
        help="offline, anthropic/MODEL, openai/MODEL, or a judge of a plug-in (`maskwise ls judges`).",
    ),
]


@app.command(ANSWERS, cls=HelpfulCommand)
def judge_answers(
    run: RunFolder,
    dataset: Annotated[
        Path | None, argument("[DATASET]", "The dataset, if it was moved.")
    ] = None,
    *,
    judge: JudgeName = "offline",
    pairwise: Annotated[
        Path | None,
        typer.Option(
            help="Another run on the same dataset: judge which of the two answers better."
        ),
    ] = None,
    text_only: Annotated[
        bool,
        typer.Option("--text-only", help="Send no image, for models that read text."),
    ] = False,
    base_url: BaseUrl = None,
    budget: Budget = None,
    prices: PriceList = None,
    dry_run: DryRun = False,
    batch: Batch = False,
    concurrency: Concurrency = 8,
    timeout: Timeout = 600.0,
    effort: EffortOption = None,
    thinking_tokens: ThinkingTokens = None,
    retry_failed: RetryFailed = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="The model's replies, which are not paid for twice.",
            show_default="judge.ledger.sqlite in the run folder",
        ),
    ] = None,
    images: ImagesFolder = None,
    as_json: AsJson = False,
) -> None:
    """Judge the answers of a run: correct, grounded, complete, hallucinated, each with a reason.

    A language model is asked only about answers that names, synonyms and kinds do not settle. The verdicts go into the
    run folder and its report.

    Example: maskwise judge answers runs/mine --judge openai/gpt-5-mini --budget 2
    """
    from maskwise.cli.judge_table import print_judgments, print_pairs
    from maskwise.cli.output import print_json
    from maskwise.judging.judge_run import judge as judge_run
    from maskwise.judging.pairwise import judge_pairs
    from maskwise.progress_bars import make_progress
    from maskwise.report.judgment_text import summarize_verdicts
    from maskwise.report.run_data import RunPaths
    from maskwise.writers import SendLimits

    paths = RunPaths(truth=dataset, images=images)
    limits = SendLimits(
        budget=budget,
        concurrency=concurrency,
        batch_size=BATCH_SIZE if batch else 0,
        timeout=timeout,
        retry_failed=retry_failed,
    )
    with make_progress(quiet=as_json or dry_run) as progress, ExitStack() as stack:
        model = _open_model(
            judge,
            base_url,
            prices=prices,
            limits=limits,
            thinking=(effort, thinking_tokens),
            needs_key=not dry_run,
            with_image=not text_only,
            progress=progress,
        )
        if model is not None:
            stack.callback(model.client.close)
        if dry_run:
            _print_estimate(run, pairwise, model, paths, as_json=as_json)
            return
        if pairwise is None:
            judgments = judge_run(run, model or judge, ledger=ledger, paths=paths)
        else:
            pairs = judge_pairs(
                run, pairwise, model or judge, ledger=ledger, paths=paths
            )
    if as_json:
        print_json(summarize_verdicts(judgments if pairwise is None else pairs))
    elif pairwise is None:
        print_judgments(judgments, run)
    else:
        print_pairs(pairs, run)


@app.command("calibrate", cls=HelpfulCommand)
def calibrate_judge(
    run: RunFolder,
    *,
    verdicts: Annotated[
        Path,
        typer.Option(
            help="People's verdicts, JSON lines of `maskwise review` or your own."
        ),
    ],
    judge: JudgeName = "offline",
    as_json: AsJson = False,
) -> None:
    """Compare a judge with people's verdicts: agreement, kappa, and the shares that people would find.

    People judge some answers, drawn at random; the judge has judged all. docs/guides/judging.md describes the file.

    Example: maskwise judge calibrate runs/mine --verdicts verdicts.jsonl --judge openai/gpt-5-mini
    """
    from maskwise.cli.judge_table import print_calibration
    from maskwise.cli.output import print_json
    from maskwise.judging.calibration import calibrate
    from maskwise.report.judgment_text import summarize_verdicts

    judgments = calibrate(run, verdicts, judge)
    if as_json:
        print_json(summarize_verdicts(judgments))
    else:
        print_calibration(judgments, run)


def _open_model(
    judge: str,
    base_url: str | None,
    *,
    prices: Path | None,
    limits: "SendLimits",
    thinking: tuple[str | None, int | None],
    needs_key: bool,
    with_image: bool,
    progress: "Progress",
) -> "JudgeModel | None":
    """The language model of `provider/model`; None for a judge of the registry. thinking: effort and tokens."""
    from maskwise.judging.language_model import FREE, JudgeModel
    from maskwise.registry import JUDGES, WRITERS

    provider, _, name = judge.partition("/")
    if not name:
        if provider in WRITERS.names():
            raise MaskwiseError(
                f"--judge {provider} needs a model: --judge {provider}/MODEL"
            )
        return None
    if provider not in WRITERS.names() and ":" not in provider:
        known = [*JUDGES.names(), *(f"{item}/MODEL" for item in WRITERS.names())]
        raise UnknownNameError("judge", judge, known)
    client, price = open_priced_client(
        provider,
        name,
        base_url,
        prices=prices,
        budget=limits.budget,
        needs_key=needs_key,
    )
    task = progress.add_task("judging", total=None)
    return JudgeModel(
        client,
        price,
        limits,
        with_image=with_image,
        thinking=choose_thinking(*thinking, price or FREE),
        begin=lambda count: progress.update(task, total=count),
        done=lambda count: progress.advance(task, count),
    )


def _print_estimate(
    run: Path,
    pairwise: Path | None,
    model: "JudgeModel | None",
    paths: "RunPaths",
    *,
    as_json: bool,
) -> None:
    """Print what judging would send and cost."""
    from maskwise.cli.output import print_json
    from maskwise.judging.judge_run import LEDGER, estimate_judging, load_cases
    from maskwise.judging.pairwise import estimate_pairs, load_pairs
    from maskwise.runs import load_run

    if model is None:
        raise MaskwiseError(
            "--dry-run estimates what a language model costs; this judge costs nothing"
        )
    opened = load_run(run)
    if pairwise is None:
        cases = load_cases(opened, paths)
        count = len(cases)
        estimate = estimate_judging(cases, model)
    else:
        pairs = load_pairs(opened, load_run(pairwise), paths)
        count = len(pairs)
        estimate = estimate_pairs(pairs, model)
    if as_json:
        print_json({"questions": count, **estimate._asdict()})
        return
    cost = (
        "at no known price" if model.price is None else f"about ${estimate.cost:,.2f}"
    )
    thinking = (
        f" ({estimate.thinking_tokens:,} of them to think, at most)"
        if estimate.thinking_tokens
        else ""
    )
    echo(
        f"{count_noun(count, 'question')}, {count_noun(estimate.calls, 'call')} about those that words do not settle, "
        f"{estimate.input_tokens:,} input and {estimate.output_tokens:,} output tokens{thinking}: {cost} with "
        f"{model.client.model}. Nothing was sent."
    )
    if (run / LEDGER).exists():
        echo(
            f"What {run / LEDGER} already holds is not sent again and not subtracted here."
        )

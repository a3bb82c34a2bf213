"""`maskwise build RECIPE DATASET`: make benchmark data from annotated images."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from maskwise.cli.hints import refuse_swapped
from maskwise.cli.language_models import (
    BATCH_SIZE,
    BaseUrl,
    Batch,
    Budget,
    Concurrency,
    DryRun,
    EffortOption,
    LedgerOption,
    PriceList,
    RetryFailed,
    ThinkingTokens,
    Timeout,
    choose_thinking,
    open_priced_client,
)
from maskwise.cli.lazy import HelpfulCommand, HelpfulGroup
from maskwise.cli.options import (
    SEVERAL,
    AsJson,
    CpusPerWorker,
    DatasetName,
    Engine,
    GpusPerWorker,
    ImagesFolder,
    Overwrite,
    RayAddress,
    Workers,
    argument,
)
from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.builder.build_summary import BuildSummary, WriterUsage
    from maskwise.builder.cocoa_cls import MatchingSummary
    from maskwise.builder.language_model import LanguageModel
    from maskwise.builder.pipeline import BuildOptions
    from maskwise.builder.recipe import Recipe
    from maskwise.store import Dataset

MAX_REASONS = 5
"""Reasons of failed requests that are printed; build.json has all."""

EXAMPLES = {
    "amodal-reason-seg": "cocoa_val d2sa_val --out ars_val",
    "r2sm": "cocoa_val --out r2sm_val --writer anthropic --model claude-sonnet-5",
    "mmr": "paco_val --out mmr_val --writer openai --model gpt-5-mini --budget 20",
}
"""What follows the name of a recipe in the example of its help."""

OutOption = Annotated[Path, typer.Option(help="Folder of the new dataset.")]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Read this many images only.")
]


class RecipeGroup(HelpfulGroup):
    """One subcommand per recipe, built-in or of a plug-in; `package.module:attribute` is understood too."""

    def __init__(self, **attributes: Any) -> None:
        from maskwise.registry import RECIPES

        super().__init__(**attributes)
        for name, description in RECIPES.list().items():
            self.add_command(_recipe_command(name, description))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The recipe that is named first; a hint where the dataset comes first."""
        name = args[0]
        if name not in self.commands:
            if ":" in name:
                self.add_command(_recipe_command(name, "the samples of a recipe"))
            elif len(args) > 1:
                refuse_swapped(
                    "build",
                    "RECIPE DATASET",
                    name,
                    args[1],
                    when=args[1] in self.commands,
                )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=RecipeGroup,
    help="Build a dataset from annotated images: `maskwise build RECIPE DATASET`.\n\n"
    "Example: maskwise build r2sm world --out r2sm_world",
    no_args_is_help=True,
    subcommand_metavar="RECIPE DATASET [OPTIONS]",
)


def _recipe_command(name: str, description: str) -> TyperCommand:
    """The command of a recipe that writes questions."""
    program = typer.Typer(add_completion=False)
    example = EXAMPLES.get(name, "cocoa_val --out questions_val")
    help = f"Write {description}.\n\nExample: maskwise build {name} {example}"
    program.command(name, help=help, cls=HelpfulCommand)(build_with_recipe)
    command = typer.main.get_command(program)
    assert isinstance(command, TyperCommand)
    return command


def build_with_recipe(
    context: typer.Context,
    dataset: Annotated[
        list[str],
        argument(
            "DATASET...",
            "Dataset folders, releases or names; several are merged first, in OUT.sources.",
        ),
    ],
    *,
    out: OutOption,
    writer: Annotated[
        str,
        typer.Option(
            help="Who writes: grammar (offline), anthropic, openai for any such endpoint, or a plug-in."
        ),
    ] = "grammar",
    model: Annotated[str | None, typer.Option(help="The language model.")] = None,
    base_url: BaseUrl = None,
    budget: Budget = None,
    prices: PriceList = None,
    dry_run: DryRun = False,
    batch: Batch = False,
    concurrency: Concurrency = 8,
    timeout: Timeout = 600.0,
    effort: EffortOption = None,
    thinking_tokens: ThinkingTokens = None,
    ledger: LedgerOption = None,
    retry_failed: RetryFailed = False,
    no_blind_check: Annotated[
        bool,
        typer.Option(
            "--no-blind-check",
            help="Do not ask the model which questions it answers without the image.",
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Let the model pick the regions without the answer; flag where it picks others.",
        ),
    ] = False,
    verifier: Annotated[
        str | None,
        typer.Option(
            help="Verify with another model: PROVIDER/MODEL, such as openai/gpt-5-mini."
        ),
    ] = None,
    filter: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Also apply this filter, of a plug-in or package.module:attribute. {SEVERAL}"
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help=f"Reject images that are also in this dataset. {SEVERAL}"),
    ] = None,
    images: ImagesFolder = None,
    limit: LimitOption = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed: other words of the grammar.")
    ] = 0,
    engine: Engine = "local",
    workers: Workers = None,
    ray_address: RayAddress = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write questions and answers. The name of the command is that of the recipe."""
    from maskwise.builder.pipeline import BuildOptions
    from maskwise.builder.recipes import find_recipe
    from maskwise.engines import EngineOptions

    recipe = find_recipe(str(context.info_name))
    data = _open_sources(dataset, images, out)
    image_count = _count_images(data, limit)

    def open_model(provider: str, name: str | None) -> "LanguageModel | None":
        return _open_model(
            provider,
            name,
            # An address belongs to the provider that it was given for.
            base_url if writer in (provider, "grammar") else None,
            prices=prices,
            budget=budget,
            batch=batch,
            concurrency=concurrency,
            timeout=timeout,
            effort=effort,
            thinking_tokens=thinking_tokens,
            ledger=ledger,
            retry_failed=retry_failed,
            check_blind=not no_blind_check,
            needs_key=not dry_run,
        )

    language_model = open_model(writer, model)
    verifying_model = language_model if verify else None
    if verifier is not None:
        provider, _, name = verifier.partition("/")
        if not name:
            raise MaskwiseError(
                f"--verifier {verifier}: expected PROVIDER/MODEL, such as openai/gpt-5-mini"
            )
        verifying_model = open_model(provider, name)
    if (verify or verifier) and verifying_model is None:
        raise MaskwiseError(
            "the grammar asks only what it has checked itself; --verifier PROVIDER/MODEL lets a language model verify"
        )
    if dry_run:
        _print_estimate(
            recipe,
            data,
            image_count,
            (language_model, verifying_model),
            out=out,
            as_json=as_json,
        )
        return
    options = BuildOptions(
        limit=limit,
        seed=seed,
        engine=EngineOptions(
            engine=engine,
            workers=workers,
            ray_address=ray_address,
            cpus_per_worker=cpus_per_worker,
            gpus_per_worker=gpus_per_worker,
        ),
        leaked=_find_leaked(data, against or []),
        more_filters=tuple(filter or ()),
    )
    _run(
        recipe,
        data,
        out,
        options,
        models=(language_model, verifying_model),
        image_count=image_count,
        overwrite=overwrite,
        as_json=as_json,
    )


@app.command("occlude", cls=HelpfulCommand)
def build_occluded(
    dataset: DatasetName,
    *,
    out: OutOption,
    min_rate: Annotated[
        float, typer.Option(help="Lowest occlusion rate of a target.")
    ] = 0.1,
    max_rate: Annotated[
        float, typer.Option(help="Highest occlusion rate of a target.")
    ] = 0.6,
    per_image: Annotated[
        int, typer.Option(min=1, help="Composites per image at most.")
    ] = 1,
    min_area: Annotated[
        float, typer.Option(help="Smallest target, as a share of its image.")
    ] = 0.005,
    cutouts: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET",
            help="Paste objects of this dataset, not those of DATASET.",
            show_default=False,
        ),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET",
            help="Paste the targets into images of this dataset first.",
            show_default=False,
        ),
    ] = None,
    any_context: Annotated[
        bool,
        typer.Option(
            "--any-context",
            help="Paste any object in any size that fits: more composites, many of them absurd.",
        ),
    ] = False,
    images: ImagesFolder = None,
    limit: LimitOption = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed gives other composites.")
    ] = 0,
    engine: Engine = "local",
    workers: Workers = None,
    ray_address: RayAddress = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make amodal data with exact ground truth: paste real objects in front of completely visible ones.

    Every composite is paired with its untouched original.

    Example: maskwise build occlude coco_val --out coco_val_occluded --per-image 2
    """
    from maskwise.builder.occlude import OccludeOptions, occlude
    from maskwise.cli.output import print_json
    from maskwise.datasets import load_dataset
    from maskwise.engines import EngineOptions
    from maskwise.progress_bars import make_progress
    from maskwise.store.folder import refuse_source_folder

    options = OccludeOptions(
        rates=(min_rate, max_rate),
        per_image=per_image,
        min_area=min_area,
        seed=seed,
        any_context=any_context,
    )
    data = load_dataset(dataset, images=images)
    other_cutouts = None if cutouts is None else load_dataset(cutouts)
    other_background = None if background is None else load_dataset(background)
    canvas = data if other_background is None else other_background
    sources = [data, other_cutouts, other_background]
    refuse_source_folder(out, [source.path for source in sources if source is not None])
    with make_progress(quiet=as_json) as progress:
        task = progress.add_task("images", total=_count_images(canvas, limit))
        counts = occlude(
            data,
            out,
            options,
            cutouts=other_cutouts,
            background=other_background,
            limit=limit,
            engine=EngineOptions(
                engine=engine,
                workers=workers,
                ray_address=ray_address,
                cpus_per_worker=cpus_per_worker,
                gpus_per_worker=gpus_per_worker,
            ),
            overwrite=overwrite,
            done=lambda: progress.advance(task),
        )
    if as_json:
        print_json({"dataset": str(out), **counts})
        return
    echo(
        f"{out}: {counts['pairs']} pairs of original and composite from {counts['images']} images "
        f"({counts['without_target']} without a completely visible object, "
        f"{counts['without_occluder']} without an occluder that fits)"
    )
    if counts["unreadable"]:
        echo(f"  {counts['unreadable']:,} images cannot be read (maskwise validate)")


@app.command("cocoa-cls", cls=HelpfulCommand)
def build_cocoa_cls(
    dataset: DatasetName,
    *,
    instances: Annotated[
        str, typer.Option(help="The COCO instances of the same images, a dataset.")
    ],
    out: OutOption,
    min_iou: Annotated[
        float,
        typer.Option(help="Smallest IoU of a visible mask and its instance."),
    ] = 0.75,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Rebuild COCOA-cls: the regions of COCOA that are COCO instances, with COCO's categories.

    OUT/matches.jsonl says for every region of COCOA what it matched, OUT/matching.json counts.

    Example: maskwise build cocoa-cls cocoa_val --instances coco_val2014 --out cocoa_cls_val
    """
    from maskwise.builder.cocoa_cls import rebuild_cocoa_cls
    from maskwise.cli.output import print_json
    from maskwise.datasets import load_dataset
    from maskwise.progress_bars import make_progress

    cocoa = load_dataset(dataset)
    with make_progress(quiet=as_json) as progress:
        task = progress.add_task("images", total=len(cocoa.images))
        summary = rebuild_cocoa_cls(
            cocoa,
            load_dataset(instances),
            out,
            min_iou=min_iou,
            overwrite=overwrite,
            done=lambda: progress.advance(task),
        )
    if as_json:
        print_json(summary)
    else:
        _print_matching(summary)


def _print_matching(summary: "MatchingSummary") -> None:
    echo(
        f"{summary.out}: {summary.matched:,} of {summary.regions:,} regions match one of {summary.instances:,} "
        f"instances with IoU {summary.min_iou:g} or more, in {summary.images_kept:,} of {summary.images:,} images"
    )
    if summary.published is not None:
        echo(f"  published: {summary.published:,} objects in this split")
    if summary.unknown_images:
        echo(f"  {summary.unknown_images:,} images have no instances under their id")
    if summary.taken:
        echo(f"  {summary.taken:,} regions: their instance fits another region better")
    for band, count in summary.best_iou.items():
        echo(f"  best IoU {band}: {count:,} regions")
    common = list(summary.categories.items())[:10]
    listed = ", ".join(f"{name} {count:,}" for name, count in common)
    echo(f"  {len(summary.categories):,} categories, most frequent: {listed}")


def _open_sources(names: list[str], images: Path | None, out: Path) -> "Dataset":
    """The dataset to build from; several are merged first, in the folder OUT.sources."""
    from maskwise.builder.merge import merge_datasets
    from maskwise.datasets import load_dataset
    from maskwise.store import Dataset
    from maskwise.store.folder import refuse_source_folder

    if len(names) == 1:
        return load_dataset(names[0], images=images)
    datasets = [load_dataset(name) for name in names]
    refuse_source_folder(out, [dataset.path for dataset in datasets])
    if images is not None:
        raise MaskwiseError(
            "--images is the folder of one dataset: merge several datasets first (maskwise merge)"
        )
    merged = out.with_name(f"{out.name}.sources")
    merge_datasets(datasets, merged, overwrite=True)
    return Dataset.open(merged)


def _count_images(dataset: "Dataset", limit: int | None) -> int:
    """How many images are worked on."""
    total = len(dataset.images)
    return total if limit is None else min(limit, total)


def _open_model(
    writer: str,
    model: str | None,
    base_url: str | None,
    *,
    prices: Path | None,
    budget: float | None,
    batch: bool,
    concurrency: int,
    timeout: float,
    effort: str | None,
    thinking_tokens: int | None,
    ledger: Path | None,
    retry_failed: bool,
    check_blind: bool,
    needs_key: bool,
) -> "LanguageModel | None":
    """The language model of a writer; None for the grammar."""
    from maskwise.builder.language_model import LanguageModel
    from maskwise.registry import WRITERS
    from maskwise.writers import SendLimits
    from maskwise.writers.cost import ModelPrice, load_prices

    if writer == "grammar":
        return None
    if writer not in WRITERS.names() and ":" not in writer:
        raise UnknownNameError("writer", writer, [*WRITERS.names(), "grammar"])
    if model is None:
        raise MaskwiseError(f"--writer {writer} needs --model NAME")
    client, price = open_priced_client(
        writer,
        model,
        base_url,
        prices=prices,
        budget=budget,
        needs_key=needs_key,
    )
    limits = SendLimits(
        budget=budget,
        concurrency=concurrency,
        batch_size=BATCH_SIZE if batch else 0,
        timeout=timeout,
        retry_failed=retry_failed,
    )
    known_price = price or ModelPrice(input=0.0, output=0.0)
    return LanguageModel(
        client,
        known_price,
        limits,
        check_blind,
        thinking=choose_thinking(effort, thinking_tokens, known_price),
        ledger=ledger,
        price_date=load_prices(prices).as_of,
    )


def _find_leaked(dataset: "Dataset", others: list[str]) -> dict[str, str] | None:
    """Images of a dataset that are also in others or in another split; None if there is nothing to compare with."""
    from maskwise.builder.image_hash import (
        find_leaked_images,
        hash_dataset,
        image_splits,
    )
    from maskwise.datasets import load_dataset

    splits = image_splits(dataset)
    if not others and len(set(splits.values())) < 2:
        return None
    hashes = {name: hash_dataset(load_dataset(name)) for name in others}
    return find_leaked_images(hash_dataset(dataset), splits=splits, others=hashes)


def _print_estimate(
    recipe: "Recipe",
    dataset: "Dataset",
    image_count: int,
    models: "tuple[LanguageModel | None, LanguageModel | None]",
    *,
    out: Path,
    as_json: bool,
) -> None:
    """Print what a build would send and cost. models: writer and verifier."""
    from maskwise.builder.language_model import estimate_build, ledger_path
    from maskwise.cli.output import print_json

    model, verifier = models
    asked = model or verifier
    if asked is None:
        raise MaskwiseError(
            "--dry-run estimates what a language model costs; the grammar costs nothing"
        )
    estimate = estimate_build(
        recipe, dataset, range(image_count), model=model, verifier=verifier
    )
    if as_json:
        print_json(estimate._asdict())
        return
    thinking = (
        f" ({estimate.thinking_tokens:,} of them to think, at most)"
        if estimate.thinking_tokens
        else ""
    )
    echo(
        f"{estimate.calls:,} calls about {image_count:,} images, {estimate.input_tokens:,} input and "
        f"{estimate.output_tokens:,} output tokens{thinking}: about ${estimate.cost:,.2f} with {asked.client.model}. "
        "Nothing was sent."
    )
    ledger = ledger_path(out, asked)
    if ledger.exists():
        echo(f"What {ledger} already holds is not sent again and not subtracted here.")


def _run(
    recipe: "Recipe",
    dataset: "Dataset",
    out: Path,
    options: "BuildOptions",
    *,
    models: "tuple[LanguageModel | None, LanguageModel | None]",
    image_count: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Build with a progress bar and print the summary. models: writer and verifier."""
    from maskwise.builder.pipeline import build_dataset, is_finished
    from maskwise.cli.output import print_json
    from maskwise.language.intent import classify_intent
    from maskwise.progress_bars import make_progress

    model, verifier = models
    finished = not overwrite and is_finished(
        recipe, dataset, out, options, model=model, verifier=verifier
    )
    with ExitStack() as stack:
        for opened in filter(None, models):
            stack.callback(opened.client.close)
        progress = stack.enter_context(make_progress(quiet=finished))
        task = progress.add_task("images", total=image_count)

        def show(images: int, cost: float) -> None:
            description = f"images, ${cost:,.4f}" if cost else "images"
            progress.update(task, advance=images, description=description)

        summary = build_dataset(
            recipe,
            dataset,
            out,
            options,
            model=model,
            verifier=verifier,
            classify=classify_intent,
            overwrite=overwrite,
            done=show,
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary, out)


def _print_reasons(usage: "WriterUsage") -> None:
    """Why requests brought nothing: how often, and an example."""
    for reason in usage.reasons[:MAX_REASONS]:
        failure = reason.example
        noun = "image" if reason.count == 1 else "images"
        echo(
            f"  {reason.count:,} {noun} without questions ({failure.status}), for example {failure.image_id}: "
            f"{failure.reason}"
        )
    more = usage.reasons[MAX_REASONS:]
    if more:
        count = sum(reason.count for reason in more)
        echo(f"  {count:,} for {len(more):,} other reasons: see build.json")
    if usage.reasons:
        echo("  Repeat the command with --retry-failed to ask again.")


def _print_summary(summary: "BuildSummary", out: Path) -> None:
    usage = summary.build.usage
    echo(
        f"{out}: {summary.kept:,} questions about {summary.images_kept:,} of {summary.images:,} images; "
        f"{summary.rejected:,} rejected, {summary.flagged:,} flagged for review"
    )
    for count in summary.filters:
        if count.rejected:
            name = count.name.lower()
            echo(f"  {count.rejected:,} rejected: {name} ({count.reason})")
    if summary.build.verified:
        verdicts = [
            f"{count:,} {verdict}" for verdict, count in summary.build.verified.items()
        ]
        echo(f"  verified by {summary.build.verifier}: {', '.join(verdicts)}")
    if usage.calls:
        statuses = [f"{number:,} {status}" for status, number in usage.statuses.items()]
        echo(
            f"  {usage.calls:,} calls ({', '.join(statuses)}), {usage.input_tokens:,} input and "
            f"{usage.output_tokens:,} output tokens, ${usage.cost:,.2f}"
        )
    if usage.unanswered:
        echo(
            f"  {usage.unanswered:,} more without a recorded answer: up to ${usage.unanswered_cost:,.4f} beside that"
        )
    _print_reasons(usage)
    if usage.malformed:
        echo(f"  {usage.malformed:,} samples did not fit the schema")
    echo(f"report: {out / 'build.html'}")

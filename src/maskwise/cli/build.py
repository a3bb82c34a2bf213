"""`maskwise build`: make benchmark data from annotated images, one subcommand per recipe.

Recipes of installed packages are subcommands too, and so is `package.module:attribute`.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import typer.main
from rich.progress import Progress
from typer.core import TyperCommand, TyperGroup

from maskwise.builder.build_summary import BuildSummary
from maskwise.builder.image_hash import find_leaked_images, hash_dataset, image_splits
from maskwise.builder.language_model import LanguageModel, estimate_build, ledger_path
from maskwise.builder.occlude import OccludeOptions, occlude
from maskwise.builder.pipeline import BuildOptions, build_dataset, is_finished
from maskwise.builder.recipe import Recipe
from maskwise.builder.recipes import find_recipe
from maskwise.cli.lazy import HelpfulGroup, LazyCommand
from maskwise.cli.options import (
    SEVERAL,
    AsJson,
    CpusPerWorker,
    Engine,
    GpusPerWorker,
    ImagesFolder,
    Overwrite,
    RayAddress,
    Workers,
)
from maskwise.console import make_console
from maskwise.datasets import find_dataset
from maskwise.engines import EngineOptions
from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.registry import RECIPES, WRITERS
from maskwise.store import Dataset
from maskwise.terminal import echo


class RecipeCommand(LazyCommand):
    """The command of a recipe that is not built in; the recipe is imported on use."""

    def __init__(self, name: str) -> None:
        super().__init__(name, name, RECIPES.list().get(name, ""), group="Commands")

    def load(self) -> TyperCommand | TyperGroup:
        """Import the recipe and make its command."""
        program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        example = f"maskwise build {self.name} --source cocoa_val --out new_val"
        _add_recipe(program, find_recipe(str(self.name)), example)
        command = typer.main.get_command(program)
        assert isinstance(command, TyperCommand)
        return command


class RecipeGroup(HelpfulGroup):
    """The built-in recipes, those of plug-ins, and `package.module:attribute`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names for the help."""
        return [*super().list_commands(ctx), *RECIPES.plug_ins]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        command = super().get_command(ctx, cmd_name)
        is_recipe = cmd_name in RECIPES.plug_ins or ":" in cmd_name
        return RecipeCommand(cmd_name) if command is None and is_recipe else command


app = typer.Typer(
    help="Build a dataset from annotated images.",
    no_args_is_help=True,
    cls=RecipeGroup,
)

BATCH_SIZE = 500
"""Requests per batch, so that a batch with its images stays below the limits of the providers."""

SourceOption = Annotated[
    str,
    typer.Option(
        "--source",
        help="Dataset with annotated images: a folder, or `world`.",
        show_default=False,
    ),
]
OutOption = Annotated[Path, typer.Option(help="Folder of the new dataset.")]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Read this many images only.")
]


def _add_recipe(program: typer.Typer, recipe: Recipe, example: str) -> None:
    """Add the command of a recipe that writes questions to a program."""

    @program.command(recipe.name, help=f"Write {recipe.title}.\n\nExample: {example}")
    def build(
        *,
        source: SourceOption,
        out: OutOption,
        writer: Annotated[
            str,
            typer.Option(
                help="Who writes: grammar (offline), anthropic, openai for any such "
                "endpoint, or a plug-in."
            ),
        ] = "grammar",
        model: Annotated[str | None, typer.Option(help="The language model.")] = None,
        base_url: Annotated[
            str | None,
            typer.Option(help="Address of an endpoint (vLLM, llama.cpp, Ollama)."),
        ] = None,
        budget: Annotated[
            float | None,
            typer.Option(min=0, help="Stop before this many US dollars are exceeded."),
        ] = None,
        prices: Annotated[
            Path | None, typer.Option(help="Prices of models (YAML) instead of ours.")
        ] = None,
        dry_run: Annotated[
            bool,
            typer.Option(
                "--dry-run", help="Print calls, tokens and cost; send nothing."
            ),
        ] = False,
        batch: Annotated[
            bool,
            typer.Option("--batch", help="Use the batch API: cheaper, within a day."),
        ] = False,
        concurrency: Annotated[
            int, typer.Option(min=1, help="Requests at a time, without --batch.")
        ] = 8,
        no_blind_check: Annotated[
            bool,
            typer.Option(
                "--no-blind-check",
                help="Do not ask the model which questions it answers without the image.",
            ),
        ] = False,
        filter: Annotated[
            list[str] | None,
            typer.Option(
                help="Also apply this filter, of a plug-in or "
                f"package.module:attribute. {SEVERAL}"
            ),
        ] = None,
        against: Annotated[
            list[str] | None,
            typer.Option(
                help=f"Reject images that are also in this dataset. {SEVERAL}"
            ),
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
        dataset = Dataset.open(find_dataset(source), image_root=images)
        count = (
            len(dataset.images) if limit is None else min(limit, len(dataset.images))
        )
        language_model = _open_model(
            writer,
            model,
            base_url,
            prices=prices,
            budget=budget,
            batch=batch,
            concurrency=concurrency,
            check_blind=not no_blind_check,
            needs_key=not dry_run,
        )
        if dry_run:
            _print_estimate(
                recipe, dataset, count, language_model, out=out, as_json=as_json
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
            leaked=_find_leaked(dataset, against or []),
            more_filters=tuple(filter or ()),
        )
        _run(
            recipe,
            dataset,
            out,
            options,
            model=language_model,
            count=count,
            overwrite=overwrite,
            as_json=as_json,
        )


def _open_model(
    writer: str,
    model: str | None,
    base_url: str | None,
    *,
    prices: Path | None,
    budget: float | None,
    batch: bool,
    concurrency: int,
    check_blind: bool,
    needs_key: bool,
) -> LanguageModel | None:
    """The language model of a writer; None for the grammar."""
    from maskwise.writers import SendLimits, open_client
    from maskwise.writers.cost import ModelPrice, load_prices

    if writer == "grammar":
        return None
    if writer not in WRITERS.names() and ":" not in writer:
        raise UnknownNameError("writer", writer, [*WRITERS.names(), "grammar"])
    if model is None:
        raise MaskwiseError(f"--writer {writer} needs --model NAME")
    client = open_client(writer, model=model, base_url=base_url, needs_key=needs_key)
    try:
        price = load_prices(prices).find(model)
    except MaskwiseError:
        # An endpoint or a client of one's own costs nothing that we know of.
        is_own = base_url is not None or writer not in WRITERS.built_in
        if not is_own or budget is not None or prices is not None:
            raise
        price = ModelPrice(input=0.0, output=0.0)
    limits = SendLimits(
        budget=budget, concurrency=concurrency, batch_size=BATCH_SIZE if batch else 0
    )
    return LanguageModel(client, price, limits, check_blind)


def _find_leaked(dataset: Dataset, others: list[str]) -> dict[str, str] | None:
    """Images of a dataset that are also in others or in another split; None if there is nothing to compare with."""
    splits = image_splits(dataset)
    if not others and len(set(splits.values())) < 2:
        return None
    hashes = {name: hash_dataset(Dataset.open(find_dataset(name))) for name in others}
    return find_leaked_images(hash_dataset(dataset), splits=splits, others=hashes)


def _print_estimate(
    recipe: Recipe,
    dataset: Dataset,
    count: int,
    model: LanguageModel | None,
    *,
    out: Path,
    as_json: bool,
) -> None:
    if model is None:
        raise MaskwiseError(
            "--dry-run estimates what a language model costs; the grammar costs nothing"
        )
    found = estimate_build(recipe, dataset, range(count), model=model)
    if as_json:
        echo(json.dumps(found._asdict()))
        return
    echo(
        f"{found.calls:,} calls about {count:,} images, {found.input_tokens:,} input and {found.output_tokens:,} "
        f"output tokens: about ${found.cost:,.2f} with {model.client.model}. Nothing was sent."
    )
    if ledger_path(out).exists():
        echo(
            f"What {ledger_path(out)} already holds is not sent again and not subtracted here."
        )


def _run(
    recipe: Recipe,
    dataset: Dataset,
    out: Path,
    options: BuildOptions,
    *,
    model: LanguageModel | None,
    count: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    from maskwise.language.intent import classify_intent

    finished = not overwrite and is_finished(recipe, dataset, out, options, model=model)
    with Progress(console=make_console(stderr=True), disable=finished) as progress:
        task = progress.add_task("images", total=count)
        summary = build_dataset(
            recipe,
            dataset,
            out,
            options,
            model=model,
            classify=classify_intent,
            overwrite=overwrite,
            done=lambda images: progress.advance(task, images),
        )
    if as_json:
        echo(msgspec.json.encode(summary).decode())
    else:
        _print_summary(summary, out)


def _print_summary(summary: BuildSummary, out: Path) -> None:
    usage = summary.build.usage
    echo(
        f"{out}: {summary.kept:,} questions about {summary.images_kept:,} of {summary.images:,} images; "
        f"{summary.rejected:,} rejected, {summary.flagged:,} flagged for review"
    )
    for one in summary.filters:
        if one.rejected:
            echo(f"  {one.rejected:,} rejected: {one.name.lower()} ({one.reason})")
    if usage.calls:
        failed = ", ".join(
            f"{count:,} {status}" for status, count in usage.statuses.items()
        )
        echo(
            f"  {usage.calls:,} calls ({failed}), {usage.input_tokens:,} input and {usage.output_tokens:,} output "
            f"tokens, ${usage.cost:,.2f}"
        )
    if usage.malformed:
        echo(f"  {usage.malformed:,} samples did not fit the schema")
    echo(f"report: {out / 'build.html'}")


EXAMPLES = {
    "amodal-reason-seg": "maskwise build amodal-reason-seg --source cocoa_val --out ars_val",
    "r2sm": "maskwise build r2sm --source cocoa_val --out r2sm_val --writer anthropic --model claude-sonnet-5",
    "mmr": "maskwise build mmr --source paco_val --out mmr_val --writer openai --model gpt-5-mini --budget 20",
}
for _name, _example in EXAMPLES.items():
    _add_recipe(app, find_recipe(_name), _example)


@app.command("occlude")
def build_occluded(
    *,
    source: SourceOption,
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
    ] = 0.01,
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

    Example: maskwise build occlude --source coco_val --out coco_val_occluded --per-image 2
    """
    options = OccludeOptions(
        rates=(min_rate, max_rate), per_image=per_image, min_area=min_area, seed=seed
    )
    dataset = Dataset.open(find_dataset(source), image_root=images)
    total = len(dataset.images) if limit is None else min(limit, len(dataset.images))
    with Progress(console=make_console(stderr=True)) as progress:
        task = progress.add_task("images", total=total)
        counts = occlude(
            dataset,
            out,
            options,
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
        echo(json.dumps({"dataset": str(out), **counts._asdict()}))
        return
    echo(
        f"{out}: {counts.pairs} pairs of original and composite from {counts.images} images "
        f"({counts.without_target} without a completely visible object, {counts.without_occluder} without an "
        "occluder that fits)"
    )

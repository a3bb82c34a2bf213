"""`maskwise build`: make benchmark data from annotated images, one subcommand per recipe."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from maskwise.builder.occlude import OccludeOptions, occlude
from maskwise.harness.evaluate import find_dataset
from maskwise.store import Dataset
from maskwise.terminal import echo, make_console

app = typer.Typer(help="Build a dataset from annotated images.", no_args_is_help=True)


@app.command("occlude")
def build_occluded(
    dataset: Annotated[
        str,
        typer.Argument(help="Dataset whose objects are occluded: a folder, or `world`.", show_default=False),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the new dataset.")],
    min_rate: Annotated[float, typer.Option(help="Lowest occlusion rate of a target.")] = 0.1,
    max_rate: Annotated[float, typer.Option(help="Highest occlusion rate of a target.")] = 0.6,
    per_image: Annotated[int, typer.Option(min=1, help="Composites per image at most.")] = 1,
    min_area: Annotated[float, typer.Option(help="Smallest target, as a share of its image.")] = 0.01,
    images: Annotated[Path | None, typer.Option(help="Folder of the images, if they were moved.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read this many images only.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other composites.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing dataset.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make amodal data with exact ground truth: paste real objects in front of completely visible ones.

    Every composite is paired with its untouched original.

    Example: maskwise build occlude coco_val --out coco_val_occluded --per-image 2
    """
    options = OccludeOptions(rates=(min_rate, max_rate), per_image=per_image, min_area=min_area, seed=seed)
    source = Dataset.open(find_dataset(dataset), image_root=images)
    total = len(source.images) if limit is None else min(limit, len(source.images))
    with Progress(console=make_console(stderr=True)) as progress:
        task = progress.add_task("images", total=total)
        counts = occlude(
            source,
            out,
            options,
            limit=limit,
            workers=workers,
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

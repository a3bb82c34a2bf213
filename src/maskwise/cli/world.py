"""`maskwise world`: write procedural scenes as a dataset."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from maskwise.cli.options import AsJson, Overwrite
from maskwise.terminal import echo

SIZE = 160
QUESTIONS = 6
"""The defaults of `maskwise.world`, which loads slowly; a test compares them."""


def world(
    *,
    scenes: Annotated[int, typer.Option(min=1, help="How many scenes.")],
    out: Annotated[Path, typer.Option(help="The dataset folder to write.")],
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed gives other scenes.")
    ] = 0,
    split: Annotated[
        Literal["train", "val", "test"],
        typer.Option(help="test has held-out wordings and colors and more occlusion."),
    ] = "train",
    size: Annotated[
        int, typer.Option(min=32, max=4096, help="Side of the images in pixels.")
    ] = SIZE,
    questions: Annotated[
        int, typer.Option(min=0, help="Questions per scene.")
    ] = QUESTIONS,
    preset: Annotated[
        Literal["default", "easy"],
        typer.Option(help="easy has few categories and two or three large objects."),
    ] = "default",
    dialogues: Annotated[
        bool,
        typer.Option(
            "--dialogues",
            help="Dialogues of two or three turns, whose last turn is the question.",
        ),
    ] = False,
    encoding: Annotated[
        Literal["png", "jpeg"],
        typer.Option(help="png keeps every pixel; jpeg is a quarter of the size."),
    ] = "png",
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make a dataset of procedural scenes with exact visible, amodal and part masks.

    Example: maskwise world --scenes 1000 --seed 7 --split train --out scenes
    """
    from maskwise.cli.output import print_json
    from maskwise.progress_bars import make_progress
    from maskwise.store import read_manifest
    from maskwise.world import write_scenes

    with make_progress(quiet=as_json) as progress:
        task = progress.add_task("scenes", total=scenes)
        write_scenes(
            out,
            scenes,
            seed,
            split=split,
            size=size,
            questions=questions,
            preset=preset,
            dialogues=dialogues,
            encoding=encoding,
            workers=workers,
            overwrite=overwrite,
            done=lambda: progress.advance(task),
        )
    counts = read_manifest(out).counts
    if as_json:
        print_json({"dataset": str(out), "counts": counts})
    else:
        parts = [f"{number} {name}" for name, number in counts.items()]
        echo(f"{out}: {', '.join(parts)}")
